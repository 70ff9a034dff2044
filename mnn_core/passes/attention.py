"""softmax(scale * Q K' + mask) V becomes one op, which backends may run without writing the scores to memory.

MNN's own Attention op is of another kind (it keeps state), so files with this one run here only: the pass is off unless
asked for.
"""

from __future__ import annotations

import numpy as np

from ..ir import Graph, Op
from . import Pass
from ._shapes import Shapes
from ._view import View, is_binary, scalar_operand

#: A number that hides a score as well as -inf does: added to one, it stays what it is.
_HIDDEN = -1e30


def _product(op: Op | None) -> bool:
    """Whether an op is a product of two tensors as they are."""
    return op is not None and op.type in ("MatMul", "BatchMatMul") and len(op.inputs) == 2 and \
        not any(op.attrs.get(k) for k in ("transposeA", "transposeB", "adjX", "adjY"))


def _scaled(view: View, name: str) -> tuple[str, float]:
    """(x, c) where a tensor is c * x; it must be read only there."""
    op = view.producer(name)
    if op is None or not is_binary(op, "MUL", "REALDIV", "DIV") or not view.only_here(name):
        return name, 1.0
    found = scalar_operand(view, op)
    if found is None or (op["opType"] != "MUL" and (found[0] != op.inputs[0] or found[1] == 0)):
        return name, 1.0
    return found[0], found[1] if op["opType"] == "MUL" else 1 / found[1]


def _along_last(shapes: Shapes, softmax: Op) -> bool:
    rank = shapes.rank(softmax.inputs[0])
    return softmax["axis"] == -1 or (rank is not None and softmax["axis"] == rank - 1)


def _guarded(view: View, shapes: Shapes, name: str) -> tuple[Op, str, Op | None] | None:
    """(softmax, "", None) of a product's left side; behind a guard against rows that the mask hides wholly, also its kind.

    "nan": where(isnan(weights), 0, weights). "rows": where(condition, 0, weights), a condition for each row, and the Select.
    """
    softmax, select = view.producer(name, "Softmax"), view.producer(name, "Select")
    if softmax is not None:
        return (softmax, "", None) if view.only_here(name) else None
    if select is None or not view.only_here(name) or view.number(select.inputs[1]) != 0:
        return None
    condition, _, weights = select.inputs
    softmax, test, shape = view.producer(weights, "Softmax"), view.producer(condition), shapes.shapes.get(condition)
    if softmax is None:
        return None
    if test is not None and is_binary(test, "NOTEQUAL") and test.inputs == [weights, weights]:
        return (softmax, "nan", None) if view.reads(weights) == 3 else None
    return (softmax, "rows", select) if shape and shape[-1] == 1 and view.only_here(weights) else None


def _masked(view: View, scores: str) -> list[tuple[str, str, Op | None]]:
    """(scores without mask, what is added, a Select that is to make it) in each way to see scores."""
    op = view.producer(scores)
    if op is not None and is_binary(op, "ADD"):
        return [(op.inputs[0], op.inputs[1], None), (op.inputs[1], op.inputs[0], None)]
    if op is not None and op.type == "Select":
        for inner, fill in (op.inputs[1:], op.inputs[:0:-1]):
            lowest = view.number(fill)
            if lowest is not None and lowest <= _HIDDEN and view.array(fill).ndim <= 1:  # type: ignore[union-attr]
                return [(inner, op.outputs[0], op)]
    return [(scores, "", None)]


def _scores(view: View, scores: str) -> tuple[list[str], float, Op | None] | None:
    """([Q, K', mask or nothing], scale, a Select that is to make the mask) of what Softmax is applied to."""
    if not view.only_here(scores):
        return None
    for inner, mask, select in _masked(view, scores):
        if not view.only_here(inner):
            continue
        base, scale = _scaled(view, inner)
        product = view.producer(base)
        if product is not None and _product(product) and view.only_here(base):
            query, first = _scaled(view, product.inputs[0])
            key, second = _scaled(view, product.inputs[1])
            return [query, key, mask], scale * first * second, select
    return None


def _fuse(view: View, shapes: Shapes, op: Op) -> None:
    guarded = _guarded(view, shapes, op.inputs[0])
    found = _scores(view, guarded[0].inputs[0]) if guarded is not None and _along_last(shapes, guarded[0]) else None
    if guarded is None or found is None:
        return
    _, guard, rows = guarded
    (query, key, mask), scale, select = found
    if select is not None:  # it chose between the score and the lowest number; now it makes what is added to the score
        zero = view.constant(f"{select.outputs[0]}/zero", np.array(0, np.float32))
        kept = [n if view.array(n) is not None else zero for n in select.inputs[1:]]
        view.change(select, "Select", [select.inputs[0], *kept], {})
    attrs = {"scale": scale, **({"nan_to_zero": True} if guard == "nan" else {})}
    view.change(op, "transformer.Attention", [query, key, op.inputs[1], *([mask] if mask else [])], attrs)
    if rows is not None:
        inner = view.graph.fresh_name(f"{op.outputs[0]}/unguarded")
        outer = view.move_output(op, inner)
        view.insert_after(op, Op("Select", [*rows.inputs[:2], inner], [outer], name=f"{op.name}/guard"))


def run(graph: Graph) -> int:
    """Finds the pattern as PyTorch, TensorFlow, Keras and optimum write it: the scale may be on the scores, or on Q and K', the
    mask be added or chosen by, and rows of no visible key be guarded."""
    view, shapes = View(graph), Shapes(graph)
    for op in graph.ops:
        if _product(op):
            _fuse(view, shapes, op)
    return view.finish()


attention = Pass("attention", run, "softmax(Q K') V becomes one op of our own (with --transformer-fuse)", main_only=True)
