"""onnxruntime's products with, and rows of, weights of few bits that share scales in blocks."""

from __future__ import annotations

import numpy as np

from mnn_core import ModelFormatError
from mnn_core.formats import from_codes

from ..builder import Builder
from ..node import Node
from ..packed import constant, unpack, zero_points
from ..reuse import MICROSOFT
from ..rules import Unsupported, rule

#: Values of the codes of "4-bit NormalFloat" and of bitsandbytes' 4-bit floats (Dettmers et al., QLoRA, 2023).
_NF4 = (-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
        -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
        0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0)
_FP4 = tuple(sign * v / 12 for sign in (1, -1) for v in (0, 0.0625, 8, 12, 4, 6, 2, 3))


@rule("MatMulNBits", domain=MICROSOFT)
def matmul_nbits(node: Node, b: Builder) -> None:
    """A times a weight [N, K] of 2, 4 or 8 bits, plus a bias. The weight stays packed where its blocks divide K."""
    count, inner, block, bits = node["N"], node["K"], node["block_size"], node.get("bits", 4)
    if node.get("weight_prepacked", 0):
        raise Unsupported("weight_prepacked, a layout of one graphics processor; export with 0")
    codes = constant(b, node.inputs[1], "B")
    blocks = -(-inner // block)
    if not codes.size:
        raise Unsupported("an empty B, which stands for a projection that is left out")
    codes = unpack(codes.reshape(count, blocks, -1), bits, block)
    scales = constant(b, node.inputs[2], "scales").astype(np.float32).reshape(count, blocks)
    given = constant(b, node.input(3), "zero_points") if node.input(3) else None
    order = constant(b, node.input(4), "g_idx") if node.input(4) else None
    weight = b.context.fresh(f"{b.node_name}/weight")
    if order is None and inner == blocks * block:
        alpha = scales.reshape(-1, 1)
        if given is not None:
            low = -zero_points(given, bits, scales.shape) * scales
            alpha = np.stack([low.reshape(-1), scales.reshape(-1)], 1)
        b.graph.constants[weight] = from_codes(codes.reshape(-1, block), alpha, bits, (count, inner), weight)
    else:
        zeros = zero_points(given, bits, scales.shape)
        group = order.reshape(-1) if order is not None else np.arange(inner) // block
        if group.shape != (inner,) or group.min() < 0 or group.max() >= blocks:
            raise ModelFormatError(f"{node}: g_idx has {group.size} entries from {group.min()} to {group.max()}; expected "
                                   f"{inner}, below {blocks}")
        flat = codes.reshape(count, -1)[:, :inner].astype(np.float32)
        b.graph.constants[weight] = (flat - zeros[:, group]) * scales[:, group]
    b.declare(weight, np.dtype(np.float32), 2)
    _multiply(b, node.inputs[0], weight, node.input(5), node.outputs)


def _multiply(b: Builder, x: str, weight: str, bias: str, outputs: list[str], transposed: bool = True) -> None:
    if bias and b.value(bias) is not None:
        y = b.op("MatMul", [x, weight, bias], outputs, transposeB=transposed)
    else:
        y = b.op("MatMul", [x, weight], 1 if bias else outputs, transposeB=transposed)
        y = b.binary("ADD", y, bias, outputs) if bias else y
    b.declare(y, b.dtype(x), b.rank(x))


@rule("MatMulBnb4", domain=MICROSOFT)
def matmul_bnb4(node: Node, b: Builder) -> None:
    """A times a weight [N, K] of 4-bit floats, each block of which, in order, has a largest magnitude."""
    count, inner, block, kind = node["N"], node["K"], node["block_size"], node["quant_type"]
    if kind not in (0, 1):
        raise Unsupported(f"quant_type {kind}; expected 0 or 1")
    data = constant(b, node.inputs[1], "B").reshape(-1).astype(np.uint8)
    scales = constant(b, node.inputs[2], "absmax").astype(np.float32).reshape(-1)
    codes = np.stack([data >> 4, data & 15], 1).reshape(-1)[: count * inner]
    if codes.size != count * inner or scales.size * block < count * inner:
        raise ModelFormatError(f"{node}: {codes.size} codes and {scales.size} blocks for a weight {count} x {inner}")
    values = np.array(_NF4 if kind else _FP4, np.float32)[codes] * np.repeat(scales, block)[: codes.size]
    weight = b.const(values.reshape(count, inner))
    _multiply(b, node.inputs[0], weight, "", node.outputs, bool(node.get("transB", 1)))


@rule("GatherBlockQuantized", domain=MICROSOFT)
def gather_block_quantized(node: Node, b: Builder) -> None:
    """Gather of a weight that is decoded first; bytes hold several codes of 2 or 4 bits along the last axis."""
    data = constant(b, node.inputs[0], "data")
    scales = constant(b, node.inputs[2], "scales").astype(np.float32)
    zeros = constant(b, node.input(3), "zero_points") if node.input(3) else None
    low = b.type(node.inputs[0])
    bits, block, kind = node.get("bits", 4), node.get("block_size", 128), getattr(low, "name", "")
    axis, along = node.get("quantize_axis", 1) % data.ndim, node.get("gather_axis", 0)
    if kind == "uint8":
        data = unpack(data, bits, data.shape[-1] * (8 // bits))
        zeros = zero_points(zeros, bits, scales.shape)
    elif data.dtype.kind == "f" and not block:
        block = data.shape[axis]
    group = np.arange(data.shape[axis]) // max(block, 1)
    if scales.ndim != data.ndim or group.max(initial=-1) >= scales.shape[axis]:
        raise ModelFormatError(f"{node}: scales of shape {list(scales.shape)} for data of shape {list(data.shape)} in blocks "
                               f"of {block} along axis {axis}")
    values = data.astype(np.float32)
    if zeros is not None:
        values = values - np.take(zeros.astype(np.float32), group, axis)
    table = b.const((values * np.take(scales, group, axis)).astype(np.float32), dtype=b.dtype(node.inputs[2]))
    y = b.gather(table, node.inputs[1], along, node.outputs)
    rank = b.rank(node.inputs[1])
    b.declare(y, b.dtype(node.inputs[2]), None if rank is None else rank + data.ndim - 1)
