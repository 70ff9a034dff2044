"""Quantisation, computed in floats: exact, as 8-bit numbers and their products are whole numbers there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mnn_core import ModelFormatError, PackedConstant
from mnn_core.formats import from_codes
from mnn_core.ir.dtypes import dtype_name, stored_dtype

from ..builder import Builder
from ..node import Node
from ..rules import Unsupported, rule
from ..tensors import declared_dtype
from .conv import conv

#: Types that are quantised to -> least and greatest number.
_RANGE = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535), "int4": (-8, 7),
          "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}
#: Weights of fewer elements are not worth packing.
_PACKED_FROM = 1024
_FLOATS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn")


def _along(node: Node, b: Builder, x: str, values: str) -> str:
    """A scale or zero point shaped to run along the axis; of blocks of numbers, one for each number."""
    shape = b.shape(values)
    if shape in ((), (1,)):
        return b.reshape(values, ())
    if b.rank(values) == 0:
        return values
    rank = b.rank(x)
    if rank is None:
        raise Unsupported("quantisation along an axis of a tensor of unknown rank")
    axis, block = node.get("axis", 1) % max(rank, 1), node.get("block_size", 0)
    if not block:
        return b.reshape(values, (-1, *[1] * (rank - 1 - axis)))
    if block < 0:
        raise ModelFormatError(f"{node}: block_size is {block}; expected 0 or more")
    size = (b.shape(x) or (None,) * rank)[axis]
    if size is not None:
        places = b.const(np.arange(size) // block)
    else:
        every = b.op("Range", [b.const(np.int32(0)), b.size(x, axis), b.const(np.int32(1))], dtype=np.int64)
        places = b.binary("REALDIV", every, b.const(np.int32(block)))
    return b.op("GatherV2", [values, places, b.const(np.int32(axis))], dtype=b.type(values))


def _target(node: Node, b: Builder, zero: str) -> np.dtype:
    """The type that QuantizeLinear makes."""
    kind = node.get("output_dtype", 0)
    if kind:
        return declared_dtype(kind, str(node))
    found = b.type(zero) if zero else np.dtype(np.uint8)
    return found if isinstance(found, np.dtype) else np.dtype(np.uint8)


@rule("QuantizeLinear")
def quantize_linear(node: Node, b: Builder) -> None:
    """round(x / scale) + zero point, half to even, saturated; to floats of 8 and 4 bits only the quotient is rounded."""
    x, scale, zero = node.inputs[0], node.inputs[1], node.input(2)
    target = _target(node, b, zero)
    quotient = b.binary("REALDIV", b.cast(x, np.float32), b.cast(_along(node, b, x, scale), np.float32))
    if target.name in _FLOATS:
        b.op("onnx.Cast", [quotient], node.outputs, dtype=target, to=target.name, saturate=bool(node.get("saturate", 1)))
        return
    if target.name not in _RANGE:
        raise Unsupported(f"quantisation to {target}; expected one of {', '.join((*_RANGE, *_FLOATS))}")
    y = b.unary("ROUND", quotient)
    if zero and not _is_zero(b, zero):
        y = b.binary("ADD", y, b.cast(_along(node, b, x, zero), np.float32))
    low, high = _RANGE[target.name]
    limited = b.op("ReLU6", [y], minValue=float(low), maxValue=float(high))
    b.op("Cast", [limited], node.outputs, dtype=target, dstT=dtype_name(stored_dtype(target)))


def _is_zero(b: Builder, name: str) -> bool:
    value = b.value(name)
    return value is not None and not value.any()


def _packed_weight(node: Node, b: Builder) -> PackedConstant | None:
    """A weight of 8-bit numbers as a constant that stays packed, in files too; None for what is no such weight.

    Its scales and zero points must be one number, or one for each output channel.
    """
    x, zero = b.value(node.inputs[0]), b.value(node.input(2)) if node.input(2) else np.zeros((), np.int8)
    scale = b.value(node.inputs[1])
    if x is None or scale is None or zero is None or x.dtype not in (np.int8, np.uint8) or x.ndim < 2 or \
            x.size < _PACKED_FROM or node.get("block_size", 0) or b.type(node.inputs[0]) != x.dtype:
        return None
    rows = x.shape[0]
    if scale.size != 1 and (node.get("axis", 1) % x.ndim != 0 or scale.shape != (rows,)):
        return None
    step = np.broadcast_to(scale.reshape(-1), (rows,)).astype(np.float32)
    middle = np.broadcast_to(zero.reshape(-1), (rows,)).astype(np.float32)
    low = np.iinfo(x.dtype).min
    codes = (x.astype(np.int16) - low).astype(np.uint8).reshape(rows, -1)
    alpha = step[:, None] if low and not middle.any() else np.stack([(low - middle) * step, step], 1)
    return from_codes(codes, alpha, 8, x.shape, node.outputs[0])


@rule("DequantizeLinear")
def dequantize_linear(node: Node, b: Builder) -> None:
    """(x - zero point) * scale."""
    x, scale, zero = node.inputs[0], node.inputs[1], node.input(2)
    kind = node.get("output_dtype", 0)
    made = declared_dtype(kind, str(node)) if kind else b.type(scale)
    packed = _packed_weight(node, b)
    if packed is not None:
        b.graph.constants[node.outputs[0]] = packed
        b.declare(node.outputs[0], made, len(packed.shape))
        return
    if zero and not _is_zero(b, zero):
        point = _along(node, b, x, zero)
        whole = stored_dtype(b.dtype(x)) == np.int32  # whose differences a float may not hold
        y = b.cast(b.binary("SUB", x, point), np.float32) if whole else \
            b.binary("SUB", b.cast(x, np.float32), b.cast(point, np.float32))
    else:
        y = b.cast(x, np.float32)
    b.binary("MUL", y, b.cast(_along(node, b, x, scale), np.float32), node.outputs, dtype=made)


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


@rule("ConvInteger")
def conv_integer(node: Node, b: Builder) -> None:
    """The convolution of centred numbers; padding is with the zero point, which is 0 then."""
    x, weight = _centred(b, node.inputs[0], node.input(2)), node.inputs[1]
    zero = node.input(3)
    centred = _centred(b, weight, zero)
    if zero and b.rank(zero) == 1 and b.shape(zero) != (1,):
        rank = b.rank(weight)
        if rank is None:
            raise Unsupported("a zero point per channel of a weight of unknown rank")
        centred = b.binary("SUB", b.cast(weight, np.float32), b.cast(b.reshape(zero, (-1, *[1] * (rank - 1))), np.float32))
    made = b.context.fresh(f"{node.name}/float")
    conv(replace(node, inputs=[x, centred], outputs=[made], attrs=_with_kernel(node, b, weight)), b)
    b.cast(made, np.int32, node.outputs)


def _with_kernel(node: Node, b: Builder, weight: str) -> dict[str, Any]:
    """The attributes with kernel_shape, which cannot be told from a weight that is computed."""
    shape = b.shape(weight)
    known = shape is not None and None not in shape[2:]
    return {**({"kernel_shape": shape[2:]} if known and shape is not None else {}), **node.attrs}


def _dequantized(b: Builder, x: str, scale: str, zero: str, axis: int = 1) -> str:
    """(x - zero point) * scale, of each along an axis if they are vectors."""
    made = b.context.fresh(f"{b.node_name}/float")
    dequantize_linear(Node("DequantizeLinear", "", 13, b.node_name, [x, scale, zero], [made], {"axis": axis}), b)
    return made


def _quantized(b: Builder, x: str, scale: str, zero: str, outputs: list[str]) -> None:
    quantize_linear(Node("QuantizeLinear", "", 13, b.node_name, [x, scale, zero], outputs), b)


@rule("QLinearMatMul")
def qlinear_matmul(node: Node, b: Builder) -> None:
    x, xs, xz, y, ys, yz, s, z = node.inputs[:8]
    rows, columns = b.rank(x), b.rank(y)
    left = _dequantized(b, x, xs, xz, (rows or 2) - 2)
    right = _dequantized(b, y, ys, yz, (columns or 2) - 1)
    _quantized(b, b.op("MatMul", [left, right]), s, z, node.outputs)


@rule("QLinearConv")
def qlinear_conv(node: Node, b: Builder) -> None:
    x, xs, xz, w, ws, wz, s, z = node.inputs[:8]
    inputs = [_dequantized(b, x, xs, xz), _dequantized(b, w, ws, wz, 0)]
    if node.input(8):  # the bias counts in steps of both scales
        step = b.binary("MUL", b.reshape(xs, ()), ws)
        inputs.append(b.binary("MUL", b.cast(node.input(8), np.float32), step))
    made = b.context.fresh(f"{node.name}/float")
    conv(replace(node, inputs=inputs, outputs=[made], attrs=_with_kernel(node, b, w)), b)
    _quantized(b, made, s, z, node.outputs)
