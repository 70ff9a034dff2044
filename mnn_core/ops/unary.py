"""UnaryOp: all functions of one tensor, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._erf import erf, erfc, erfinv
from ._rules import as_array, number_dtype, present
from .registry import Example, register

F = Callable[[np.ndarray], np.ndarray]


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + e^-x), without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def _gelu_tanh(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


#: Exact in any type; these take integers too. ROUND is half to even. SIGN of NaN is NaN.
EXACT: dict[str, F] = {
    "ABS": np.abs, "NEG": np.negative, "SQUARE": np.square, "SIGN": np.sign,
    "FLOOR": np.floor, "CEIL": np.ceil, "ROUND": np.rint,
}

#: Functions of floats, given in float64 so that the rounded float32 result is right to the last bit or next to it.
INEXACT: dict[str, F] = {
    "SQRT": np.sqrt, "RSQRT": lambda x: 1 / np.sqrt(x), "RECIPROCAL": lambda x: 1 / x,
    "EXP": np.exp, "EXPM1": np.expm1, "LOG": np.log, "LOG1P": np.log1p,
    "SIN": np.sin, "COS": np.cos, "TAN": np.tan, "ASIN": np.arcsin, "ACOS": np.arccos, "ATAN": np.arctan,
    "SINH": np.sinh, "COSH": np.cosh, "TANH": np.tanh, "ASINH": np.arcsinh, "ACOSH": np.arccosh, "ATANH": np.arctanh,
    "ERF": erf, "ERFC": erfc, "ERFINV": erfinv,
    "BNLL": lambda x: np.logaddexp(x, 0),
    "SIGMOID": sigmoid, "SILU": lambda x: x * sigmoid(x),
    "HARDSWISH": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "GELU": _gelu_tanh, "GELU_STANDARD": lambda x: 0.5 * x * erfc(-x / math.sqrt(2)),
}

_ROUNDING = ("FLOOR", "CEIL", "ROUND")


def infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    """As the input; only EXACT functions take integers."""
    x = present(op, inputs)
    name = op["opType"]
    if name not in EXACT and name not in INEXACT:
        raise ShapeError(f"{op}: unknown function {name!r}; expected one of {', '.join(sorted({**EXACT, **INEXACT}))}")
    if x.dtype.kind not in "f" and name in INEXACT:
        raise ShapeError(f"{op}: {name} of {x}; expected floats: insert a Cast")
    return [Spec(x.shape, number_dtype(x.dtype))]


_F = np.dtype(np.float32)


@register("UnaryOp", param="UnaryOp", infer=infer, examples=[
    *(Example({"opType": n}, [Spec((2, 3, 4, 5), _F)], name=n) for n in (*EXACT, *INEXACT)),
    Example({"opType": "EXP"}, [Spec((), _F)], name="rank0"),
    Example({"opType": "TANH"}, [Spec((2, 0, 3), _F)], name="empty"),
    *(Example({"opType": n}, [Spec((3, 5), np.dtype(np.int32))], name=f"int-{n}") for n in ("ABS", "NEG", "SQUARE", "SIGN")),
])
def unary(op: Op, x: np.ndarray) -> np.ndarray:
    """`opType` of every element. Outside a function's domain the result is NaN or +-inf as IEEE has it."""
    name, dtype = op["opType"], number_dtype(x.dtype)
    x = x.astype(dtype, copy=False)
    with np.errstate(all="ignore"):
        if name in EXACT:
            return x.copy() if name in _ROUNDING and dtype.kind != "f" else as_array(EXACT[name](x), dtype)
        return as_array(INEXACT[name](x.astype(np.float64)), dtype)
