"""Normalisations."""

from __future__ import annotations

import numpy as np

from mnn_core import ModelFormatError

from ..builder import Builder
from ..node import Node
from ..rules import Unsupported, rule


@rule("BatchNormalization")
def batch_normalization(node: Node, b: Builder) -> None:
    """With the stored mean and variance: a factor and a bias per channel."""
    if node.version < 7 and not node.get("is_test", 0):
        raise Unsupported("BatchNormalization in training mode; export the model for inference")
    x, scale, bias, mean, variance = node.inputs[:5]
    epsilon = node.get("epsilon", 1e-5)
    if node.get("training_mode", 0):
        mean, variance = _batch_statistics(node, b)
    values = [b.value(n) for n in (scale, bias, mean, variance)]
    if node.version < 9 and not node.get("spatial", 1):
        raise Unsupported("BatchNormalization with spatial=0")
    if all(v is not None for v in values):
        wide = [np.asarray(v, np.float64) for v in values]
        if len({v.shape for v in wide}) != 1 or wide[0].ndim != 1:
            raise ModelFormatError(f"{node}: its parameters have shapes {[list(v.shape) for v in wide]}; expected one length")
        if b.context.for_training:
            fields = dict(zip(("slopeData", "biasData", "meanData", "varData"), (v.astype(np.float32) for v in wide)))
            b.op("BatchNorm", [x], node.outputs[:1], channels=len(wide[0]), epsilon=epsilon, **fields)
            return
        with np.errstate(all="ignore"):
            factor = wide[0] / np.sqrt(wide[3] + epsilon)
            shift = wide[1] - wide[2] * factor
        factors = [b.const(v.astype(np.float32)) for v in (factor, shift)]
        b.op("Scale", [x, *factors], node.outputs[:1], channels=len(factor))
        return
    root = b.unary("SQRT", b.binary("ADD", variance, b.number(epsilon, variance)))
    factor_name = b.binary("REALDIV", scale, root)
    shift_name = b.binary("SUB", bias, b.binary("MUL", mean, factor_name))
    shape = _channel_shape(b, x)
    factor_name, shift_name = (b.op("Reshape", [n, shape], dtype=b.dtype(x)) for n in (factor_name, shift_name))
    b.binary("ADD", b.binary("MUL", x, factor_name), shift_name, node.outputs[:1])


def _batch_statistics(node: Node, b: Builder) -> tuple[str, str]:
    """Mean and (biased) variance of each channel of the batch; makes the running ones, which outputs 1 and 2 are."""
    x, rank = node.inputs[0], b.rank(node.inputs[0])
    if rank is None:
        raise Unsupported("statistics of a tensor of unknown rank")
    axes, momentum = tuple(i for i in range(rank) if i != 1), node.get("momentum", 0.9)
    kept = b.op("Reduction", [x], operation="MEAN", dim=axes, keepDims=True)
    away = b.binary("SUB", x, kept)
    mean = b.reshape(kept, (-1,))
    variance = b.op("Reduction", [b.binary("MUL", away, away)], operation="MEAN", dim=axes, keepDims=False)
    for output, old, new in ((node.output(1), node.inputs[3], mean), (node.output(2), node.inputs[4], variance)):
        if output:
            past = b.binary("MUL", old, b.number(momentum, old))
            b.binary("ADD", past, b.binary("MUL", new, b.number(1 - momentum, new)), [output], dtype=b.dtype(old))
    return mean, variance


def _channel_shape(b: Builder, x: str) -> str:
    """(1, C, 1, ...) with -1 for C: by which a vector per channel broadcasts."""
    rank = b.rank(x)
    if rank is None:
        raise Unsupported("a tensor of unknown rank with parameters that are not constant")
    return b.ints(1, -1, *[1] * (rank - 2)) if rank >= 2 else b.ints(-1)


@rule("InstanceNormalization")
def instance_normalization(node: Node, b: Builder) -> None:
    """Each channel of each image by itself: LayerNorm of (N, C, -1), then a factor and a bias per channel."""
    x, scale, bias = node.inputs[:3]
    flat = b.reshape(x, (0, 0, -1))
    normal = b.op("LayerNorm", [flat], axis=(-1,), epsilon=node.get("epsilon", 1e-5))
    back = b.op("Reshape", [normal, b.shape_of(x)], dtype=b.dtype(x))
    _affine(node, b, back, x, scale, bias, node.outputs)


def _affine(node: Node, b: Builder, x: str, like: str, scale: str, bias: str, outputs: list[str]) -> None:
    values = b.value(scale), b.value(bias)
    if values[0] is not None and values[1] is not None:
        b.op("Scale", [x, scale, bias], outputs, channels=int(values[0].size))
        return
    shape = _channel_shape(b, like)
    factor, shift = (b.op("Reshape", [n, shape], dtype=b.dtype(like)) for n in (scale, bias))
    b.binary("ADD", b.binary("MUL", x, factor), shift, outputs)


@rule("GroupNormalization", since=21)
def group_normalization(node: Node, b: Builder) -> None:
    """LayerNorm of (N, groups, -1), then a factor and a bias per channel. MNN's GroupNorm runs on few of its backends."""
    x, scale, bias = node.inputs[:3]
    _affine(node, b, _grouped(node, b, x), x, scale, bias, node.outputs)


def _grouped(node: Node, b: Builder, x: str) -> str:
    flat = b.reshape(x, (0, node["num_groups"], -1))
    normal = b.op("LayerNorm", [flat], axis=(-1,), epsilon=node.get("epsilon", 1e-5))
    return b.op("Reshape", [normal, b.shape_of(x)], dtype=b.dtype(x))


@rule("GroupNormalization", until=20)
def group_normalization_by_groups(node: Node, b: Builder) -> None:
    """Up to opset 20 scale and bias have one number per group; each is repeated for the channels of its group."""
    x, groups = node.inputs[0], node["num_groups"]
    each = b.op("Concat", [b.ints(1), b.binary("REALDIV", b.reshape(b.size(x, 1), (1,)), b.ints(groups))], axis=0)
    vectors = [b.reshape(b.op("Tile", [b.reshape(n, (-1, 1)), each]), (-1,)) for n in node.inputs[1:3]]
    _affine(node, b, _grouped(node, b, x), x, vectors[0], vectors[1], node.outputs)


@rule("LayerNormalization", "LayerNorm")
def layer_normalization(node: Node, b: Builder) -> None:
    """Over all axes from `axis` on."""
    x, scale, bias = node.inputs[0], node.input(1), node.input(2)
    axes = _trailing(node, b, x)
    if any(node.outputs[1:]):
        _with_statistics(node, b, axes)
        return
    _layer_norm(b, x, scale, bias, axes, node.get("epsilon", 1e-5), node.outputs[:1])


def _layer_norm(b: Builder, x: str, scale: str, bias: str, axes: tuple[int, ...], epsilon: float, outputs: list[str],
                rms: bool = False) -> None:
    factor, shift = (b.value(n) if n else None for n in (scale, bias))
    fits = not bias or (shift is not None and factor is not None and shift.shape == factor.shape)
    known = b.shape(x) or (None,) * 32
    whole = factor is not None and factor.ndim == len(axes) and fits and all(
        n != 1 or known[a] == 1 for n, a in zip(factor.shape, axes))
    attrs = {"axis": axes, "epsilon": epsilon, "useRMSNorm": rms}
    if whole and factor is not None:
        gamma = b.const(factor.reshape(-1))
        beta = b.const(shift.reshape(-1) if shift is not None else np.zeros(factor.size, np.float32))
        b.op("LayerNorm", [x, gamma, beta], outputs, **attrs)
        return
    last = [n for n in (scale, bias) if n]
    y = b.op("LayerNorm", [x], 1 if last else outputs, **attrs)
    if scale:
        y = b.binary("MUL", y, scale, 1 if bias else outputs)
    if bias:
        b.binary("ADD", y, bias, outputs)


def _trailing(node: Node, b: Builder, x: str) -> tuple[int, ...]:
    """The axes from `axis` on, counted from the end."""
    axis = node.get("axis", -1)
    rank = b.rank(x)
    if -(rank or 32) <= axis < 0:
        return tuple(range(axis, 0))
    if rank is None or not 0 <= axis < rank:
        raise Unsupported(f"axis {axis} of a tensor of rank {'unknown' if rank is None else rank}")
    return tuple(range(axis - rank, 0))


def _with_statistics(node: Node, b: Builder, axes: tuple[int, ...]) -> None:
    """The form with outputs for the mean and the inverse deviation."""
    x, scale, bias = node.inputs[0], node.input(1), node.input(2)

    def outputs(i: int) -> list[str] | int:
        return [node.output(i)] if node.output(i) else 1

    mean = b.op("Reduction", [x], outputs(1), operation="MEAN", dim=axes, keepDims=True)
    centred = b.binary("SUB", x, mean)
    variance = b.op("Reduction", [b.unary("SQUARE", centred)], operation="MEAN", dim=axes, keepDims=True)
    inverse = b.unary("RSQRT", b.binary("ADD", variance, b.number(node.get("epsilon", 1e-5), x)), outputs(2))
    y = b.binary("MUL", centred, inverse)
    y = b.binary("MUL", y, scale) if scale else y
    if bias:
        b.binary("ADD", y, bias, node.outputs[:1])
    else:
        b.op("Identity", [y], node.outputs[:1])


@rule("RMSNormalization")
def rms_normalization(node: Node, b: Builder) -> None:
    x = node.inputs[0]
    axes = _trailing(node, b, x)
    _layer_norm(b, x, node.input(1), "", axes, node.get("epsilon", 1e-5), node.outputs, rms=True)


@rule("LRN")
def lrn(node: Node, b: Builder) -> None:
    b.op("LRN", node.inputs, node.outputs, regionType=0, localSize=node["size"], alpha=node.get("alpha", 1e-4),
         beta=node.get("beta", 0.75), bias=node.get("bias", 1.0))
