"""Reduction and Moments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import axes_of
from ._rules import FLOAT32, INT32, as_array, known, number_dtype, optional, present, require_float
from .registry import Example, register

F = Callable[[np.ndarray, tuple[int, ...]], np.ndarray]


def _mean(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The average; of integers truncated toward zero. Of nothing: NaN, of integers 0."""
    count = math.prod(x.shape[a] for a in axes)
    total = x.sum(axis=axes, keepdims=True)
    if x.dtype.kind == "f":
        return total / (count or np.nan)
    return np.sign(total) * (np.abs(total) // max(count, 1))


def _extreme(x: np.ndarray, axes: tuple[int, ...], largest: bool) -> np.ndarray:
    """The maximum or minimum; of nothing: what any number would replace."""
    if x.dtype.kind == "f":
        bound = -np.inf if largest else np.inf
    else:
        bound = np.iinfo(x.dtype).min if largest else np.iinfo(x.dtype).max
    reduce = np.maximum if largest else np.minimum
    return reduce.reduce(x, axis=axes, keepdims=True, initial=bound)


#: Of a float64 or int64 array (extremes: of any), keeping the reduced axes with size 1.
OPERATIONS: dict[str, F] = {
    "SUM": lambda x, axes: x.sum(axis=axes, keepdims=True),
    "ASUM": lambda x, axes: np.abs(x).sum(axis=axes, keepdims=True),
    "SUMSQ": lambda x, axes: np.square(x).sum(axis=axes, keepdims=True),
    "MEAN": _mean,
    "PROD": lambda x, axes: x.prod(axis=axes, keepdims=True),
    "MAXIMUM": lambda x, axes: _extreme(x, axes, True),
    "MINIMUM": lambda x, axes: _extreme(x, axes, False),
    "ANY": lambda x, axes: (x != 0).any(axis=axes, keepdims=True),
    "ALL": lambda x, axes: (x != 0).all(axis=axes, keepdims=True),
}


def _axes(op: Op, given: np.ndarray | None, rank: int) -> tuple[int, ...]:
    """The reduced axes: of input 1, else of `dim`; none given means all."""
    listed = op["dim"] if given is None else given.reshape(-1).tolist()
    return axes_of(op, listed, rank) if len(listed) else tuple(range(rank))


def _reduced(shape: Sequence[int], axes: tuple[int, ...], keep: bool) -> tuple[int, ...]:
    return tuple(1 if i in axes else d for i, d in enumerate(shape) if keep or i not in axes)


def _infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    if op["operation"] not in OPERATIONS:
        raise ShapeError(f"{op}: unknown operation {op['operation']!r}; expected one of {', '.join(OPERATIONS)}")
    given = None if optional(inputs, 1) is None else known(op, inputs, 1)
    return [Spec(_reduced(x.shape, _axes(op, given, x.rank), op["keepDims"]), number_dtype(x.dtype))]


def _floats(*shape: int) -> Spec:
    return Spec(shape, FLOAT32)


@register("Reduction", param="ReductionParam", infer=_infer, content=(1,), examples=[
    *(Example({"operation": n, "dim": (1,)}, [_floats(3, 5, 4)], name=n) for n in OPERATIONS),
    *(Example({"operation": n, "dim": (-1,), "keepDims": True}, [Spec((3, 5, 4), INT32)], name=f"int-{n}") for n in OPERATIONS),
    *(Example({"operation": n, "dim": (2, 3), "keepDims": True}, [_floats(2, 3, 4, 5)], name=f"image-{n}")
      for n in ("SUM", "MEAN", "MAXIMUM")),
    Example({"operation": "SUM"}, [_floats(3, 4)], name="all"),
    Example({"operation": "MEAN", "keepDims": True}, [_floats(2, 3, 4), np.array([0, -1], np.int32)], name="axes-input"),
    Example({"operation": "SUM", "dim": (1,)}, [_floats(5, 4), np.array([], np.int32)], name="no-axes-from-an-input"),
    Example({"operation": "SUM", "dim": (0, 2)}, [_floats(7, 6, 5)], name="apart"),
    Example({"operation": "SUM", "dim": (-1,)}, [_floats(2, 1000)], name="long"),
    Example({"operation": "SUM", "dim": (1,)}, [_floats(2, 0, 3)], name="of-nothing"),
    Example({"operation": "MAXIMUM", "dim": (0,)}, [_floats(2, 0)], name="empty"),
    Example({"operation": "SUM"}, [_floats()], name="rank0"),
])
def reduction(op: Op, x: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
    """`operation` over the axes `dim` (or input 1; none: all), which vanish unless keepDims, times `coeff` if that is not 0.

    Floats are summed in float64; integers wrap around at the end. ANY and ALL give 0 or 1. NaN wins every MAXIMUM.
    """
    along = _axes(op, axes, x.ndim)
    dtype = number_dtype(x.dtype)
    wide = x.astype(np.float64 if dtype.kind == "f" else np.int64)
    with np.errstate(all="ignore"):
        extreme = op["operation"] in ("MAXIMUM", "MINIMUM")
        y = OPERATIONS[op["operation"]](x.astype(dtype) if extreme else wide, along)
        y = y * op["coeff"] if op["coeff"] not in (0, 1) else y
        return as_array(y, dtype).reshape(_reduced(x.shape, along, op["keepDims"]))


def _moments_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    require_float(op, x)
    axes = _axes(op, None, x.rank)
    return [Spec(_reduced(x.shape, axes, op["keepDims"] and len(op["dim"]) > 0), x.dtype)] * 2


@register("Moments", param="MomentsParam", infer=_moments_infer, examples=[
    Example({"dim": (2, 3)}, [_floats(2, 3, 4, 5)]),
    Example({"dim": (1,), "keepDims": False}, [_floats(2, 3, 4)], name="vanish"),
    Example({}, [_floats(2, 3)], name="all"),
])
def moments(op: Op, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance over the axes `dim`; without any, of everything, in rank 0."""
    axes = _axes(op, None, x.ndim)
    shape = _reduced(x.shape, axes, op["keepDims"] and len(op["dim"]) > 0)
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        mean = _mean(wide, axes)
        return as_array(mean, x.dtype).reshape(shape), as_array(_mean(np.square(wide - mean), axes), x.dtype).reshape(shape)
