"""x * sigmoid(x) and the hard form of it become one op."""

from __future__ import annotations

from ..ir import Graph, Op
from . import Pass
from ._view import View, is_binary, scalar_operand


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-6 * abs(b)


def _hard_gate(view: View, name: str) -> tuple[str, float] | None:
    """(x, c) where a tensor is c * relu6(x + 3) / 6: c is 6 without a division."""
    op = view.producer(name)
    if op is not None and is_binary(op, "MUL", "REALDIV", "DIV"):
        scaled = scalar_operand(view, op)
        if scaled is None or (op["opType"] != "MUL" and view.number(op.inputs[0]) is not None):
            return None
        inner = _hard_gate(view, scaled[0])
        if inner is None or scaled[1] == 0:
            return None
        return inner[0], inner[1] * (scaled[1] if op["opType"] == "MUL" else 1 / scaled[1])
    if op is None or op.type != "ReLU6" or op["minValue"] != 0:
        return None
    top = op["maxValue"]
    added = view.producer(op.inputs[0])
    if top not in (1, 6) or added is None or not is_binary(added, "ADD"):
        return None
    found = scalar_operand(view, added)
    if found is None or not _close(found[1], top / 2):
        return None
    if top == 6:
        return found[0], 6.0
    scaled_op = view.producer(found[0])
    if scaled_op is None or not is_binary(scaled_op, "MUL", "REALDIV", "DIV"):
        return None
    line = scalar_operand(view, scaled_op)
    slope = line[1] if line and scaled_op["opType"] == "MUL" else 1 / line[1] if line and line[1] else 0.0
    return (line[0], 1.0) if line is not None and _close(slope, 1 / 6) else None


def _swish(view: View, op: Op) -> bool:
    for x, gate in (op.inputs, op.inputs[::-1]):
        maker = view.producer(gate)
        if maker is not None and ((maker.type == "UnaryOp" and maker["opType"] == "SIGMOID") or maker.type == "Sigmoid") \
                and maker.inputs[0] == x:
            view.change(op, "UnaryOp", [x], {"opType": "SILU"})
            return True
        hard = _hard_gate(view, gate)
        if hard is not None and hard[0] == x and _close(hard[1], 1.0):
            view.change(op, "UnaryOp", [x], {"opType": "HARDSWISH"})
            return True
    return False


def _divided(view: View, op: Op) -> None:
    """(x * relu6(x + 3)) / 6."""
    scaled = scalar_operand(view, op)
    if scaled is None or (op["opType"] != "MUL" and view.number(op.inputs[0]) is not None) or scaled[1] == 0:
        return
    product = view.producer(scaled[0])
    factor = scaled[1] if op["opType"] == "MUL" else 1 / scaled[1]
    if product is None or not is_binary(product, "MUL"):
        return
    for x, gate in (product.inputs, product.inputs[::-1]):
        hard = _hard_gate(view, gate)
        if hard is not None and hard[0] == x and _close(hard[1] * factor, 1.0):
            view.change(op, "UnaryOp", [x], {"opType": "HARDSWISH"})
            return


def run(graph: Graph) -> int:
    """Finds x * sigmoid(x) (SILU) and x * relu6(x + 3) / 6 (HARDSWISH) in their usual forms."""
    view = View(graph)
    for op in graph.ops:
        if is_binary(op, "MUL") and op.inputs[0] != op.inputs[1] and _swish(view, op):
            continue
        if is_binary(op, "MUL", "REALDIV", "DIV"):
            _divided(view, op)
    return view.finish()


swish = Pass("swish", run, "x * sigmoid(x), and hard-swish, become one op")
