"""Quantisation: FloatToInt8, Int8ToFloat, DynamicQuant, EltwiseInt8.

A quantised number q stands for (q - zero) * scale. Rounding is half to even, as ONNX has it, and saturates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._rules import FLOAT32, as_array, broadcast, present, require_float
from .activations import per_channel
from .cast import cast
from .registry import Example, register

INT8 = np.dtype(np.int8)


def _per_channel(values: Any, rank: int) -> np.ndarray:
    return per_channel(np.asarray(values, np.float32).reshape(-1), rank)


def _scale(param: Mapping[str, Any] | Op, rank: int) -> np.ndarray:
    values = np.asarray(param["tensorScale"], np.float32)
    return _per_channel(values, rank) if values.size else np.ones((), np.float32)


def _zero(param: Mapping[str, Any] | Op, rank: int) -> np.ndarray:
    values = np.asarray(param["floatzeros"], np.float32)
    return _per_channel(values if values.size else param["zeroPoint"], rank)


def _saturated(x: np.ndarray, zero: np.ndarray, low: int, high: int) -> np.ndarray:
    """x rounded, moved by zero and clipped to low..high, as int8. NaN is 0."""
    return cast(np.clip(np.rint(np.rint(x) + zero), low, high).astype(np.float32), INT8)


def _check(op: Op, x: Spec) -> None:
    for name in ("tensorScale", "floatzeros"):
        if len(op[name]) > 1 and (x.rank < 2 or len(op[name]) != x.shape[1]):
            raise ShapeError(f"{op}: {name} has {len(op[name])} numbers; {x} has another number of channels")


def _to_int8_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    require_float(op, x)
    _check(op, x)
    return [Spec(x.shape, INT8)]


_IMAGE = Spec((2, 3, 4, 5), FLOAT32)


@register("FloatToInt8", param="QuantizedFloatParam", infer=_to_int8_infer, examples=[
    Example({"tensorScale": np.array([20], np.float32), "zeroPoint": 3}, [_IMAGE]),
    Example({"tensorScale": np.array([50, 20, 90], np.float32), "clampMin": -127}, [_IMAGE], name="channels"),
    Example({"tensorScale": np.array([1], np.float32)}, [np.array([.5, 1.5, 2.5, -.5, 300, -300], np.float32)], name="round"),
])
def float_to_int8(op: Op, x: np.ndarray) -> np.ndarray:
    """round(x * tensorScale) + zero, clipped to clampMin..clampMax; tensorScale is 1 / scale, one number or one a channel."""
    with np.errstate(all="ignore"):
        scaled = x.astype(np.float32) * _scale(op, x.ndim)
        return _saturated(scaled, _zero(op, x.ndim), op["clampMin"], op["clampMax"])


def _to_float_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    if x.dtype.kind not in "iu":
        raise ShapeError(f"{op}: input 0 is {x}; expected int8")
    _check(op, x)
    return [Spec(x.shape, FLOAT32)]


@register("Int8ToFloat", param="QuantizedFloatParam", infer=_to_float_infer, examples=[
    Example({"tensorScale": np.array([0.05], np.float32), "zeroPoint": 3}, [Spec((2, 3, 4, 5), INT8)]),
    Example({"tensorScale": np.array([0.1, 0.2, 0.3], np.float32)}, [Spec((2, 3, 4, 5), INT8)], name="channels"),
])
def int8_to_float(op: Op, q: np.ndarray) -> np.ndarray:
    """(q - zero) * tensorScale."""
    return as_array((q.astype(np.float32) - _zero(op, q.ndim)) * _scale(op, q.ndim), FLOAT32)


def _dynamic_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    require_float(op, x)
    return [Spec(x.shape, INT8), Spec((1,), FLOAT32), Spec((1,), FLOAT32)]


@register("DynamicQuant", infer=_dynamic_infer, examples=[Example({}, [_IMAGE]), Example({}, [np.zeros((2, 3), np.float32)])])
def dynamic_quant(op: Op, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x as int8, with the scale and zero that fit its range (0 always in it): ONNX DynamicQuantizeLinear less 128."""
    low, high = np.float32(x.min(initial=0)), np.float32(x.max(initial=0))
    with np.errstate(all="ignore"):
        scale = np.float32((high - low) / np.float32(255)) or np.float32(1)
        zero = np.rint(np.clip(-low / scale, 0, 255)) - 128
        q = _saturated(x.astype(np.float32) / scale, zero, -128, 127)
    return q, np.array([scale], np.float32), np.array([zero], np.float32)


_JOIN = {"SUM": np.add, "SUB": np.subtract, "PROD": np.multiply, "MAXIMUM": np.maximum}


def _eltwise_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    a, b = present(op, inputs), present(op, inputs, 1)
    if op["type"] not in _JOIN:
        raise ShapeError(f"{op}: unknown type {op['type']!r}; expected one of {', '.join(_JOIN)}")
    if any(op[name] is None for name in ("inputQuan0", "inputQuan1", "outputQuan")):
        raise ShapeError(f"{op}: inputQuan0, inputQuan1 and outputQuan must tell the scales")
    return [Spec(broadcast(op, a, b), INT8)]


def _table(scale: float, zero: int = 0) -> dict[str, Any]:
    return {"tensorScale": np.array([scale], np.float32), "floatzeros": np.zeros(0, np.float32), "zeroPoint": zero,
            "clampMin": -127, "clampMax": 127}


@register("EltwiseInt8", param="EltwiseInt8", infer=_eltwise_infer, examples=[
    Example({"type": "SUM", "inputQuan0": _table(0.3), "inputQuan1": _table(0.2, 1), "outputQuan": _table(4.0, -2)},
            [Spec((2, 3, 4, 5), INT8), Spec((2, 3, 4, 5), INT8)]),
])
def eltwise_int8(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Two int8 tensors made floats by inputQuan0 and inputQuan1, joined by `type`, made int8 by outputQuan (1 / scale)."""
    floats = [(q.astype(np.float32) - _zero(op[name], q.ndim)) * _scale(op[name], q.ndim)
              for q, name in ((a, "inputQuan0"), (b, "inputQuan1"))]
    out = op["outputQuan"]
    joined = _JOIN[op["type"]](*floats)
    return _saturated(joined * _scale(out, joined.ndim), _zero(out, joined.ndim), out["clampMin"], out["clampMax"])
