"""TensorFlow's way to write a layer norm: x * s + (beta - mean * s), where s is rsqrt(variance + epsilon) * gamma."""

from __future__ import annotations

from ..ir import Graph, Op
from . import Pass
from ._view import View, is_binary
from .layer_norm import _mean_of, scalar_operand


def _variance(view: View, name: str) -> tuple[str, str, tuple[int, ...], float] | None:
    """(x, mean, axes, epsilon) where a tensor is mean((x - mean)^2 over axes) + epsilon."""
    op = view.producer(name)
    added = scalar_operand(view, op) if op is not None and is_binary(op, "ADD") else None
    found = _mean_of(view, added[0]) if added is not None else None
    square = view.producer(found[0]) if found is not None else None
    if added is None or found is None or square is None:
        return None
    if is_binary(square, "SquaredDifference"):
        x, mean = square.inputs
    else:
        inner = square.inputs[0] if (square.type == "UnaryOp" and square["opType"] == "SQUARE") or (
            is_binary(square, "MUL") and square.inputs[0] == square.inputs[1]) else ""
        away = view.producer(inner) if inner else None
        if away is None or not is_binary(away, "SUB"):
            return None
        x, mean = away.inputs
    return (x, mean, found[1], added[1]) if _mean_of(view, mean) == (x, found[1]) else None


def _scale(view: View, name: str) -> tuple[str, str, str, tuple[int, ...], float] | None:
    """(gamma, x, mean, axes, epsilon) where a tensor is rsqrt(variance of x + epsilon) * gamma."""
    op = view.producer(name)
    if op is None or not is_binary(op, "MUL"):
        return None
    for root, gamma in (op.inputs, op.inputs[::-1]):
        maker = view.producer(root, "UnaryOp")
        if maker is not None and maker["opType"] == "RSQRT" and view.array(gamma) is not None:
            found = _variance(view, maker.inputs[0])
            if found is not None:
                return (gamma, *found)
    return None


def _parts(view: View, op: Op) -> tuple[Op, str, str, str, tuple[int, ...], float] | None:
    """(the product x * s, x, gamma, beta, axes, epsilon) of a sum that is a folded layer norm."""
    for left, right in (op.inputs, op.inputs[::-1]):
        product, shift = view.producer(left), view.producer(right)
        if product is None or shift is None or not is_binary(product, "MUL") or not is_binary(shift, "SUB") or \
                not view.only_here(left):
            continue
        moved = view.producer(shift.inputs[1])
        if moved is None or not is_binary(moved, "MUL"):
            continue
        for x, s in (product.inputs, product.inputs[::-1]):
            found = _scale(view, s)
            if found is not None and found[1] == x and sorted(moved.inputs) == sorted((found[2], s)):
                return product, x, found[0], shift.inputs[0], found[3], found[4]
    return None


def run(graph: Graph) -> int:
    """The product becomes LayerNorm without factors; a product with gamma and a sum with beta follow it."""
    view = View(graph)
    for op in list(graph.ops):
        parts = _parts(view, op) if is_binary(op, "ADD") else None
        if parts is None:
            continue
        product, x, gamma, beta, axes, epsilon = parts
        view.change(product, "LayerNorm", [x], {"axis": axes, "epsilon": epsilon, "useRMSNorm": False})
        scaled = graph.fresh_name(f"{op.outputs[0]}/scaled")
        view.insert_after(product, Op("BinaryOp", [product.outputs[0], gamma], [scaled], {"opType": "MUL"}, name=scaled))
        view.change(op, "BinaryOp", [scaled, beta], {"opType": "ADD"})
    return view.finish()


layer_norm_folded = Pass("layer-norm-folded", run, "layer norms as TensorFlow and Keras write them")
