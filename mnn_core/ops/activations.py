"""Activations with parameters, and the old names of plain functions (which are lowered to UnaryOp)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._rules import as_array, optional, present, require_float, stage
from .registry import Example, Lowered, register
from .unary import EXACT, INEXACT

_F = np.dtype(np.float32)
_IMAGE = Spec((2, 5, 3, 4), _F)


def _floats(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    """As the first input, which must be of a float type."""
    x = present(op, inputs)
    require_float(op, x)
    return [x.without_value()]


@register("ReLU", param="Relu", examples=[
    Example({}, [_IMAGE]), Example({"slope": 0.1}, [_IMAGE]), Example({}, [Spec((0, 3), _F)]),
    Example({}, [Spec((3, 7), np.dtype(np.int32))]),
])
def relu(op: Op, x: np.ndarray) -> np.ndarray:
    """max(x, 0), or `slope` * x where x is negative. NaN stays NaN."""
    slope = op["slope"]
    with np.errstate(all="ignore"):
        return as_array(np.where(x < 0, x * slope, x) if slope else np.maximum(x, 0), x.dtype)


@register("ReLU6", param="Relu6", examples=[
    Example({}, [_IMAGE]), Example({"minValue": -0.5, "maxValue": 0.25}, [_IMAGE]), Example({}, [Spec((), _F)]),
])
def relu6(op: Op, x: np.ndarray) -> np.ndarray:
    """x clipped to minValue..maxValue; maxValue where the two cross. NaN stays NaN."""
    wide = x if x.dtype.kind == "f" else x.astype(np.float64)
    return as_array(np.minimum(np.maximum(wide, wide.dtype.type(op["minValue"])), wide.dtype.type(op["maxValue"])), x.dtype)


def _negative_exp(op: Op, x: Spec, alpha: float, scale: float) -> Lowered:
    """scale * (max(x, 0) + alpha * (e^min(x, 0) - 1)), of atomic ops."""
    source, out = op.inputs[0], op.outputs[0]
    constants = {stage(op, "zero"): np.zeros((), x.dtype), stage(op, "alpha"): np.array(alpha * scale, x.dtype)}
    ops = [
        Op("BinaryOp", [source, stage(op, "zero")], [stage(op, "low")], {"opType": "MINIMUM"}),
        Op("UnaryOp", [stage(op, "low")], [stage(op, "exp")], {"opType": "EXPM1"}),
        Op("BinaryOp", [stage(op, "exp"), stage(op, "alpha")], [stage(op, "bent")], {"opType": "MUL"}),
        Op("BinaryOp", [source, stage(op, "zero")], [stage(op, "high")], {"opType": "MAXIMUM"}),
    ]
    straight = stage(op, "high")
    if scale != 1:
        constants[stage(op, "scale")] = np.array(scale, x.dtype)
        ops.append(Op("BinaryOp", [straight, stage(op, "scale")], [stage(op, "straight")], {"opType": "MUL"}))
        straight = stage(op, "straight")
    ops.append(Op("BinaryOp", [straight, stage(op, "bent")], [out], {"opType": "ADD"}))
    return Lowered(ops, constants)


def _elu(x: np.ndarray, alpha: float, scale: float) -> np.ndarray:
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        return as_array(scale * (np.maximum(wide, 0) + alpha * np.expm1(np.minimum(wide, 0))), x.dtype)


@register("ELU", param="ELU", infer=_floats, examples=[Example({"alpha": 1.0}, [_IMAGE]), Example({"alpha": 0.3}, [_IMAGE])],
          lower=lambda op, ins, outs: _negative_exp(op, outs[0], op["alpha"], 1.0))
def elu(op: Op, x: np.ndarray) -> np.ndarray:
    """x, or `alpha` * (e^x - 1) where x is negative."""
    return _elu(x, op["alpha"], 1.0)


@register("Selu", param="Selu", infer=_floats, examples=[Example({"alpha": 1.6732632, "scale": 1.0507010}, [_IMAGE])],
          lower=lambda op, ins, outs: _negative_exp(op, outs[0], op["alpha"], op["scale"]))
def selu(op: Op, x: np.ndarray) -> np.ndarray:
    """`scale` * (x, or `alpha` * (e^x - 1) where x is negative)."""
    return _elu(x, op["alpha"], op["scale"])


def per_channel(values: np.ndarray, rank: int) -> np.ndarray:
    """A vector of one number, or of one a channel (dimension 1), shaped to broadcast against a tensor of a rank."""
    if values.size == 1:
        return values.reshape(())
    return values.reshape(-1, *[1] * (rank - 2)) if values.ndim == 1 else values


def channel_rule(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    """As the first input; the others are vectors of one number a channel, or of one number, or broadcast to it."""
    x = present(op, inputs)
    for index in range(1, len(inputs)):
        spec = optional(inputs, index)
        if spec is None or spec.size == 1:
            continue
        channels = x.shape[1] if x.rank > 1 else x.size
        if spec.rank == 1 and spec.size != channels:
            raise ShapeError(f"{op}: input {index} has {spec.size} numbers for the {channels} channels of {x}")
        if spec.rank > 1 and np.broadcast_shapes(spec.shape, x.shape) != x.shape:
            raise ShapeError(f"{op}: input {index}, {spec}, does not broadcast to {x}")
    return [x.without_value()]


@register("PReLU", param="PRelu", infer=channel_rule, examples=[
    Example({}, [_IMAGE, np.linspace(-1, 1, 5, dtype=np.float32)]),
    Example({}, [_IMAGE, np.array([0.2], np.float32)]),
    Example({}, [Spec((3, 5), _F), np.linspace(-1, 1, 5, dtype=np.float32)]),
])
def prelu(op: Op, x: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """x, or slope * x where x is negative; inputs x, slope (one number, or one a channel)."""
    with np.errstate(all="ignore"):
        return as_array(np.where(x < 0, x * per_channel(slope, x.ndim), x), x.dtype)


def _threshold_lower(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    return Lowered([
        Op("BinaryOp", [op.inputs[0], stage(op, "threshold")], [stage(op, "above")], {"opType": "GREATER"}),
        Op("Cast", [stage(op, "above")], [op.outputs[0]], {"dstT": "DT_FLOAT"}),
    ], {stage(op, "threshold"): np.array(op["alpha"], outputs[0].dtype)})


@register("Threshold", param="ELU", infer=_floats, lower=_threshold_lower, examples=[Example({"alpha": 0.5}, [_IMAGE])])
def threshold(op: Op, x: np.ndarray) -> np.ndarray:
    """1 where x > `alpha` (MNN's name for the threshold), else 0."""
    return as_array(x > x.dtype.type(op["alpha"]), x.dtype)


@register("Power", attrs={"power": 1.0, "scale": 1.0, "shift": 0.0}, infer=_floats,
          examples=[Example({"power": 2.0, "scale": 0.5, "shift": 1.0}, [_IMAGE])])
def power(op: Op, x: np.ndarray) -> np.ndarray:
    """Caffe's (shift + scale * x) ^ power. MNN's files hold no parameters of it."""
    with np.errstate(all="ignore"):
        return as_array((op["shift"] + op["scale"] * x.astype(np.float64)) ** op["power"], x.dtype)


_functions = {**EXACT, **INEXACT}


def _old_name(op_type: str, function: str) -> None:
    def lower(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
        return Lowered([Op("UnaryOp", list(op.inputs), list(op.outputs), {"opType": function}, op.name)])

    @register(op_type, infer=_floats, lower=lower, examples=[Example({}, [_IMAGE])])
    def compute(op: Op, x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return as_array(_functions[function](x.astype(np.float64)), x.dtype)


_OLD = {"Sigmoid": "SIGMOID", "TanH": "TANH", "AbsVal": "ABS", "Exp": "EXP", "Log": "LOG", "Bnll": "BNLL"}
for _type, _function in _OLD.items():
    _old_name(_type, _function)
