"""x / 2 * (1 + erf(x / sqrt(2))) becomes one op."""

from __future__ import annotations

import math

from ..ir import Graph
from . import Pass
from ._view import View, is_binary, scalar_operand


def _factors(view: View, name: str, depth: int = 0) -> tuple[list[str], float]:
    """A product as its tensors and a number: MULs and divisions by constants are taken apart."""
    op = view.producer(name)
    if op is None or depth > 3 or not is_binary(op, "MUL", "REALDIV", "DIV"):
        return [name], 1.0
    scaled = scalar_operand(view, op)
    if scaled is not None and scaled[1] != 0 and (op["opType"] == "MUL" or view.number(op.inputs[1]) is not None):
        tensors, number = _factors(view, scaled[0], depth + 1)
        return tensors, number * (scaled[1] if op["opType"] == "MUL" else 1 / scaled[1])
    if op["opType"] != "MUL":
        return [name], 1.0
    left, right = _factors(view, op.inputs[0], depth + 1), _factors(view, op.inputs[1], depth + 1)
    return left[0] + right[0], left[1] * right[1]


def _erf_argument(view: View, name: str) -> str | None:
    """x where a tensor is 1 + erf(x / sqrt(2))."""
    op = view.producer(name)
    added = scalar_operand(view, op) if op is not None and is_binary(op, "ADD") else None
    erf = view.producer(added[0], "UnaryOp") if added is not None and added[1] == 1 else None
    if erf is None or erf["opType"] != "ERF":
        return None
    tensors, number = _factors(view, erf.inputs[0])
    return tensors[0] if len(tensors) == 1 and abs(number - math.sqrt(0.5)) < 1e-6 else None


def run(graph: Graph) -> int:
    """Finds the product in any order of its factors."""
    view = View(graph)
    for op in graph.ops:
        if not is_binary(op, "MUL", "REALDIV", "DIV"):
            continue
        tensors, number = _factors(view, op.outputs[0])
        if len(tensors) != 2 or abs(number - 0.5) > 1e-6:
            continue
        for x, gate in (tensors, tensors[::-1]):
            if _erf_argument(view, gate) == x:
                view.change(op, "UnaryOp", [x], {"opType": "GELU_STANDARD"})
                break
    return view.finish()


gelu = Pass("gelu", run, "the erf form of GELU becomes one op")
