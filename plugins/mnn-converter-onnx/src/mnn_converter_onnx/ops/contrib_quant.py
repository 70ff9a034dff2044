"""onnxruntime's operators on quantised numbers: computed on the numbers that they stand for, and rounded once at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import rules
from ..builder import Builder
from ..node import Node
from ..reuse import MICROSOFT, standard
from ..rules import Unsupported, rule
from .quant import dynamic_quantize_linear, matmul_integer


def dequantized(b: Builder, triple: Sequence[str], axis: int = 1) -> str:
    """(x - zero point) * scale for (x, scale, zero point)."""
    return standard(b, "DequantizeLinear", list(triple), version=13, axis=axis)


def quantized(b: Builder, x: str, scale: str, zero: str, outputs: list[str]) -> None:
    """x rounded to steps of a scale."""
    standard(b, "QuantizeLinear", [x, scale, zero], outputs, 13)


@rule("QuantizeLinear", "DequantizeLinear", domain=MICROSOFT)
def as_standard(node: Node, b: Builder) -> None:
    standard(b, node.op_type, node.inputs, node.outputs, 21, **node.attrs)


@rule("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def arithmetic(node: Node, b: Builder) -> None:
    """(A, scale, zero, B, scale, zero, scale, zero of the result)."""
    kind = {"QLinearAdd": "ADD", "QLinearMul": "MUL"}[node.op_type]
    x, y = dequantized(b, node.inputs[:3]), dequantized(b, node.inputs[3:6])
    quantized(b, b.binary(kind, x, y), node.inputs[6], node.input(7), node.outputs)


@rule("QLinearSigmoid", "QLinearLeakyRelu", "QLinearReduceMean", "QLinearSoftmax", domain=MICROSOFT)
def unary(node: Node, b: Builder) -> None:
    """(X, scale, zero, scale, zero of the result)."""
    kind, version, attrs = node.op_type.removeprefix("QLinear"), 13, dict(node.attrs)
    if kind == "Softmax":
        version = attrs.pop("opset", 13)
    x = standard(b, kind, [dequantized(b, node.inputs[:3])], version=version, **attrs)
    quantized(b, x, node.inputs[3], node.input(4), node.outputs)


def _with_channels_first(node: Node, b: Builder, x: str) -> str:
    if not node.get("channels_last", 0):
        return x
    rank = b.rank(x)
    if rank is None:
        raise Unsupported("channels_last for a tensor of unknown rank")
    return b.op("Permute", [x], dims=(0, rank - 1, *range(1, rank - 1)))


def _give_channels(node: Node, b: Builder, y: str, rank: int | None, scale: str, zero: str) -> None:
    """Quantises y into the output, with the channels where the node has them."""
    if not node.get("channels_last", 0):
        quantized(b, y, scale, zero, node.outputs)
        return
    assert rank is not None
    made = b.context.fresh(f"{node.name}/first")
    quantized(b, y, scale, zero, [made])
    b.op("Permute", [made], node.outputs, dims=(0, *range(2, rank), 1))


@rule("QLinearAveragePool", "QLinearGlobalAveragePool", domain=MICROSOFT)
def pool(node: Node, b: Builder) -> None:
    rank = b.rank(node.inputs[0])
    x = _with_channels_first(node, b, dequantized(b, node.inputs[:3]))
    attrs = {k: v for k, v in node.attrs.items() if k != "channels_last"}
    if rank is not None:
        b.declare(x, np.dtype(np.float32), rank)
    _give_channels(node, b, standard(b, node.op_type.removeprefix("QLinear"), [x], version=19, **attrs), rank, node.inputs[3],
                   node.input(4))


@rule("QLinearConv", domain=MICROSOFT)
def conv(node: Node, b: Builder) -> None:
    """As the standard operator; channels_last puts the channels of x and of the result behind the pixels."""
    attrs = {k: v for k, v in node.attrs.items() if k != "channels_last"}
    rank = b.rank(node.inputs[3])
    x = node.inputs[0]
    if rank is not None:
        b.declare(x, b.type(x), rank)
    inputs = [_with_channels_first(node, b, x), *node.inputs[1:]]
    if not node.get("channels_last", 0):
        standard(b, "QLinearConv", inputs, node.outputs, 10, **attrs)
        return
    made = standard(b, "QLinearConv", inputs, version=10, **attrs)
    assert rank is not None
    b.op("Permute", [made], node.outputs, dims=(0, *range(2, rank), 1))


@rule("QLinearConcat", domain=MICROSOFT)
def concat(node: Node, b: Builder) -> None:
    """(scale, zero of the result, then scale, zero and x of each part); x comes first in each triple."""
    parts = [dequantized(b, node.inputs[i:i + 3]) for i in range(2, len(node.inputs), 3)]
    quantized(b, b.op("Concat", parts, axis=node["axis"]), node.inputs[0], node.inputs[1], node.outputs)


@rule("QLinearWhere", domain=MICROSOFT)
def where(node: Node, b: Builder) -> None:
    x, y = dequantized(b, node.inputs[1:4]), dequantized(b, node.inputs[4:7])
    quantized(b, b.op("Select", [node.inputs[0], x, y], dtype=np.float32), node.inputs[7], node.input(8), node.outputs)


@rule("QGemm", domain=MICROSOFT)
def gemm(node: Node, b: Builder) -> None:
    """alpha * A' * B' + C, C in steps of all three factors; the result stays float where no scale for it is given."""
    alpha, transposed = node.get("alpha", 1.0), bool(node.get("transB", 0))
    x = dequantized(b, node.inputs[:3])
    w = dequantized(b, node.inputs[3:6], 0 if transposed else 1)
    product = b.op("MatMul", [x, w], transposeA=bool(node.get("transA", 0)), transposeB=transposed)
    if node.input(6):
        step = b.binary("MUL", b.reshape(node.inputs[1], ()), node.inputs[4])
        product = b.binary("ADD", product, b.binary("MUL", b.cast(node.inputs[6], np.float32), step))
    scale = node.input(7)
    y = b.binary("MUL", product, b.number(alpha, product), 1 if scale else node.outputs) if alpha != 1 or not scale else product
    if scale:
        quantized(b, y, scale, node.input(8), node.outputs)


@rule("MatMulIntegerToFloat", domain=MICROSOFT)
def matmul_integer_to_float(node: Node, b: Builder) -> None:
    """(A, B, scale of A, scale of B, zero of A, zero of B, bias)."""
    x, w, x_scale, w_scale, x_zero, w_zero, bias = (node.input(i) for i in range(7))
    _scaled_product(b, [x, w, x_zero, w_zero], x_scale, w_scale, bias, node.outputs)


@rule("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_quantize_matmul(node: Node, b: Builder) -> None:
    """A is quantised by its own extent. (A, B, scale of B, zero of B, bias)."""
    x, w, w_scale, w_zero, bias = (node.input(i) for i in range(5))
    names = [b.context.fresh(f"{node.name}/{part}") for part in ("codes", "scale", "zero")]
    dynamic_quantize_linear(Node("DynamicQuantizeLinear", "", 11, b.node_name, [x], names), b)
    _scaled_product(b, [names[0], w, names[2], w_zero], names[1], w_scale, bias, node.outputs)


def _scaled_product(b: Builder, operands: list[str], x_scale: str, w_scale: str, bias: str, outputs: list[str]) -> None:
    made = b.context.fresh(f"{b.node_name}/integers")
    matmul_integer(Node("MatMulInteger", "", 10, b.node_name, operands, [made]), b)
    scale = b.binary("MUL", x_scale, w_scale)
    y = b.binary("MUL", b.cast(made, np.float32), scale, 1 if bias else outputs, dtype=np.float32)
    if bias:
        b.binary("ADD", y, bias, outputs)


@rule("DynamicQuantizeLSTM", domain=MICROSOFT)
def dynamic_quantize_lstm(node: Node, b: Builder) -> None:
    """An op of our own: how much the rounding of inputs and states loses is part of what the operator is."""
    names = ("activation_alpha", "activation_beta", "activations", "clip", "direction", "input_forget")
    b.op("com.microsoft.DynamicQuantizeLSTM", node.inputs, node.outputs, **{k: node.attrs[k] for k in names if k in node.attrs})


@rule("QAttention", domain=MICROSOFT)
def attention(node: Node, b: Builder) -> None:
    """Attention of quantised x and weight: (x, weight, bias, scales of both, mask, zeros of both, past)."""
    x, weight, bias, x_scale, w_scale, mask, x_zero, w_zero, past = (node.input(i) for i in range(9))
    inputs = [dequantized(b, [x, x_scale, x_zero], 2), dequantized(b, [weight, w_scale, w_zero]), bias, mask, past]
    _as_contrib("Attention", node, b, inputs, node.attrs)


@rule("QEmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_normalization(node: Node, b: Builder) -> None:
    """The tables, gamma and beta (inputs 2 to 6) are quantised; scales are inputs 8 to 12, zero points 13 to 17."""
    tables = [dequantized(b, [node.input(i), node.input(i + 6), node.input(i + 11)]) if node.input(i) else ""
              for i in range(2, 7)]
    _as_contrib("EmbedLayerNormalization", node, b, [*node.inputs[:2], *tables, node.input(7)], node.attrs)


def _as_contrib(op_type: str, node: Node, b: Builder, inputs: list[str], attrs: Any) -> None:
    found = rules.find(MICROSOFT, op_type, 1)
    assert found is not None
    found.convert(Node(op_type, MICROSOFT, 1, node.name, inputs, node.outputs, attrs), b)
