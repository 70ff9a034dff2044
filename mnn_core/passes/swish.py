"""x * sigmoid(x), and its hard form x * relu6(x + 3) / 6, become one op.

Ramachandran et al., Searching for Activation Functions (2017); Howard et al., Searching for MobileNetV3 (2019). PyTorch, Keras
and Paddle divide by 6 or multiply by its inverse, before or after the product, or cut x / 6 + 1 / 2 at 0 and 1.
"""

from __future__ import annotations

from ..ir import Graph, Op
from . import Pass
from ._factors import is_gated, is_product, product_of
from ._polynomial import polynomial, same
from ._view import View, is_binary


def _swish(view: View, op: Op) -> bool:
    for x, gate in (op.inputs, op.inputs[::-1]):
        maker = view.producer(gate, "UnaryOp", "Sigmoid")
        if maker is not None and (maker.type == "Sigmoid" or maker["opType"] == "SIGMOID") and maker.inputs[0] == x and \
                view.only_here(gate):
            view.change(op, "UnaryOp", [x], {"opType": "SILU"})
            return True
    return False


def _hard_swish(view: View, op: Op) -> bool:
    """c * x * clip(a x + b, 0, top), which is x * clip(x + 3, 0, 6) / 6 if c * top = 1."""
    names = product_of(view, op)
    for gate in names:
        clip = view.producer(gate, "ReLU6")
        if clip is None or clip["minValue"] != 0 or clip["maxValue"] <= 0 or not view.only_here(gate):
            continue
        top = clip["maxValue"]
        for x in names:
            if x != gate and same(polynomial(view, clip.inputs[0], x), {0: top / 2, 1: top / 6}) and \
                    is_gated(view, op, x, gate, 1 / top):
                view.change(op, "UnaryOp", [x], {"opType": "HARDSWISH"})
                return True
    return False


def run(graph: Graph) -> int:
    """Finds x * sigmoid(x) (SILU) and x * relu6(x + 3) / 6 (HARDSWISH) in any order of their factors."""
    view = View(graph)
    for op in graph.ops:
        if is_binary(op, "MUL") and op.inputs[0] != op.inputs[1] and _swish(view, op):
            continue
        if is_product(op):
            _hard_swish(view, op)
    return view.finish()


swish = Pass("swish", run, "x * sigmoid(x), and hard-swish, become one op")
