"""Permutes move down through other ops until they meet one that they undo."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import Graph, Op
from . import Pass
from ._view import View

#: Ops of one tensor that work element by element.
_ELEMENTWISE = frozenset({"ReLU", "ReLU6", "UnaryOp", "ELU", "Selu", "Cast", "Sigmoid", "TanH", "Identity"})


def _perm(view: View, name: str) -> tuple[int, ...] | None:
    """The order of the Permute that makes a tensor."""
    op = view.producer(name, "Permute")
    return tuple(op["dims"]) if op is not None and len(op["dims"]) else None


def _inverse(perm: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argsort(perm))


def _source(view: View, name: str) -> str:
    op = view.producer(name, "Permute")
    assert op is not None
    return op.inputs[0]


def _moved_constant(view: View, array: np.ndarray, perm: tuple[int, ...], stem: str, name: str) -> str | None:
    """A constant operand as it must be before the Permute."""
    if array.size == 1:
        return name
    if array.ndim > len(perm):
        return None
    full = array.reshape((1,) * (len(perm) - array.ndim) + array.shape)
    return view.constant(stem, full.transpose(_inverse(perm)))


def _operands(view: View, op: Op) -> tuple[tuple[int, ...], list[str]] | None:
    """(order, inputs before it) if every input is a Permute of one order, or a constant."""
    perms = {_perm(view, n) for n in op.inputs if view.array(n) is None}
    if len(perms) != 1 or None in perms:
        return None
    perm = perms.pop()
    assert perm is not None
    inputs: list[str] = []
    for name in op.inputs:
        array = view.array(name)
        moved = _source(view, name) if array is None else _moved_constant(view, array, perm, f"{op.outputs[0]}/moved", name)
        if moved is None:
            return None
        inputs.append(moved)
    return perm, inputs


def _axes(op: Op, perm: tuple[int, ...], axes: Any) -> tuple[int, ...]:
    return tuple(perm[a] for a in axes)


def _plan(view: View, op: Op) -> tuple[list[str], dict[str, Any], tuple[int, ...]] | None:
    """(inputs, attributes, order of the result) of an op that reads from before the Permutes."""
    if op.type in _ELEMENTWISE and len(op.inputs) == 1:
        found = _operands(view, op)
        return None if found is None else (found[1], op.attrs, found[0])
    if op.type == "BinaryOp":
        found = _operands(view, op)
        return None if found is None else (found[1], op.attrs, found[0])
    if op.type in ("Concat", "Softmax"):
        found = _operands(view, op) if all(view.array(n) is None for n in op.inputs) else None
        return None if found is None else (found[1], {**op.attrs, "axis": found[0][op["axis"]]}, found[0])
    perm = _perm(view, op.inputs[0]) if op.inputs else None
    if perm is None:
        return None
    source, rank = _source(view, op.inputs[0]), len(perm)
    if op.type == "Reduction" and len(op.inputs) == 1 and len(op["dim"]):
        axes = tuple(perm[a] for a in op["dim"])
        left = [p for p in perm if p not in axes]
        order = perm if op["keepDims"] else tuple(sorted(left).index(p) for p in left)
        return [source], {**op.attrs, "dim": axes}, order
    if op.type == "Padding":
        pairs = view.array(op.inputs[1])
        if pairs is None or pairs.size != 2 * rank:
            return None
        moved = view.constant(f"{op.outputs[0]}/pads", pairs.reshape(rank, 2)[list(_inverse(perm))].reshape(-1))
        return [source, moved, *op.inputs[2:]], op.attrs, perm
    return None


def run(graph: Graph) -> int:
    """Merges Permutes in a row, and moves a Permute behind the op that reads it if nothing else but Permutes does."""
    view = View(graph)
    readers: dict[str, int] = {}
    for op in graph.ops:
        if op.type != "Permute":
            for name in set(op.inputs):
                readers[name] = readers.get(name, 0) + 1
    for op in graph.ops:
        if op.type == "Permute":
            before = _perm(view, op.inputs[0])
            if before is not None and len(op["dims"]) == len(before):
                view.change(op, "Permute", [_source(view, op.inputs[0])], {"dims": tuple(before[d] for d in op["dims"])})
            continue
        moving = [n for n in op.inputs if _perm(view, n) is not None]
        if len(op.outputs) != 1 or not moving or any(readers.get(n, 0) > 1 or n in view.outputs for n in moving):
            continue
        plan = _plan(view, op)
        if plan is None:
            continue
        inputs, attrs, order = plan
        view.change(op, op.type, inputs, attrs)
        if order != tuple(range(len(order))):
            inner = graph.fresh_name(f"{op.outputs[0]}/moved")
            outer = view.move_output(op, inner)
            view.insert_after(op, Op("Permute", [inner], [outer], {"dims": order}, name=f"{op.name}/permute"))
    return view.finish()


permute = Pass("permute", run, "permutes move down and cancel")
