"""Putting tensors together and taking them apart along an axis: Concat, Pack, Unpack, Slice."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import axis_of, given, ints, need
from ._regions import View, is_increasing, raster, raster_op
from .registry import Example, Lowered, register

_F32 = np.dtype(np.float32)
_I32 = np.dtype(np.int32)


def _infer_concat(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    parts = [need(op, inputs, i) for i in range(max(1, len(inputs)))]
    first, axis = parts[0], axis_of(op, op["axis"], parts[0].rank)
    for index, part in enumerate(parts):
        fits = part.rank == first.rank and all(a == b for k, (a, b) in enumerate(zip(part.shape, first.shape)) if k != axis)
        if not fits or part.dtype != first.dtype:
            raise ShapeError(f"{op}: input {index} is {part}; beside {first} it must have the same dtype, and the same shape "
                             f"but for axis {axis}")
    shape = list(first.shape)
    shape[axis] = sum(p.shape[axis] for p in parts)
    return [first.with_shape(shape)]


def _lower_concat(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    shape = outputs[0].shape
    axis, at, copies = axis_of(op, op["axis"], len(shape)), 0, []
    for index, name in enumerate(op.inputs):
        part = need(op, inputs, index).shape
        copies.append((name, View.of(part), View.of(shape).cut(axis, at, part[axis])))
        at += part[axis]
    return raster(op, copies, shape)


@register("Concat", param="Axis", infer=_infer_concat, lower=_lower_concat, geometry=True, examples=[
    Example({"axis": 1}, [Spec((2, 3, 4), _F32), Spec((2, 5, 4), _F32)]),
    Example({"axis": -1}, [Spec((2, 3), _I32), Spec((2, 0), _I32), Spec((2, 1), _I32)], name="with_empty"),
    Example({"axis": 0}, [Spec((4,), _F32)], name="one"),
])
def concat(op: Op, *parts: np.ndarray) -> np.ndarray:
    """The inputs one after another along `axis`."""
    return np.concatenate(parts, op["axis"])


def _infer_pack(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    parts = [need(op, inputs, i) for i in range(max(1, len(inputs)))]
    first = parts[0]
    for index, part in enumerate(parts):
        if part != first:
            raise ShapeError(f"{op}: input {index} is {part}, expected {first} as input 0")
    axis = axis_of(op, op["axis"], first.rank + 1)
    return [first.with_shape((*first.shape[:axis], len(parts), *first.shape[axis:]))]


def _lower_pack(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    shape = outputs[0].shape
    axis = axis_of(op, op["axis"], len(shape))
    part = View.of((*shape[:axis], *shape[axis + 1:])).insert(axis)
    return raster(op, [(name, part, View.of(shape).cut(axis, i, 1)) for i, name in enumerate(op.inputs)], shape)


@register("Pack", param="PackParam", infer=_infer_pack, lower=_lower_pack, geometry=True, examples=[
    Example({"axis": 0}, [Spec((2, 3), _F32), Spec((2, 3), _F32)]),
    Example({"axis": -1}, [Spec((2, 3), _F32), Spec((2, 3), _F32), Spec((2, 3), _F32)], name="last_axis"),
    Example({}, [Spec((), _I32), Spec((), _I32)], name="scalars"),
])
def pack(op: Op, *parts: np.ndarray) -> np.ndarray:
    """The inputs, all of one shape, stacked along a new axis `axis`."""
    return np.stack(parts, op["axis"])


def _infer_unpack(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = need(op, inputs, 0)
    axis = axis_of(op, op["axis"], x.rank)
    if op.outputs and len(op.outputs) != x.shape[axis]:
        raise ShapeError(f"{op}: {x} has {x.shape[axis]} parts along axis {axis}, the op has {len(op.outputs)} outputs")
    return [x.with_shape((*x.shape[:axis], *x.shape[axis + 1:]))] * x.shape[axis]


def _lower_unpack(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    x = need(op, inputs, 0)
    axis = axis_of(op, op["axis"], x.rank)
    made = []
    for i, out in enumerate(outputs):
        part = View.of(out.shape).insert(axis)
        made.append(raster_op(op, [(op.inputs[0], View.of(x.shape).cut(axis, i, 1), part)], out.shape, output=i))
    return Lowered(made)


@register("Unpack", param="Axis", infer=_infer_unpack, lower=_lower_unpack, geometry=True, examples=[
    Example({"axis": 1}, [Spec((2, 3, 4), _F32)]),
    Example({"axis": -1}, [Spec((2, 2), _F32)], name="last_axis"),
])
def unpack(op: Op, x: np.ndarray) -> tuple[np.ndarray, ...]:
    """x taken apart along `axis`, which is gone from the outputs."""
    return tuple(np.moveaxis(x, op["axis"], 0))


def _sizes(op: Op, shape: Sequence[int], given_sizes: Spec | np.ndarray | None) -> tuple[int, list[int]]:
    """The axis that Slice cuts, and the sizes of the parts."""
    axis = axis_of(op, op["axis"], len(shape))
    length, count, points = shape[axis], len(op.outputs), [int(p) for p in op["slicePoints"]]
    source = op["sourceType"]
    if given_sizes is not None:
        sizes = list(ints(op, given_sizes, "the sizes (input 1)"))
    elif not points or (len(points) == 1 and count == 1 and source != "CAFFE"):
        sizes = [length // max(1, count)] * max(1, count)
    elif source == "CAFFE":
        if not is_increasing([0, *points, length + 1]) and points != sorted(points):
            raise ShapeError(f"{op}: slicePoints {points} do not increase")
        sizes = [b - a for a, b in pairwise([0, *points, length])]
    elif len(points) == 1 and source in ("TENSORFLOW", "TFLITE"):
        sizes = [length // max(1, points[0])] * min(points[0], max(count, length) + 1)  # too many is refused below
    elif len(points) == 1 and source == "TORCH":
        chunk = max(1, points[0])
        sizes = [min(chunk, length - at) for at in range(0, max(1, length), chunk)]
    else:
        sizes = points
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = length - sum(s for s in sizes if s != -1)
    if sum(sizes) != length or min(sizes) < 0 or (count and len(sizes) != count):
        raise ShapeError(f"{op}: axis {axis} of shape {list(shape)} cannot be cut into {sizes} for {count} outputs "
                         f"(slicePoints {points}, sourceType {source})")
    return axis, sizes


def _infer_slice(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = need(op, inputs, 0)
    axis, sizes = _sizes(op, x.shape, given(inputs, 1))
    return [x.with_shape((*x.shape[:axis], size, *x.shape[axis + 1:])) for size in sizes]


def _lower_slice(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    x = need(op, inputs, 0)
    axis, sizes = _sizes(op, x.shape, given(inputs, 1))
    starts = accumulate(sizes, initial=0)
    return Lowered([
        raster_op(op, [(op.inputs[0], View.of(x.shape).cut(axis, start, size), View.of(out.shape))], out.shape, output=i)
        for i, (start, size, out) in enumerate(zip(starts, sizes, outputs)) if op.outputs[i]])


@register("Slice", param="Slice", infer=_infer_slice, lower=_lower_slice, content=(1,), geometry=True, examples=[
    Example({"axis": 1, "slicePoints": (1, 4)}, [Spec((2, 6, 3), _F32)], name="caffe_points"),
    Example({"axis": -1, "slicePoints": (3,), "sourceType": "TENSORFLOW"}, [Spec((2, 6), _F32)], name="tensorflow_number"),
    Example({"axis": 0, "slicePoints": (4,), "sourceType": "TORCH"}, [Spec((10, 2), _F32)], name="torch_chunk"),
    Example({"axis": 1, "slicePoints": (2, -1, 1), "sourceType": "ONNX"}, [Spec((2, 6), _F32)], name="sizes"),
    Example({"axis": 1}, [Spec((2, 6), _F32), np.array([4, 0, 2], np.int32)], name="sizes_input"),
])
def slice_(op: Op, x: np.ndarray, sizes: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """x cut in parts along `axis`.

    Sizes of the parts are input 1, or follow from `slicePoints`: with `sourceType` "CAFFE" where to cut; else one number is the
    number of equal parts ("TENSORFLOW", "TFLITE") or the length of a chunk ("TORCH"), and several are sizes, one of
    which may be -1. None: equal parts, one for each output.
    """
    axis, parts = _sizes(op, x.shape, sizes)
    return tuple(np.split(x, list(accumulate(parts))[:-1], axis))
