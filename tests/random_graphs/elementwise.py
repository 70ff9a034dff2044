"""Elementwise operators, with broadcasting."""

from __future__ import annotations

import numpy as np

from .draft import FLOATS, Draft, Tensor
from .families import family

#: Bounds of the inputs within which a function is defined, and smooth.
_DOMAINS = {"Acos": (-0.95, 0.95), "Asin": (-0.95, 0.95), "Atanh": (-0.9, 0.9), "Acosh": (1.1, 5), "Log": (0.1, 5),
            "Sqrt": (0.1, 5), "Tan": (-1.2, 1.2), "Reciprocal": (0.25, 4)}


@family("Abs", "Neg", "Sign", "Ceil", "Floor", "Round", "Exp", "Log", "Sqrt", "Reciprocal", "Sin", "Cos", "Tan", "Asin", "Acos",
        "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh", "Erf", "Sigmoid", "Softplus", "Softsign", "HardSwish",
        "Mish", "Relu", "Not", "BitwiseNot", "IsNaN", "Identity")
def unary(g: Draft, op: str) -> list[Tensor]:
    low, high = _DOMAINS.get(op, (-3, 3))
    x = g.tensor(g.types(op), low=low, high=high)
    if op == "IsNaN" and x.value.size and not g.chained:
        x.value.reshape(-1)[0] = np.nan
    return g.node(op, [x])


@family("Elu", "Selu", "LeakyRelu", "ThresholdedRelu", "Celu", "HardSigmoid", "Shrink", "Gelu", "Swish", "IsInf")
def activation(g: Draft, op: str) -> list[Tensor]:
    numbers = {"Elu": {"alpha": 0.7}, "Selu": {"alpha": 1.5, "gamma": 0.9}, "LeakyRelu": {"alpha": 0.2},
               "ThresholdedRelu": {"alpha": 0.6}, "Celu": {"alpha": 1.7}, "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
               "Shrink": {"lambd": 0.8, "bias": 0.25}, "Swish": {"alpha": 1.5},
               "Gelu": {"approximate": g.pick(["tanh", "none"])},
               "IsInf": {"detect_negative": g.integer(0, 1), "detect_positive": g.integer(0, 1)}}[op]
    x = g.tensor(g.types(op))
    if op == "IsInf" and x.value.size > 1 and not g.chained:
        x.value.reshape(-1)[:2] = [-np.inf, np.inf]
    return g.node(op, [x], **{k: v for k, v in numbers.items() if g.flag()})


def second(g: Draft, x: Tensor, low: float = -3, high: float = 3, grow: bool = True) -> Tensor:
    """A tensor that broadcasts with another, of its type."""
    return g.tensor([x.dtype], (0, 5), g.broadcast(x.shape, grow), low, high)


@family("Add", "Sub", "Mul", "And", "Or", "Xor", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "BitwiseAnd",
        "BitwiseOr", "BitwiseXor")
def binary(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op))
    y = second(g, x)
    return g.node(op, [x, y] if g.flag() else [y, x])


@family("Div", "Mod", "BitShift", "Pow")
def careful_binary(g: Draft, op: str) -> list[Tensor]:
    """Those that are not defined for all values."""
    if op == "Pow":
        x = g.tensor(g.types(op), low=0.5, high=4)
        if g.opset < 12:
            return g.node(op, [x, second(g, x, 0, 3)])
        return g.node(op, [x, g.tensor(g.types(op, 1), (0, 5), g.broadcast(x.shape), 0, 3)])
    x = g.tensor(g.types(op), low=-9, high=9)
    y = second(g, x, 1, 4)
    if g.flag() and x.dtype.kind in "fi" and not y.noise and y.owner is g:
        y = g.given(-y.value)
    if op == "BitShift":
        return g.node(op, [x, y], direction=g.pick(["LEFT", "RIGHT"]))
    return g.node(op, [x, y], fmod=1 if x.dtype.kind == "f" or g.flag() else None) if op == "Mod" else g.node(op, [x, y])


@family("Max", "Min", "Sum", "Mean")
def variadic(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op))
    inputs = [x, *(second(g, x, grow=False) for _ in range(g.integer(0, 3)))]
    return g.node(op, inputs[::-1] if g.flag() else inputs)


@family("Where")
def where(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op, 1))
    return g.node(op, [g.tensor([bool], (0, 5), g.broadcast(x.shape)), x, second(g, x, grow=False)])


@family("Clip")
def clip(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op))
    low, high = g.flag(), g.flag()
    if g.opset < 11:
        return g.node(op, [x], min=-1.0 if low else None, max=1.5 if high else None)
    ends = [g.given(np.array(v, x.dtype)) if on else None for v, on in (((1, 0)[x.dtype.kind != "u"], low), (2, high))]
    return g.node(op, [x, *ends])


@family("PRelu")
def prelu(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 4))
    return g.node(op, [x, g.tensor([x.dtype], (0, 4), g.broadcast(x.shape, grow=False))])


@family("Dropout")
def dropout(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op))
    outputs = 1 + g.integer(0, 1 if g.opset >= 12 else 0)  # before, the mask is of training only
    if g.opset < 12:
        return g.node(op, [x], outputs, ratio=0.3 if g.flag() else None)
    rest = [g.const(np.float32(0.3)), g.const(np.array(False))][:g.integer(0, 2)]
    return g.node(op, [x, *rest], outputs)


@family("Cast", "CastLike", "BitCast")
def cast(g: Draft, op: str) -> list[Tensor]:
    """Values that the target holds; which fraction of a float becomes an integer is defined."""
    to = g.dtype(g.types("CastLike" if g.opset >= 15 else "Cast", 0))
    x = g.tensor(g.types(op), low=-100 if to.kind in "if" else 0, high=100)
    code = {np.dtype(v): k for k, v in _codes().items()}[to]
    if op == "CastLike":
        return g.node(op, [x, g.tensor([to], (0, 2))])
    if op == "BitCast":
        to = g.pick([d for d in g.types(op) if d.itemsize == x.dtype.itemsize and d.kind != "b"])
        code = {np.dtype(v): k for k, v in _codes().items()}[to]
    return g.node(op, [x], to=code)


def _codes() -> dict[int, type]:
    return {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
            10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64}


__all__ = ["FLOATS"]
