"""1 / (1 + exp(-x)), and (1 + tanh(x / 2)) / 2, become Sigmoid; x / (1 + exp(-x)) becomes SILU.

As networks write them that were made without a framework's activation, and as TensorFlow's graph optimiser leaves them.
"""

from __future__ import annotations

from ..ir import Graph, Op
from . import Pass
from ._factors import factors, is_product
from ._polynomial import polynomial, same
from ._view import View, is_binary, scalar_operand


def _one_plus(view: View, name: str, *kinds: str) -> str | None:
    """The argument where a tensor, read once, is 1 + f of it, f being one of some functions."""
    op = view.producer(name)
    added = scalar_operand(view, op) if op is not None and is_binary(op, "ADD") else None
    inner = view.producer(added[0], "UnaryOp") if added is not None and added[1] == 1 and view.only_here(name) else None
    return inner.inputs[0] if inner is not None and inner["opType"] in kinds and view.only_here(inner.outputs[0]) else None


def _negated(view: View, name: str) -> str | None:
    """x where a tensor is -x."""
    op = view.producer(name)
    if op is not None and op.type == "UnaryOp" and op["opType"] == "NEG":
        return op.inputs[0]
    found = scalar_operand(view, op) if op is not None and is_binary(op, "MUL") else None
    return found[0] if found is not None and found[1] == -1 else None


def _by_exp(view: View, op: Op) -> bool:
    if op.type == "UnaryOp" and op["opType"] == "RECIPROCAL":
        numerator, below = "", op.inputs[0]
    elif is_binary(op, "REALDIV", "DIV"):
        numerator, below = op.inputs
    else:
        return False
    argument = _one_plus(view, below, "EXP")
    x = _negated(view, argument) if argument is not None else None
    if x is None:
        return False
    array = view.array(numerator)
    if not numerator or (view.number(numerator) == 1 and array is not None and array.ndim == 0):
        view.change(op, "UnaryOp", [x], {"opType": "SIGMOID"})
        return True
    if numerator == x:
        view.change(op, "UnaryOp", [x], {"opType": "SILU"})
        return True
    return False


def _by_tanh(view: View, op: Op) -> bool:
    """The halved sum 1 + tanh(x / 2)."""
    if not is_product(op):
        return False
    tensors, number = factors(view, op.outputs[0], "")
    argument = _one_plus(view, tensors[0], "TANH") if len(tensors) == 1 and number == 0.5 else None
    halved = view.producer(argument) if argument is not None else None
    found = scalar_operand(view, halved) if halved is not None and is_product(halved) else None
    if argument is None or found is None or not same(polynomial(view, argument, found[0]), {1: 0.5}):
        return False
    view.change(op, "UnaryOp", [found[0]], {"opType": "SIGMOID"})
    return True


def run(graph: Graph) -> int:
    """What is inside must have no other reader."""
    view = View(graph)
    for op in graph.ops:
        if not _by_exp(view, op):
            _by_tanh(view, op)
    return view.finish()


sigmoid = Pass("sigmoid", run, "the exp and tanh forms of sigmoid become one op")
