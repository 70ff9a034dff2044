"""Elements by index: Gather, GatherV2, GatherND, GatherElements.

Negative indices count from the end. An index out of range is an error. Where the indices are known at plan time and make few
regions, these are copies; else kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ..errors import KernelError, ShapeError
from ..ir import Op, Spec
from ._args import axis_of, given, ints, need
from ._regions import FEW_REGIONS, View, count_runs, dense_strides, raster, runs
from .registry import Example, Lowered, register

_F32 = np.dtype(np.float32)
_I32 = np.dtype(np.int32)


def wrapped(op: Op, indices: np.ndarray, length: int) -> np.ndarray:
    """Indices with negative ones counted from the end. Raises KernelError for one that is out of range."""
    wrong = (indices < -length) | (indices >= length)
    if wrong.any():
        raise KernelError(f"{op}: index {int(indices[wrong].reshape(-1)[0])} is out of range; the axis has {length} elements")
    return np.where(indices < 0, indices + length, indices)


# Gather, GatherV2


def _axis(op: Op, inputs: Sequence[Spec | None]) -> int:
    given_axis = given(inputs, 2)
    axis = op["axis"] if given_axis is None else ints(op, given_axis, "the axis (input 2)")[0]
    return axis_of(op, axis, need(op, inputs, 0).rank)


def _infer_gather(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, indices, axis = need(op, inputs, 0), need(op, inputs, 1), _axis(op, inputs)
    return [x.with_shape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1:]))]


def _lower_gather(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered | None:
    x, indices, axis = need(op, inputs, 0), need(op, inputs, 1).value, _axis(op, inputs)
    if indices is None or count_runs(indices.reshape(-1)) > FEW_REGIONS:
        return None
    flat = wrapped(op, indices, x.shape[axis]).reshape(-1)
    dense = View.of((*x.shape[:axis], flat.size, *x.shape[axis + 1:]))
    copies = [(View.of(x.shape).cut(axis, r.first, r.count, r.step), dense.cut(axis, r.at, r.count)) for r in runs(flat)]
    return raster(op, {op.inputs[0]: copies}, outputs[0].shape)


_EXAMPLES = [
    Example({}, [Spec((5, 3), _F32), np.array([4, 0, -1], np.int32)], name="rows"),
    Example({}, [Spec((5, 3), _F32), np.array([[1, 2], [3, 4]], np.int32)], name="matrix_of_indices"),
    Example({}, [Spec((5,), _I32), np.array(-1, np.int32)], name="scalar"),
    Example({}, [Spec((5, 3), _F32), np.zeros((0,), np.int32)], name="none"),
    Example({}, [Spec((6, 3), _F32), Spec((2, 4), _I32)], name="computed"),
]


@register("Gather", param="Gather", infer=_infer_gather, lower=_lower_gather, content=(2,), examples=_EXAMPLES)
def gather(op: Op, x: np.ndarray, indices: np.ndarray, axis: np.ndarray | None = None) -> np.ndarray:
    """Slices of x along an axis: input 2, or `axis`. The axes of `indices` stand in place of it."""
    return gather_v2(op, x, indices, axis)


@register("GatherV2", param="GatherV2", attrs={"axis": 0}, infer=_infer_gather, lower=_lower_gather, content=(2,), examples=[
    *_EXAMPLES,
    Example({}, [Spec((2, 5, 3), _F32), np.array([[4, 2]], np.int32), np.array(1, np.int32)], name="axis_input"),
    Example({"axis": -1}, [Spec((2, 5), _F32), Spec((3,), _I32)], name="last_axis"),
])
def gather_v2(op: Op, x: np.ndarray, indices: np.ndarray, axis: np.ndarray | None = None) -> np.ndarray:
    """Slices of x along an axis: input 2, or `axis`. The axes of `indices` stand in place of it."""
    along = _axis(op, [Spec.of(x), Spec.of(indices), None if axis is None else Spec.of(axis)])
    return np.asarray(np.take(x, wrapped(op, indices, x.shape[along]), along))


# GatherND


def _nd_shape(op: Op, inputs: Sequence[Spec | None]) -> tuple[int, ...]:
    x, indices, batch = need(op, inputs, 0), need(op, inputs, 1), op["axis"]
    if not (0 <= batch < indices.rank and batch <= x.rank and x.shape[:batch] == indices.shape[:batch]):
        raise ShapeError(f"{op}: data {x} and indices {indices} do not share {batch} batch axes")
    depth = indices.shape[-1]
    if depth > x.rank - batch:
        raise ShapeError(f"{op}: indices {indices} have {depth} coordinates, but data {x} has {x.rank - batch} axes "
                         f"behind {batch} of batch")
    return (*indices.shape[:-1], *x.shape[batch + depth:])


def _infer_nd(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    return [need(op, inputs, 0).with_shape(_nd_shape(op, inputs))]


def flat_indices(op: Op, indices: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Tuples of coordinates (last axis) in a tensor whose leading axes are `shape`, as positions along those axes made one."""
    depth = indices.shape[-1]
    found = np.zeros(indices.shape[:-1], np.int64)
    for k, stride in enumerate(dense_strides(shape[:depth])):
        found += wrapped(op, indices[..., k], shape[k]).astype(np.int64) * stride
    return found


def _nd_rows(op: Op, indices: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """For each output row, the row of x seen as (rows, elements behind)."""
    batch = op["axis"]
    depth = indices.shape[-1]
    inner = flat_indices(op, indices, shape[batch:]).reshape(prod(shape[:batch]), -1)
    return (inner + np.arange(len(inner))[:, None] * prod(shape[batch:batch + depth])).reshape(-1)


def _lower_nd(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered | None:
    x, indices, shape = need(op, inputs, 0), need(op, inputs, 1).value, outputs[0].shape
    if indices is None or indices.size > 1 << 16:
        return None
    if prod(shape) == 0:
        return raster(op, {}, shape)
    rows = _nd_rows(op, indices, x.shape)
    if count_runs(rows) > FEW_REGIONS:
        return None
    behind = prod(x.shape[op["axis"] + indices.shape[-1]:])
    src, dst = View.of((x.size // behind, behind)), View.of((rows.size, behind))
    copies = [(src.cut(0, r.first, r.count, r.step), dst.cut(0, r.at, r.count)) for r in runs(rows)]
    return raster(op, {op.inputs[0]: copies}, shape)


@register("GatherND", param="Axis", infer=_infer_nd, lower=_lower_nd, examples=[
    Example({}, [Spec((2, 3, 4), _F32), np.array([[0, 1], [1, -1]], np.int32)]),
    Example({"axis": 1}, [Spec((2, 3, 4), _F32), np.array([[1], [0]], np.int32)], name="batch"),
    Example({}, [Spec((2, 3), _F32), np.array([1, 2], np.int32)], name="scalar"),
    Example({}, [Spec((6, 6), _F32), Spec((2, 3, 2), _I32)], name="computed"),
])
def gather_nd(op: Op, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Slices of x at coordinates: the last axis of `indices` holds them. `axis`: number of batch axes that both share."""
    shape = _nd_shape(op, [Spec.of(x), Spec.of(indices)])
    if prod(shape) == 0:
        return np.zeros(shape, x.dtype)
    behind = x.shape[op["axis"] + indices.shape[-1]:]
    return x.reshape(-1, *behind)[_nd_rows(op, indices, x.shape)].reshape(shape)


# GatherElements


def _infer_elements(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, indices = need(op, inputs, 0), need(op, inputs, 1)
    axis = _axis(op, inputs)
    if x.rank != indices.rank or any(n > d for k, (n, d) in enumerate(zip(indices.shape, x.shape)) if k != axis):
        raise ShapeError(f"{op}: indices {indices} do not fit data {x}; expected equal rank, and no axis but {axis} longer")
    return [x.with_shape(indices.shape)]


@register("GatherElements", param="Axis", infer=_infer_elements, content=(2,), examples=[
    Example({}, [Spec((3, 4), _F32), np.array([[0, 2, 1, -1], [1, 1, 0, 0]], np.int32)]),
    Example({}, [Spec((6, 4), _F32), Spec((3, 2), _I32), np.array(0, np.int32)], name="narrower"),
    Example({}, [Spec((3, 6), _F32), Spec((3, 9), _I32), np.array(-1, np.int32)], name="longer_axis"),
])
def gather_elements(op: Op, x: np.ndarray, indices: np.ndarray, axis: np.ndarray | None = None) -> np.ndarray:
    """y[i][j]... = x[indices[i][j]...][j]... for axis 0; the axis is input 2, or `axis`."""
    along = _axis(op, [Spec.of(x), Spec.of(indices), None if axis is None else Spec.of(axis)])
    part = x[tuple(slice(None) if k == along else slice(n) for k, n in enumerate(indices.shape))]
    return np.take_along_axis(part, wrapped(op, indices, x.shape[along]).astype(np.int64), along)
