"""Ops that tell shapes, and ops that make tensors from a few numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Region, Spec
from ._args import axis_of
from ._rules import FLOAT32, INT32, as_array, known, known_int, present, require_matrix, same_dtype, scalar
from .registry import Example, Lowered, register


def _value(op: Op, shape: Sequence[int]) -> np.ndarray:
    """What Shape, Rank and Size tell of a tensor of a shape."""
    if op.type == "Rank":
        return np.array(len(shape), np.int32)
    if op.type == "Size":
        count = math.prod(shape)
        if count > np.iinfo(np.int32).max:
            raise ShapeError(f"{op}: a tensor of shape {list(shape)} has {count} elements; an int32 cannot hold that")
        return np.array(count, np.int32)
    part = shape[op["start"] if op["hasStart"] else None:op["end"] if op["hasEnd"] else None]
    return np.array(part, np.int32).reshape(len(part))


def _value_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    """The value itself, as the input's shape is known."""
    return [Spec.of(_value(op, present(op, inputs).shape))]


_X = Spec((2, 3, 4, 5), FLOAT32)


@register("Shape", param="ShapeParam", infer=_value_infer, examples=[
    Example({}, [_X]), Example({}, [Spec((), FLOAT32)]),
    Example({"hasStart": True, "start": 1, "hasEnd": True, "end": -1}, [_X]),
])
def shape_of(op: Op, x: np.ndarray) -> np.ndarray:
    """The dimensions of x, or those from `start` up to `end`, as int32."""
    return _value(op, x.shape)


@register("Rank", param="Rank", infer=_value_infer, examples=[Example({}, [_X])])
def rank_of(op: Op, x: np.ndarray) -> np.ndarray:
    """The number of dimensions, an int32 of rank 0."""
    return _value(op, x.shape)


@register("Size", param="Size", infer=_value_infer, examples=[Example({}, [_X])])
def size_of(op: Op, x: np.ndarray) -> np.ndarray:
    """The number of elements, an int32 of rank 0."""
    return _value(op, x.shape)


def _steps(op: Op, start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> int:
    """How many elements a Range has."""
    first, last, step = (a.reshape(-1)[0].item() for a in (start, limit, delta))
    if step == 0 or not all(map(math.isfinite, (first, last, step))):
        raise ShapeError(f"{op}: cannot count from {first} to {last} by steps of {step}")
    if isinstance(step, int) and isinstance(first, int) and isinstance(last, int):
        return max(-((first - last) // step), 0)
    return max(math.ceil((last - first) / step), 0)


def _range_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    parts = [known(op, inputs, i) for i in range(3)]
    for index, part in enumerate(parts):
        if part.size != 1:
            raise ShapeError(f"{op}: input {index} must hold one number, not shape {list(part.shape)}")
    return [Spec((_steps(op, *parts),), same_dtype(op, *(present(op, inputs, i) for i in range(3))))]


def _numbers(*values: float, dtype: type = np.int32) -> list[np.ndarray]:
    return [np.array(v, dtype) for v in values]


@register("Range", param="Range", infer=_range_infer, content=(0, 1, 2), examples=[
    Example({}, _numbers(2, 11, 3)), Example({}, _numbers(1, -1, -0.25, dtype=np.float32)), Example({}, _numbers(5, 5, 1)),
])
def range_op(op: Op, start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> np.ndarray:
    """start, start + delta, ... up to limit, which is left out."""
    dtype = np.result_type(start.dtype, limit.dtype, delta.dtype)
    first, step = (a.reshape(-1)[0].astype(np.float64 if dtype.kind == "f" else np.int64) for a in (start, delta))
    return as_array(first + np.arange(_steps(op, start, limit, delta)) * step, dtype)


def _linspace_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    count = known_int(op, inputs, 2)
    if count < 0:
        raise ShapeError(f"{op}: cannot make {count} numbers")
    return [Spec((count,), present(op, inputs).dtype)]


@register("LinSpace", infer=_linspace_infer, content=(2,), examples=[
    Example({}, [Spec((), FLOAT32), Spec((), FLOAT32), np.array(7, np.int32)]),
    Example({}, [Spec((1,), FLOAT32), Spec((1,), FLOAT32), np.array([1], np.int32)]),
])
def linspace(op: Op, start: np.ndarray, stop: np.ndarray, count: np.ndarray) -> np.ndarray:
    """`count` numbers in even steps from start to stop, both included."""
    first, last = (a.reshape(-1)[0].astype(np.float64) for a in (start, stop))
    return as_array(np.linspace(first, last, scalar(op, count, "input 2")), start.dtype)


def dimensions(op: Op, shape: np.ndarray) -> tuple[int, ...]:
    """A shape that an input gives. Raises ShapeError if a number is negative."""
    found = tuple(int(d) for d in shape.reshape(-1))
    if any(d < 0 for d in found):
        raise ShapeError(f"{op}: cannot make a tensor of shape {list(found)}")
    return found


def _fill_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    value = present(op, inputs, 1)
    if value.size != 1:
        raise ShapeError(f"{op}: fills with {value}; expected one number")
    return [Spec(dimensions(op, known(op, inputs, 0)), value.dtype)]


def _fill_lower(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    """A Raster that reads the one number everywhere."""
    size = outputs[0].size
    regions = (Region(0, (size,), 0, (0,), 0, (1,)),) if size else ()
    return Lowered([Op("Raster", [op.inputs[1]], list(op.outputs), {"regions": regions, "shape": outputs[0].shape}, op.name)])


@register("Fill", param="Fill", infer=_fill_infer, lower=_fill_lower, content=(0,), geometry=True, examples=[
    Example({}, [np.array([2, 3], np.int32), Spec((), FLOAT32)]), Example({}, [np.array([0, 3], np.int32), Spec((1,), INT32)]),
    Example({}, [np.zeros(0, np.int32), Spec((1,), FLOAT32)]),
])
def fill(op: Op, shape: np.ndarray, value: np.ndarray) -> np.ndarray:
    """A tensor of a shape (input 0) that holds one number (input 1) everywhere."""
    return np.full(dimensions(op, shape), value.reshape(()))


def _one_hot_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, depth = present(op, inputs), known_int(op, inputs, 1)
    axis = axis_of(op, op["axis"], x.rank + 1)
    if depth < 0:
        raise ShapeError(f"{op}: depth {depth} is negative")
    return [Spec((*x.shape[:axis], depth, *x.shape[axis:]), same_dtype(op, present(op, inputs, 2), present(op, inputs, 3)))]


@register("OneHot", param="OneHotParam", infer=_one_hot_infer, content=(1,), examples=[
    Example({}, [Spec((2, 3), INT32), np.array(4, np.int32), np.array(1, np.float32), np.array(0, np.float32)]),
    Example({"axis": 0}, [np.array([-1, 7, 0], np.int32), np.array([4], np.int32), Spec((1,), INT32), Spec((1,), INT32)]),
])
def one_hot(op: Op, index: np.ndarray, depth: np.ndarray, on: np.ndarray, off: np.ndarray) -> np.ndarray:
    """On (input 2) where a new axis of size depth equals the index, else off; negative indices count from depth."""
    count = scalar(op, depth, "input 1")
    axis = op["axis"] % (index.ndim + 1)
    whole = index.astype(np.int64)
    wrapped = np.expand_dims(np.where(whole < 0, whole + count, whole), axis)
    hot = wrapped == np.arange(count).reshape(-1, *[1] * (index.ndim - axis))
    return as_array(np.where(hot, on.reshape(()), off.reshape(())), np.promote_types(on.dtype, off.dtype))


def _eye_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    require_matrix(op, x)
    return [x.without_value()]


@register("EyeLike", infer=_eye_infer, examples=[
    Example({}, [Spec((3, 4), FLOAT32), np.array(1, np.int32)]),
    Example({}, [Spec((2, 3, 3), INT32), np.array([-1], np.int32)]),
])
def eye_like(op: Op, x: np.ndarray, k: np.ndarray | None = None) -> np.ndarray:
    """Ones on the k-th diagonal (input 1; positive is above the main one) of each matrix, else zeros, in the shape of x."""
    eye = np.eye(x.shape[-2], x.shape[-1], k=0 if k is None else scalar(op, k, "input 1"), dtype=x.dtype)
    return np.broadcast_to(eye, x.shape).copy()


def _unravel_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    index, dims = present(op, inputs), present(op, inputs, 1)
    return [Spec((dims.size, index.size) if index.rank else (dims.size,), INT32)]


@register("UnravelIndex", infer=_unravel_infer, examples=[
    Example({}, [np.array([0, 5, 23], np.int32), np.array([2, 3, 4], np.int32)]),
    Example({}, [np.array(7, np.int32), np.array([2, 4], np.int32)]),
])
def unravel_index(op: Op, index: np.ndarray, dims: np.ndarray) -> np.ndarray:
    """The coordinates of flat indices in a tensor of some dimensions: a row for each dimension. Others wrap around."""
    rest, rows = index.astype(np.int64).reshape(-1), []
    for d in dims.reshape(-1)[::-1].astype(np.int64):
        rows.append(rest % d if d else rest * 0)
        rest = rest // d if d else rest
    found = as_array(np.array(rows[::-1]).reshape(dims.size, index.size), INT32)
    return found if index.ndim else found.reshape(dims.size)
