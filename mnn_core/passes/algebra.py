"""Arithmetic that can be said shorter: squares, reciprocal roots, neutral numbers, constants in a row."""

from __future__ import annotations

import numpy as np

from ..ir import Graph, Op
from . import Pass
from ._view import View, is_binary, scalar_operand


def _is_float(view: View, op: Op) -> bool:
    """Whether an op joins floats, as far as a constant beside it, or a function that only floats have, tells."""
    constants = [view.array(n) for n in op.inputs]
    return any(a is not None and a.dtype == np.float32 for a in constants)


def _unary(view: View, name: str, kind: str) -> Op | None:
    op = view.producer(name, "UnaryOp")
    return op if op is not None and op["opType"] == kind else None


def _square(view: View, op: Op) -> bool:
    """x * x of floats, and x to the power of 2."""
    if is_binary(op, "POW") and view.number(op.inputs[1]) == 2 and _is_float(view, op):
        view.change(op, "UnaryOp", op.inputs[:1], {"opType": "SQUARE"})
        return True
    return False


def _root(view: View, op: Op) -> bool:
    """a / sqrt(b) is a * rsqrt(b), 1 / sqrt(b) and the reciprocal of sqrt(b) are rsqrt(b)."""
    if op.type == "UnaryOp" and op["opType"] == "RECIPROCAL":
        root = _unary(view, op.inputs[0], "SQRT")
        if root is not None and view.only_here(op.inputs[0]):
            view.change(op, "UnaryOp", root.inputs, {"opType": "RSQRT"})
            return True
    if is_binary(op, "REALDIV", "DIV") and view.number(op.inputs[0]) == 1 and _is_float(view, op):
        root = _unary(view, op.inputs[1], "SQRT")
        if root is not None and view.only_here(op.inputs[1]):
            view.change(op, "UnaryOp", root.inputs, {"opType": "RSQRT"})
            return True
    return False


def _twice(view: View, op: Op) -> bool:
    """-(-x), and the magnitude of a magnitude."""
    if op.type != "UnaryOp" or op["opType"] not in ("NEG", "ABS"):
        return False
    inner = _unary(view, op.inputs[0], op["opType"])
    if inner is None:
        return False
    view.change(op, "Identity" if op["opType"] == "NEG" else "UnaryOp", inner.inputs,
                {} if op["opType"] == "NEG" else {"opType": "ABS"})
    return True


def _neutral(view: View, op: Op) -> bool:
    """x + 0, x - 0, x * 1 and x / 1, where the number has no dimension that x could lack; Scale by 1 and 0."""
    if op.type == "Scale" and len(op.inputs) == 3:
        factor, shift = map(view.array, op.inputs[1:])
        if factor is not None and shift is not None and (factor == 1).all() and not shift.any():
            view.change(op, "Identity", op.inputs[:1], {})
            return True
    if not is_binary(op, "ADD", "SUB", "MUL", "REALDIV", "DIV"):
        return False
    found = scalar_operand(view, op)
    if found is None or (op["opType"] in ("SUB", "REALDIV", "DIV") and found[0] != op.inputs[0]):
        return False
    other = op.inputs[1] if found[0] == op.inputs[0] else op.inputs[0]
    array = view.array(other)
    if array is None or array.ndim or found[1] != (0 if op["opType"] in ("ADD", "SUB") else 1):
        return False
    view.change(op, "Identity", [found[0]], {})
    return True


def _in_a_row(view: View, op: Op) -> bool:
    """(x + a) + b is x + (a + b), and so with products of floats; the first sum must have no other reader."""
    kind = op["opType"] if is_binary(op, "ADD", "MUL") else ""
    outer = scalar_operand(view, op) if kind else None
    before = view.producer(outer[0]) if outer is not None else None
    if outer is None or before is None or not is_binary(before, kind) or not view.only_here(outer[0]):
        return False
    inner = scalar_operand(view, before)
    if inner is None:
        return False
    arrays = [view.array(n) for o, x in ((op, outer[0]), (before, inner[0])) for n in o.inputs if n != x]
    if len(arrays) != 2 or any(a is None or a.dtype != np.float32 or a.ndim for a in arrays):
        return False
    value = np.float32(outer[1] + inner[1] if kind == "ADD" else outer[1] * inner[1])
    if not np.isfinite(value) or (kind == "MUL" and value == 0):
        return False
    view.change(op, "BinaryOp", [inner[0], view.constant(f"{op.outputs[0]}/number", np.array(value))], {"opType": kind})
    return True


def run(graph: Graph) -> int:
    """Each op is rewritten by the first rule that fits it."""
    view = View(graph)
    for op in graph.ops:
        for rule in (_square, _root, _twice, _neutral, _in_a_row):
            if rule(view, op):
                break
    return view.finish()


algebra = Pass("algebra", run, "squares, reciprocal roots, neutral numbers and constants in a row")
