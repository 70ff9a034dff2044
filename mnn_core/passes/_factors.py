"""Products taken apart: activations are products of a tensor and a gate, whose factors come in any order."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import Op
from ._view import View, is_binary, scalar_operand

_PRODUCTS = ("MUL", "REALDIV", "DIV")


def is_product(op: Op | None) -> bool:
    """Whether an op is a product or a quotient."""
    return is_binary(op, *_PRODUCTS)


def factors(view: View, name: str, whole: str, depth: int = 0) -> tuple[list[str], float]:
    """A product as its tensors and a number: MULs and divisions by constants are taken apart, but not the tensor `whole`."""
    op = view.producer(name)
    if op is None or name == whole or depth > 3 or not is_product(op):
        return [name], 1.0
    scaled = scalar_operand(view, op)
    if scaled is not None and scaled[1] != 0 and (op["opType"] == "MUL" or view.number(op.inputs[1]) is not None):
        tensors, number = factors(view, scaled[0], whole, depth + 1)
        return tensors, number * (scaled[1] if op["opType"] == "MUL" else 1 / scaled[1])
    if op["opType"] != "MUL":
        return [name], 1.0
    left, right = (factors(view, n, whole, depth + 1) for n in op.inputs)
    return left[0] + right[0], left[1] * right[1]


def _tensors(view: View, name: str, depth: int) -> Iterator[str]:
    yield name
    op = view.producer(name)
    if op is not None and depth < 4 and is_product(op):
        for n in op.inputs:
            if view.array(n) is None:
                yield from _tensors(view, n, depth + 1)


def product_of(view: View, op: Op) -> list[str]:
    """Every tensor that a product is made of, products that it is made of included."""
    return list(dict.fromkeys(n for i in op.inputs for n in _tensors(view, i, 0) if view.array(n) is None))


def is_gated(view: View, op: Op, x: str, gate: str, number: float) -> bool:
    """Whether an op is number * x * gate."""
    tensors, found = factors(view, op.outputs[0], x)
    return sorted(tensors) == sorted((x, gate)) and abs(found - number) <= 1e-6 * abs(number)
