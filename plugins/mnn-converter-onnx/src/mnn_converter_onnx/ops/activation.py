"""Activation functions."""

from __future__ import annotations

import numpy as np

from ..builder import Builder
from ..node import Node
from ..rules import Unsupported, rule


@rule("Relu")
def relu(node: Node, b: Builder) -> None:
    x = node.inputs[0]
    if b.is_float(x):
        b.op("ReLU", [x], node.outputs)
    else:
        b.binary("MAXIMUM", x, b.number(0, x), node.outputs)


@rule("LeakyRelu")
def leaky_relu(node: Node, b: Builder) -> None:
    b.op("ReLU", node.inputs, node.outputs, slope=node.get("alpha", 0.01))


@rule("PRelu")
def prelu(node: Node, b: Builder) -> None:
    """A slope of one number per channel is MNN's PReLU; another one goes through Select-free arithmetic."""
    x, slope = node.inputs[0], node.inputs[1]
    value, rank = b.value(slope), b.rank(x)
    if node.version < 7 and b.rank(slope) == 1:  # before broadcasting was NumPy's: one number, or one for each channel
        if rank is None:
            raise Unsupported("a slope for each channel of a tensor of unknown rank")
        slope = b.reshape(slope, (-1, *[1] * (rank - 2)))
        value = b.value(slope)
    if value is not None and rank is not None and rank >= 2:
        lined = (1,) * (rank - value.ndim) + value.shape
        if len(lined) == rank and all(d == 1 for i, d in enumerate(lined) if i != 1):
            flat = b.const(value.reshape(-1))
            b.op("PReLU", [x, flat], node.outputs, slopeCount=int(value.size))
            return
    zero = b.number(0, x)
    negative = b.binary("MUL", b.binary("MINIMUM", x, zero), slope)
    b.binary("ADD", b.binary("MAXIMUM", x, zero), negative, node.outputs)


@rule("Elu")
def elu(node: Node, b: Builder) -> None:
    b.op("ELU", node.inputs, node.outputs, alpha=node.get("alpha", 1.0))


@rule("Selu")
def selu(node: Node, b: Builder) -> None:
    alpha = node.get("alpha", 1.6732631921768188)
    b.op("Selu", node.inputs, node.outputs, alpha=alpha, scale=node.get("gamma", 1.0507010221481323))


@rule("Celu")
def celu(node: Node, b: Builder) -> None:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)) = alpha * elu(x / alpha)."""
    x, alpha = node.inputs[0], node.get("alpha", 1.0)
    if alpha == 1:
        b.op("ELU", [x], node.outputs, alpha=1.0)
        return
    scaled = b.op("ELU", [b.binary("MUL", x, b.number(1 / alpha, x))], alpha=1.0)
    b.binary("MUL", scaled, b.number(alpha, x), node.outputs)


@rule("ThresholdedRelu")
def thresholded_relu(node: Node, b: Builder) -> None:
    x = node.inputs[0]
    above = b.binary("GREATER", x, b.number(node.get("alpha", 1.0), x), dtype=np.bool_)
    b.op("Select", [above, x, b.number(0, x)], node.outputs, dtype=b.dtype(x))


@rule("Shrink")
def shrink(node: Node, b: Builder) -> None:
    """Integers are computed as floats, and truncated."""
    x, lambd, bias = node.inputs[0], node.get("lambd", 0.5), node.get("bias", 0.0)
    kind = b.dtype(x)
    whole = kind.kind in "iu"
    if whole:
        x = b.cast(x, np.float32)
    low = b.binary("LESS", x, b.number(-lambd, x), dtype=np.bool_)
    high = b.binary("GREATER", x, b.number(lambd, x), dtype=np.bool_)
    zero = b.number(0, x)
    inner = b.op("Select", [high, b.binary("SUB", x, b.number(bias, x)), zero], dtype=b.dtype(x))
    y = b.op("Select", [low, b.binary("ADD", x, b.number(bias, x)), inner], 1 if whole else node.outputs, dtype=b.dtype(x))
    if whole:
        b.cast(y, kind, node.outputs)


@rule("HardSigmoid")
def hard_sigmoid(node: Node, b: Builder) -> None:
    x = node.inputs[0]
    line = b.binary("MUL", x, b.number(node.get("alpha", 0.2), x))
    b.op("ReLU6", [b.binary("ADD", line, b.number(node.get("beta", 0.5), x))], node.outputs, minValue=0.0, maxValue=1.0)


@rule("Softplus")
def softplus(node: Node, b: Builder) -> None:
    """log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)), which does not overflow."""
    x = node.inputs[0]
    small = b.unary("LOG1P", b.unary("EXP", b.unary("NEG", b.unary("ABS", x))))
    b.binary("ADD", b.binary("MAXIMUM", x, b.number(0, x)), small, node.outputs)


@rule("Softsign")
def softsign(node: Node, b: Builder) -> None:
    x = node.inputs[0]
    b.binary("REALDIV", x, b.binary("ADD", b.unary("ABS", x), b.number(1, x)), node.outputs)


@rule("Mish")
def mish(node: Node, b: Builder) -> None:
    """x * tanh(softplus(x))."""
    x = node.inputs[0]
    small = b.unary("LOG1P", b.unary("EXP", b.unary("NEG", b.unary("ABS", x))))
    soft = b.binary("ADD", b.binary("MAXIMUM", x, b.number(0, x)), small)
    b.binary("MUL", x, b.unary("TANH", soft), node.outputs)


@rule("Clip", until=10)
def clip_attributes(node: Node, b: Builder) -> None:
    x = node.inputs[0]
    low, high = node.get("min", float(np.finfo(np.float32).min)), node.get("max", float(np.finfo(np.float32).max))
    b.op("ReLU6", [x], node.outputs, minValue=low, maxValue=high)


@rule("Clip", since=11)
def clip(node: Node, b: Builder) -> None:
    x, low, high = node.inputs[0], node.input(1), node.input(2)
    values = [b.value(n) if n else None for n in (low, high)]
    if b.is_float(x) and (not low or values[0] is not None) and (not high or values[1] is not None) and (low or high):
        bounds = [float(np.float32(v.reshape(()))) if v is not None else d
                  for v, d in zip(values, (float(np.finfo(np.float32).min), float(np.finfo(np.float32).max)))]
        if bounds[0] <= bounds[1]:
            if bounds[0] == 0 and not high:
                b.op("ReLU", [x], node.outputs)
            else:
                b.op("ReLU6", [x], node.outputs, minValue=bounds[0], maxValue=bounds[1])
            return
    if low and high:
        b.binary("MINIMUM", b.binary("MAXIMUM", x, low), high, node.outputs)
    elif low or high:
        b.binary("MAXIMUM" if low else "MINIMUM", x, low or high, node.outputs)
    else:
        b.op("Identity", [x], node.outputs)


@rule("Softmax", since=13)
def softmax(node: Node, b: Builder) -> None:
    b.op("Softmax", node.inputs, node.outputs, axis=node.get("axis", -1))


@rule("LogSoftmax", since=13)
def log_softmax(node: Node, b: Builder) -> None:
    _log_softmax(b, node.inputs[0], node.get("axis", -1), node.outputs)


def _log_softmax(b: Builder, x: str, axis: int, outputs: list[str] | int) -> str:
    """x - max - log(sum(exp(x - max))), which neither overflows nor loses small probabilities."""
    shifted = b.binary("SUB", x, b.op("Reduction", [x], operation="MAXIMUM", dim=(axis,), keepDims=True))
    total = b.op("Reduction", [b.unary("EXP", shifted)], operation="SUM", dim=(axis,), keepDims=True)
    return b.binary("SUB", shifted, b.unary("LOG", total), outputs)


@rule("Hardmax", since=13)
def hardmax(node: Node, b: Builder) -> None:
    _hardmax(b, node.inputs[0], node.get("axis", -1), node.outputs)


def _hardmax(b: Builder, x: str, axis: int, outputs: list[str] | int) -> str:
    best = b.op("ArgMax", [x], dtype=np.int64, axis=axis, topK=1)
    return b.op("OneHot", [best, b.size(x, axis), b.number(1, x), b.number(0, x)], outputs, dtype=b.dtype(x), axis=axis)


@rule("Softmax", "LogSoftmax", "Hardmax", until=12)
def flattened(node: Node, b: Builder) -> None:
    """Up to opset 12 the tensor is flattened to a matrix at `axis` (1 if not given) and rows are normalised."""
    x, axis = node.inputs[0], node.get("axis", 1)
    functions = {"LogSoftmax": _log_softmax, "Hardmax": _hardmax,
                 "Softmax": lambda b, x, axis, outputs: b.op("Softmax", [x], outputs, axis=axis)}
    rank = b.rank(x)
    if axis == -1 or (rank is not None and axis == rank - 1):
        functions[node.op_type](b, x, axis, node.outputs)
        return
    if axis < 0:
        if rank is None:
            raise Unsupported(f"axis {axis} of a tensor of unknown rank")
        axis += rank
    flat = b.op("Flatten", [x], axis=axis) if axis else b.reshape(x, (1, -1))
    result = functions[node.op_type](b, flat, 1, 1)
    b.op("Reshape", [result, b.shape_of(x)], node.outputs)
