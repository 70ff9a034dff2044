"""Elements written by index: ScatterNd, ScatterElements.

Where several updates meet in one element and there is no reduction, the last one stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import axis_of, given, ints, need
from .gather import flat_indices, wrapped
from .registry import Example, register

_F32 = np.dtype(np.float32)
_I32 = np.dtype(np.int32)
#: `opType` of scatter ops that replace elements.
REPLACE = -1

_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ADD": np.add.at, "SUB": np.subtract.at, "MUL": np.multiply.at, "MAX_TEMP": np.maximum.at, "MAXIMUM": np.maximum.at,
    "MIN_TEMP": np.minimum.at, "MINIMUM": np.minimum.at,
}


def _put(op: Op, reduction: str | int, data: np.ndarray, index: Any, updates: np.ndarray) -> None:
    """data[index] = updates, or reduced with them, in place."""
    if reduction == REPLACE:
        data[index] = updates
    elif reduction in _REDUCTIONS:
        _REDUCTIONS[str(reduction)](data, index, updates)
    else:
        raise ShapeError(f"{op}: opType {reduction!r} is no reduction of a scatter; expected {REPLACE} or one of "
                         f"{', '.join(_REDUCTIONS)}")


def _nd_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    indices, updates, data = need(op, inputs, 0), need(op, inputs, 1), given(inputs, 3)
    shape = data.shape if data is not None else ints(op, given(inputs, 2), "the shape (input 2)")
    depth = indices.shape[-1] if indices.rank else 0
    if not indices.rank or depth > len(shape) or min(shape, default=0) < 0:
        raise ShapeError(f"{op}: indices {indices} do not fit an output of shape {list(shape)}")
    if updates.shape != (*indices.shape[:-1], *shape[depth:]):
        raise ShapeError(f"{op}: updates {updates} do not fit indices {indices} and output shape {list(shape)}; expected shape "
                         f"{[*indices.shape[:-1], *shape[depth:]]}")
    if data is not None and data.dtype != updates.dtype:
        raise ShapeError(f"{op}: data {data} and updates {updates} differ in dtype")
    return [updates.with_shape(shape)]


@register("ScatterNd", param="BinaryOp", attrs={"opType": None}, infer=_nd_infer, content=(2,), examples=[
    Example({}, [np.array([[1], [3]], np.int32), Spec((2, 3), _F32), np.array([4, 3], np.int32)], name="into_zeros"),
    Example({}, [np.array([[0, 1], [2, -1]], np.int32), Spec((2,), _F32), np.array([3, 4], np.int32), Spec((3, 4), _F32)],
            name="replace"),
    *(Example({"opType": name}, [np.array([[1], [1], [-1]], np.int32), Spec((3,), _F32), np.array([4], np.int32),
                                 Spec((4,), _F32)], name=name) for name in ("ADD", "MUL", "MAXIMUM", "MINIMUM")),
])
def scatter_nd(op: Op, indices: np.ndarray, updates: np.ndarray, shape: np.ndarray | None = None,
               data: np.ndarray | None = None) -> np.ndarray:
    """A copy of `data`, or zeros of `shape`, with slices at coordinates (last axis of indices) replaced by updates.

    `opType` reduces instead: "ADD", "MUL", "MAXIMUM", "MINIMUM"; -1 replaces. Where it is not set, updates replace elements of
    `data` (ONNX), but add up in a tensor of zeros (TensorFlow).
    """
    wanted = data.shape if data is not None else ints(op, shape, "the shape (input 2)")
    out = np.zeros(wanted, updates.dtype) if data is None else data.copy()
    depth = indices.shape[-1]
    if not updates.size:
        return out
    rows = out.reshape(-1, *wanted[depth:])
    reduction = op["opType"]
    if reduction is None:
        reduction = "ADD" if data is None else REPLACE
    _put(op, reduction, rows, flat_indices(op, indices, wanted).reshape(-1), updates.reshape(-1, *wanted[depth:]))
    return out


def _elements_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, indices, updates = need(op, inputs, 0), need(op, inputs, 1), need(op, inputs, 2)
    axis = _elements_axis(op, given(inputs, 3), x.rank)
    if indices.shape != updates.shape or indices.rank != x.rank or x.dtype != updates.dtype or any(
            n > d for k, (n, d) in enumerate(zip(indices.shape, x.shape)) if k != axis):
        raise ShapeError(f"{op}: indices {indices} and updates {updates} do not fit data {x}; expected equal shapes, the "
                         f"dtype and rank of data, and no axis but {axis} longer")
    return [x.without_value()]


def _elements_axis(op: Op, axis: Spec | np.ndarray | None, rank: int) -> int:
    return axis_of(op, 0 if axis is None else ints(op, axis, "the axis (input 3)")[0], rank)


@register("ScatterElements", param="BinaryOp", attrs={"opType": REPLACE}, infer=_elements_infer, content=(3,), examples=[
    Example({}, [Spec((3, 4), _F32), np.array([[0, 2], [1, -1]], np.int32), Spec((2, 2), _F32), np.array(1, np.int32)],
            name="replace"),
    *(Example({"opType": name}, [Spec((3, 4), _F32), np.array([[1, 1, -1], [0, 0, 0]], np.int32), Spec((2, 3), _F32),
                                 np.array(1, np.int32)], name=name) for name in ("ADD", "MUL", "MAXIMUM", "MINIMUM")),
    Example({"opType": "ADD"}, [Spec((6, 3), _F32), Spec((4, 3), _I32), Spec((4, 3), _F32)], name="computed"),
])
def scatter_elements(op: Op, x: np.ndarray, indices: np.ndarray, updates: np.ndarray,
                     axis: np.ndarray | None = None) -> np.ndarray:
    """A copy of x with y[indices[i][j]...][j]... = updates[i][j]... for axis 0; the axis is input 3.

    `opType` reduces instead: "ADD", "MUL", "MAXIMUM", "MINIMUM"; -1 (the default) replaces.
    """
    out = x.copy()
    along = _elements_axis(op, axis, x.ndim)
    if indices.size:
        index: list[np.ndarray] = list(np.indices(indices.shape, sparse=True))
        index[along] = wrapped(op, indices, x.shape[along])
        _put(op, op["opType"], out, tuple(np.broadcast_arrays(*index)), updates)
    return out
