"""x / 2 * (1 + erf(x / sqrt(2))), and x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), become one op.

Hendrycks and Gimpel, Gaussian Error Linear Units (2016). PyTorch's exporters, Hugging Face's NewGELU and FastGELU,
TensorFlow and Keras write the factors in different orders, and the cube as Pow or as products.
"""

from __future__ import annotations

import math

from ..ir import Graph, Op
from . import Pass
from ._factors import is_gated, is_product, product_of
from ._polynomial import polynomial, same
from ._view import View, is_binary, scalar_operand

_ROOT = math.sqrt(2 / math.pi)
#: Function inside -> (its argument, the op that all of it is).
_FORMS = {"ERF": ({1: math.sqrt(0.5)}, "GELU_STANDARD"), "TANH": ({1: _ROOT, 3: _ROOT * 0.044715}, "GELU")}


def _gate(view: View, name: str) -> Op | None:
    """The function f where a tensor is 1 + f."""
    op = view.producer(name)
    added = scalar_operand(view, op) if op is not None and is_binary(op, "ADD") else None
    inner = view.producer(added[0], "UnaryOp", "TanH") if added is not None and added[1] == 1 else None
    return inner if inner is not None and (inner.type == "TanH" or inner["opType"] in _FORMS) else None


def _match(view: View, op: Op) -> tuple[str, str] | None:
    """(x, the function) where an op is the last product of a GELU."""
    names = product_of(view, op)
    for gate in names:
        inner = _gate(view, gate)
        if inner is None or not view.only_here(gate):
            continue
        argument, function = _FORMS["TANH" if inner.type == "TanH" else inner["opType"]]
        for x in names:
            if x != gate and same(polynomial(view, inner.inputs[0], x), argument) and is_gated(view, op, x, gate, 0.5):
                return x, function
    return None


def run(graph: Graph) -> int:
    """Finds the product in any order of its factors."""
    view = View(graph)
    for op in graph.ops:
        found = _match(view, op) if is_product(op) else None
        if found is not None:
            view.change(op, "UnaryOp", [found[0]], {"opType": found[1]})
    return view.finish()


gelu = Pass("gelu", run, "the erf and tanh forms of GELU become one op")
