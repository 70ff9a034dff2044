"""Ops whose output shape depends on data: Where, Unique, SetDiff1D, Segment."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir import Op
from ._args import axis_of
from ._rules import INT32, as_array, first_outputs
from .registry import Example, register


@register("Where", dynamic=True, examples=[
    Example({}, [np.array([[0, 1, 2], [0, 0, -1]], np.int32)]), Example({}, [np.zeros((2, 3), np.int32)], name="none"),
])
def where(op: Op, condition: np.ndarray) -> np.ndarray:
    """The coordinates of what is not 0, in order, as int32 [count, rank]; rank 0 counts as 1."""
    return as_array(np.argwhere(np.atleast_1d(condition) != 0), INT32)


def _unique(x: np.ndarray, axis: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    return values, first, inverse.reshape(-1), counts


@register("Unique", attrs={"sorted": True, "axis": None}, dynamic=True, examples=[
    Example({}, [np.array([2, 1, 1, 3, 2], np.int32)]), Example({"sorted": False}, [np.array([2, 1, 1, 3, 2], np.int32)]),
    Example({"axis": 0}, [np.array([[1, 0], [0, 5], [1, 0]], np.int32)]), Example({}, [np.zeros(0, np.int32)], name="empty"),
])
def unique(op: Op, x: np.ndarray) -> tuple[np.ndarray, ...]:
    """ONNX Unique: values, where each occurs first, the index of each element's value, how often each occurs.

    Ascending, or in the order of first occurrence if not `sorted`; of slices along `axis`, or of all elements if it is None.
    """
    axis = None if op["axis"] is None else axis_of(op, op["axis"], x.ndim)
    values, first, inverse, counts = _unique(x, axis)
    if not op["sorted"]:
        order = np.argsort(first, kind="stable")
        values, first, counts = np.take(values, order, axis or 0), first[order], counts[order]
        inverse = np.argsort(order, kind="stable")[inverse]
    return first_outputs(op, (values, *(as_array(a, INT32) for a in (first, inverse, counts))))


@register("SetDiff1D", dynamic=True, examples=[
    Example({}, [np.array([3, 1, 4, 1, 5], np.int32), np.array([1, 9], np.int32)]),
])
def set_diff(op: Op, x: np.ndarray, y: np.ndarray) -> Any:
    """The elements of input 0 that input 1 does not hold, in order; and their int32 indices, if there is a second output."""
    index = np.flatnonzero(~np.isin(x.reshape(-1), y.reshape(-1)))
    values = x.reshape(-1)[index]
    return (values, as_array(index, INT32)) if len(op.outputs) > 1 else values


@register("Segment", dynamic=True, examples=[
    Example({}, [np.arange(10, dtype=np.float32).reshape(5, 2), np.array([0, 0, 1, 3, 3], np.int32)]),
])
def segment(op: Op, x: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Means of the rows of equal segment id (input 1, ascending from 0); of segments without rows 0."""
    if ids.shape != x.shape[:1] or (ids < 0).any() or (np.diff(ids) < 0).any():
        raise ShapeError(f"{op}: segment ids of shape {list(ids.shape)} must be ascending, one for each row of {list(x.shape)}")
    count = int(ids[-1]) + 1 if ids.size else 0
    if count > np.iinfo(np.int32).max // max(x[:1].nbytes, 1):
        raise ShapeError(f"{op}: segment id {count - 1} would make an output of more than 2 GiB")
    total = np.zeros((count, *x.shape[1:]), np.float64)
    np.add.at(total, ids, x)
    rows = np.maximum(np.bincount(ids, minlength=count), 1)
    return as_array(total / rows.reshape(-1, *[1] * (x.ndim - 1)), x.dtype)
