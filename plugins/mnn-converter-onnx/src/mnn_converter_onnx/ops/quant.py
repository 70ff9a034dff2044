"""Quantisation, computed in floats: exact, as 8-bit numbers and their products are whole numbers there."""

from __future__ import annotations

import numpy as np

from ..builder import Builder
from ..node import Node
from ..rules import Unsupported, rule

_RANGE = {np.dtype(np.int8): (-128, 127), np.dtype(np.uint8): (0, 255), np.dtype(np.int16): (-32768, 32767),
          np.dtype(np.uint16): (0, 65535)}


def _along(node: Node, b: Builder, x: str, values: str) -> str:
    """A scale or zero point shaped to run along the axis."""
    shape = b.shape(values)
    if shape in ((), (1,)):
        return b.reshape(values, ())
    if node.get("block_size", 0):
        raise Unsupported("blocked quantisation (block_size)")
    rank = b.rank(x)
    if b.rank(values) == 0:
        return values
    if rank is None:
        raise Unsupported("quantisation along an axis of a tensor of unknown rank")
    axis = node.get("axis", 1) % max(rank, 1)
    return b.reshape(values, (-1, *[1] * (rank - 1 - axis)))


@rule("QuantizeLinear")
def quantize_linear(node: Node, b: Builder) -> None:
    x, scale, zero = node.inputs[0], node.inputs[1], node.input(2)
    target = b.dtype(zero) if zero else np.dtype(np.uint8)
    if target not in _RANGE:
        raise Unsupported(f"quantisation to {target}; expected 8 or 16 bits")
    quotient = b.binary("REALDIV", b.cast(x, np.float32), _along(node, b, x, scale))
    y = b.unary("ROUND", quotient)
    if zero and not _is_zero(b, zero):
        y = b.binary("ADD", y, b.cast(_along(node, b, x, zero), np.float32))
    low, high = _RANGE[target]
    b.cast(b.op("ReLU6", [y], minValue=float(low), maxValue=float(high)), target, node.outputs)


def _is_zero(b: Builder, name: str) -> bool:
    value = b.value(name)
    return value is not None and not value.any()


@rule("DequantizeLinear")
def dequantize_linear(node: Node, b: Builder) -> None:
    x, scale, zero = node.inputs[0], node.inputs[1], node.input(2)
    y = b.cast(x, np.float32)
    if zero and not _is_zero(b, zero):
        y = b.binary("SUB", y, b.cast(_along(node, b, x, zero), np.float32))
    b.binary("MUL", y, _along(node, b, x, scale), node.outputs, dtype=b.dtype(scale))


@rule("DynamicQuantizeLinear")
def dynamic_quantize_linear(node: Node, b: Builder) -> None:
    """To uint8, by the extent of the values and 0."""
    x = node.inputs[0]
    zero = b.const(np.float32(0))
    low = b.binary("MINIMUM", b.op("Reduction", [x], operation="MINIMUM", keepDims=False), zero)
    high = b.binary("MAXIMUM", b.op("Reduction", [x], operation="MAXIMUM", keepDims=False), zero)
    outputs = [n or b.context.fresh(f"{node.name}/unused") for n in (node.output(0), node.output(1), node.output(2))]
    scale = b.binary("REALDIV", b.binary("SUB", high, low), b.const(np.float32(255)), [outputs[1]])
    point = b.unary("ROUND", b.binary("SUB", zero, b.binary("REALDIV", low, scale)))
    point = b.op("ReLU6", [point], minValue=0.0, maxValue=255.0)
    b.cast(point, np.uint8, [outputs[2]])
    y = b.binary("ADD", b.unary("ROUND", b.binary("REALDIV", x, scale)), point)
    b.cast(b.op("ReLU6", [y], minValue=0.0, maxValue=255.0), np.uint8, [outputs[0]])


def _centred(b: Builder, x: str, zero: str, column: bool = False) -> str:
    """x - zero point as floats; a zero point per row of the left operand is a column."""
    y = b.cast(x, np.float32)
    if not zero or _is_zero(b, zero):
        return y
    point = b.cast(zero, np.float32)
    if column and b.rank(zero) == 1 and b.shape(zero) != (1,):
        point = b.reshape(point, (-1, 1))
    return b.binary("SUB", y, point)


@rule("MatMulInteger")
def matmul_integer(node: Node, b: Builder) -> None:
    product = b.op("MatMul", [_centred(b, node.inputs[0], node.input(2), True), _centred(b, node.inputs[1], node.input(3))])
    b.cast(product, np.int32, node.outputs)
