"""BinaryOp: all functions of two tensors that broadcast, element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._rules import INT32, as_array, broadcast, number_dtype, present, same_dtype
from .registry import Example, register
from .unary import sigmoid

F = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Quotient; of integers truncated toward zero, and 0 where the divisor is 0."""
    if x.dtype.kind == "f":
        return x / y
    quotient = _floor_divide(x, y)
    return quotient + ((quotient < 0) & (quotient * y != x))


def _floor_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Quotient rounded down; of integers 0 where the divisor is 0."""
    return np.floor(x / y) if x.dtype.kind == "f" else np.floor_divide(x, y)


def _floor_mod(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Remainder with the sign of the divisor; of integers 0 where the divisor is 0."""
    return np.mod(x, y)


def _mod(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Remainder with the sign of the divisor for integers, of the dividend for floats (ONNX Mod with fmod = 0, and = 1)."""
    return np.fmod(x, y) if x.dtype.kind == "f" else np.mod(x, y)


def _power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x to the y. Integers to a negative power are truncated toward zero: 0 unless x is 1 or -1 (or 0: 0)."""
    if x.dtype.kind == "f":
        return np.power(x, y)
    if y.dtype.kind == "f":
        return np.trunc(np.power(x.astype(np.float64), y))
    inverse = np.where(np.abs(x) == 1, np.where(y % 2 == 0, 1, x), 0)
    return np.where(y < 0, inverse, np.power(x, np.maximum(y, 0)))


def _mul_silu(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    wide = y.astype(np.float64)
    return x * wide * sigmoid(wide)


#: Give numbers of the type of the inputs; integers wrap around.
ARITHMETIC: dict[str, F] = {
    "ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": _divide, "REALDIV": _divide,
    "FLOORDIV": _floor_divide, "FLOORMOD": _floor_mod, "MOD": _mod, "POW": _power,
    "MINIMUM": np.minimum, "MAXIMUM": np.maximum, "MIN_TEMP": np.minimum, "MAX_TEMP": np.maximum,
    "SquaredDifference": lambda x, y: np.square(x - y),
}
#: Floats only.
FLOATING: dict[str, F] = {"ATAN2": np.arctan2, "MUL_SILU": _mul_silu}
#: Integers only. A shift by the type's width or more gives 0 (-1 for a negative number shifted right).
BITS: dict[str, F] = {
    "BITWISE_AND": np.bitwise_and, "BITWISE_OR": np.bitwise_or, "BITWISE_XOR": np.bitwise_xor,
    "LEFTSHIFT": np.left_shift, "RIGHTSHIFT": np.right_shift,
}
#: Give int32 0 or 1. Comparisons with NaN are 0, but NOTEQUAL is 1.
LOGICAL: dict[str, F] = {
    "GREATER": np.greater, "GREATER_EQUAL": np.greater_equal, "LESS": np.less, "LESS_EQUAL": np.less_equal,
    "EQUAL": np.equal, "NOTEQUAL": np.not_equal,
    "LOGICALOR": np.logical_or, "LOGICALXOR": np.logical_xor,
}
_ALL = {**ARITHMETIC, **FLOATING, **BITS, **LOGICAL}


def infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    """The broadcast shape; int32 of comparisons, else the one dtype of both inputs (POW: of the base)."""
    x, y = present(op, inputs), present(op, inputs, 1)
    name, shape = op["opType"], broadcast(op, x, y)
    if name not in _ALL:
        raise ShapeError(f"{op}: unknown function {name!r}; expected one of {', '.join(sorted(_ALL))}")
    if name == "POW":
        return [Spec(shape, number_dtype(x.dtype))]
    dtype = number_dtype(same_dtype(op, x, y))
    if (name in FLOATING and dtype.kind != "f") or (name in BITS and dtype.kind not in "iu"):
        wanted = "floats" if name in FLOATING else "integers"
        raise ShapeError(f"{op}: {name} of {x} and {y}; expected {wanted}: insert a Cast")
    return [Spec(shape, INT32 if name in LOGICAL else dtype)]


_F, _I, _U = np.dtype(np.float32), np.dtype(np.int32), np.dtype(np.uint8)
_A, _B = Spec((2, 3, 4, 5), _F), Spec((2, 3, 4, 5), _F)
_X = np.array([-7, 7, -7, 7, 0, 22, -2**31, 5], np.int32)
_Y = np.array([2, -2, -2, 3, 5, 21, -1, 0], np.int32)
_SHAPES: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = (
    ("rank0", (), ()), ("scalar", (2, 3), ()), ("scalar-left", (), (2, 3)), ("row", (4, 5), (5,)),
    ("column", (4, 5), (4, 1)), ("channel", (2, 3, 4, 5), (3, 1, 1)), ("both", (3, 1, 5), (1, 4, 1)),
    ("empty", (0, 3), (1, 3)), ("ranks", (2,), (3, 1)),
)
_WHOLE = [n for n in _ALL if n not in FLOATING]


@register("BinaryOp", param="BinaryOp", infer=infer, examples=[
    *(Example({"opType": n}, [_A, _B], name=n) for n in _ALL if n not in BITS),
    *(Example({"opType": n}, [Spec((8,), _I), _Y], name=f"int-{n}") for n in _WHOLE),
    *(Example({"opType": n}, [Spec((3, 5), _U), Spec((5,), _U)], name=f"uint8-{n}")
      for n in ("ADD", "MUL", "LEFTSHIFT", "LESS")),
    *(Example({"opType": "SUB"}, [Spec(a, _F), Spec(b, _F)], name=n) for n, a, b in _SHAPES),
    Example({"opType": "ADD", "activationType": 1}, [_A, _B], name="relu"),
])
def binary(op: Op, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`opType` of both inputs, broadcast as NumPy does; `activationType` 1 is a ReLU after it."""
    name = op["opType"]
    dtype = number_dtype(x.dtype if name == "POW" else np.promote_types(x.dtype, y.dtype))
    x = as_array(x, dtype)
    y = as_array(y, number_dtype(y.dtype) if name == "POW" else dtype)
    with np.errstate(all="ignore"):
        result = as_array(_ALL[name](x, y), INT32 if name in LOGICAL else dtype)
        return np.maximum(result, np.zeros((), result.dtype)) if op["activationType"] == 1 else result
