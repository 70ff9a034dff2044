"""Rounding to the types that models only store numbers in: 4- and 8-bit floats, bfloat16, 2- and 4-bit integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ..ir.dtypes import LOW_PRECISION
from ._rules import FLOAT32, as_array, present
from .cast import cast
from .registry import Example, register


class FloatFormat(NamedTuple):
    """A float format: mantissa bits, exponent of the smallest normal number, largest finite number, what is beyond it."""

    mantissa: int
    lowest: int
    largest: float
    beyond: float
    signed_zero: bool = True


#: As the ONNX specification lists them ("Float stored in 8 bits", "in 4 bits"); ml_dtypes has them under the same names.
FLOATS = {
    "bfloat16": FloatFormat(7, -126, float(2**127 * (2 - 2.0**-7)), np.inf),
    "float8_e4m3fn": FloatFormat(3, -6, 448.0, np.nan),
    "float8_e4m3fnuz": FloatFormat(3, -7, 240.0, np.nan, False),
    "float8_e5m2": FloatFormat(2, -14, 57344.0, np.inf),
    "float8_e5m2fnuz": FloatFormat(2, -15, 57344.0, np.nan, False),
    "float4_e2m1fn": FloatFormat(1, 0, 6.0, 6.0),
}
#: Integer types -> their limits.
INTEGERS = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}


def round_float(x: np.ndarray, to: str, saturate: bool = True) -> np.ndarray:
    """x, float32, rounded half to even to the numbers of a format of FLOATS; saturate: what is too large becomes the largest.

    Without saturate it becomes infinite, or NaN in formats without infinity (the table of ONNX's Cast).
    """
    form = FLOATS[to]
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        exponent = np.frexp(wide)[1] - 1
        quantum = np.ldexp(1.0, np.maximum(exponent, form.lowest) - form.mantissa)
        rounded = np.where(np.isfinite(wide), np.rint(wide / quantum) * quantum, wide)
        too_large = np.abs(rounded) > form.largest
        limit = form.largest if saturate or to == "float4_e2m1fn" else form.beyond
        rounded = np.where(too_large, np.copysign(limit, rounded), rounded)
        if not form.signed_zero:
            rounded = np.where(rounded == 0, 0.0, rounded)
        return as_array(rounded, FLOAT32)


def round_power(x: np.ndarray, mode: str, saturate: bool) -> np.ndarray:
    """x, float32, rounded to a power of two from 2^-127 to 2^127 (float8_e8m0fnu); mode: "up", "down" or "nearest".

    What has no such power near it, a number below zero or too large, is NaN; with saturate the largest in place of too large.
    """
    with np.errstate(all="ignore"):
        mantissa, exponent = np.frexp(x.astype(np.float64))
        extra = {"up": mantissa > 0.5, "down": np.zeros(x.shape, bool), "nearest": mantissa >= 0.75}[mode]
        power = np.maximum(exponent - 1 + extra, -127)
        found = np.where(x == 0, 2.0**-127, np.ldexp(1.0, np.minimum(power, 127)))
        beyond = (power > 127) | np.isinf(x)
        return as_array(np.where(np.isnan(x) | (x < 0) | (beyond & (not saturate)), np.nan,
                                 np.where(beyond, 2.0**127, found)), FLOAT32)


def _infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    if op["to"] not in LOW_PRECISION:
        raise ShapeError(f"{op}: cannot cast to {op['to']!r}; expected one of {', '.join(LOW_PRECISION)}")
    if op["round_mode"] not in ("up", "down", "nearest"):
        raise ShapeError(f"{op}: round_mode is {op['round_mode']!r}; expected 'up', 'down' or 'nearest'")
    return [Spec(present(op, inputs).shape, LOW_PRECISION[op["to"]])]


_ODD = np.array([0, -0.0, 1, 1.0625, 1.1, -3.3, 463, 464, 465, 1e6, -1e6, 1e-3, 1e-9, np.inf, -np.inf, np.nan], np.float32)


@register("onnx.Cast", attrs={"to": "float8_e4m3fn", "saturate": True, "round_mode": "up"}, infer=_infer, examples=[
    *(Example({"to": to}, [_ODD], name=to) for to in FLOATS),
    *(Example({"to": to, "saturate": False}, [_ODD], name=f"{to}-unsaturated") for to in FLOATS),
    *(Example({"to": "float8_e8m0fnu", "round_mode": mode}, [np.abs(_ODD)], name=mode) for mode in ("up", "down", "nearest")),
    *(Example({"to": to}, [np.array([-9, -8, -2.5, -1, 0, 0.5, 1.7, 3, 7, 15, 16], np.float32)], name=to) for to in INTEGERS),
])
def cast_low(op: Op, x: np.ndarray) -> np.ndarray:
    """x in the values of a type that numbers are only stored in; the result is float32, or int8 or uint8 for integers.

    Floats are rounded half to even. To integers, floats are truncated toward zero, and integers keep their low bits. What
    becomes of floats beyond the type is not specified; here, as in the data of ONNX's own cases, it is 0.
    """
    to = op["to"]
    if to in INTEGERS:
        low, high = INTEGERS[to]
        span = high - low + 1
        whole = cast(x, np.dtype(np.int32)).astype(np.int64)
        if x.dtype.kind == "f":
            whole = np.where((whole < low) | (whole > high), 0, whole)
        return as_array((whole - low) % span + low, LOW_PRECISION[to])
    x = cast(x, FLOAT32)
    return round_power(x, op["round_mode"], op["saturate"]) if to == "float8_e8m0fnu" else round_float(x, to, op["saturate"])
