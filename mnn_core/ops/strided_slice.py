"""Parts of a tensor: SliceTf, StridedSlice, Crop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import axes_of, axis_of, given, ints, need
from ._regions import View, raster
from .registry import Example, Lowered, register

_F32 = np.dtype(np.float32)
#: ONNX's "to the end of the axis", as int32 and int64.
_END = (2**31 - 1, 2**63 - 1)


def _i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


@dataclass(frozen=True)
class Cut:
    """What is taken of one input axis: `count` elements from `start` in steps."""

    start: int
    count: int
    step: int = 1


def _cut_view(shape: Sequence[int], cuts: Sequence[Cut]) -> View:
    view = View.of(shape)
    for axis, c in enumerate(cuts):
        view = view.cut(axis, c.start, c.count, c.step)
    return view


def _take(x: np.ndarray, cuts: Sequence[Cut]) -> np.ndarray:
    return x[np.ix_(*(c.start + c.step * np.arange(c.count) for c in cuts))] if cuts else x


# SliceTf


def _slice_tf_cuts(op: Op, inputs: Sequence[Spec | None]) -> list[Cut]:
    x, begin = need(op, inputs, 0), ints(op, given(inputs, 1), "begin (input 1)")
    size = ints(op, given(inputs, 2), "size (input 2)")
    if not len(begin) == len(size) == x.rank:
        raise ShapeError(f"{op}: begin {list(begin)} and size {list(size)} need one value for each axis of {x}")
    cuts = []
    for d, b, n in zip(x.shape, begin, size):
        start = b + d if b < 0 else b
        count = d - start if n == -1 else n
        if not (0 <= start <= d and 0 <= count <= d - start):
            raise ShapeError(f"{op}: begin {list(begin)} with size {list(size)} leaves {x}")
        cuts.append(Cut(start, count))
    return cuts


def _infer_slice_tf(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    return [need(op, inputs, 0).with_shape([c.count for c in _slice_tf_cuts(op, inputs)])]


def _lower_slice_tf(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    src = _cut_view(need(op, inputs, 0).shape, _slice_tf_cuts(op, inputs))
    return raster(op, {op.inputs[0]: [(src, View.of(src.shape))]}, src.shape)


@register("SliceTf", param="SliceTf", infer=_infer_slice_tf, lower=_lower_slice_tf, content=(1, 2), geometry=True, examples=[
    Example({}, [Spec((4, 5), _F32), _i32(1, 2), _i32(2, -1)]),
    Example({}, [Spec((4, 5), _F32), _i32(-2, 0), _i32(1, 5)], name="negative_begin"),
    Example({}, [Spec((4, 5), _F32), _i32(4, 0), _i32(0, 5)], name="empty"),
])
def slice_tf(op: Op, x: np.ndarray, begin: np.ndarray, size: np.ndarray) -> np.ndarray:
    """`size` elements of each axis from `begin` on; size -1: all that follow."""
    return _take(x, _slice_tf_cuts(op, [Spec.of(x), Spec.of(begin), Spec.of(size)]))


# StridedSlice


@dataclass(frozen=True)
class Selection:
    """What StridedSlice selects: a cut of each input axis, and how the result's axes follow.

    axes: for each output axis, the input axis it runs along, or None for a new axis of size 1.
    """

    cuts: tuple[Cut, ...]
    axes: tuple[int | None, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(1 if a is None else self.cuts[a].count for a in self.axes)


def _python_cut(op: Op, length: int, begin: int | None, end: int | None, step: int) -> Cut:
    """The rule of Python and TensorFlow."""
    if step == 0:
        raise ShapeError(f"{op}: a step is 0")
    start, stop, step = slice(begin, end, step).indices(length)
    return Cut(start, len(range(start, stop, step)), step)


def _onnx_cut(op: Op, length: int, begin: int, end: int, step: int) -> Cut:
    """The rule of ONNX: ends are clamped so that a step backwards may begin at the last and end before the first element.

    The greatest integer as an end means "as far as it goes", in both directions (as onnxruntime has it).
    """
    if step == 0:
        raise ShapeError(f"{op}: a step is 0")
    back = int(step < 0)
    start = min(max(begin + length * (begin < 0), 0), max(length - back, 0))
    stop = (length, -1)[back] if end in _END else min(max(end + length * (end < 0), -back), length - back)
    return Cut(start, max(0, -((start - stop) // step)) if length else 0, step)


def _select_onnx(op: Op, inputs: Sequence[Spec | None]) -> Selection:
    x, starts = need(op, inputs, 0), ints(op, given(inputs, 1), "starts (input 1)")
    ends, axes, steps = ints(op, given(inputs, 2), "ends (input 2)"), given(inputs, 3), given(inputs, 4)
    which = axes_of(op, range(len(starts)) if axes is None else ints(op, axes, "axes (input 3)"), x.rank)
    by = (1,) * len(starts) if steps is None else ints(op, steps, "steps (input 4)")
    if not len(starts) == len(ends) == len(which) == len(by):
        raise ShapeError(f"{op}: starts {list(starts)}, ends {list(ends)}, axes {list(which)}, steps {list(by)} "
                         "differ in length")
    cuts = [Cut(0, d) for d in x.shape]
    for axis, start, end, step in zip(which, starts, ends, by):
        cuts[axis] = _onnx_cut(op, x.shape[axis], start, end, step)
    return Selection(tuple(cuts), tuple(range(x.rank)))


def _select_tf(op: Op, inputs: Sequence[Spec | None]) -> Selection:
    x, begin = need(op, inputs, 0), ints(op, given(inputs, 1), "begin (input 1)")
    end, steps = ints(op, given(inputs, 2), "end (input 2)"), given(inputs, 3)
    by = (1,) * len(begin) if steps is None else ints(op, steps, "strides (input 3)")
    if not len(begin) == len(end) == len(by):
        raise ShapeError(f"{op}: begin {list(begin)}, end {list(end)}, strides {list(by)} differ in length")

    def has(mask: str, i: int) -> bool:
        return bool(op[mask] >> i & 1)

    dots = [i for i in range(len(begin)) if has("ellipsisMask", i)]
    if len(dots) > 1:
        raise ShapeError(f"{op}: ellipsisMask {op['ellipsisMask']:#b} has more than one bit set")
    used = sum(not has("newAxisMask", i) for i in range(len(begin)) if i not in dots)
    if used > x.rank:
        raise ShapeError(f"{op}: begin {list(begin)} names {used} axes, {x} has {x.rank}")
    cuts: list[Cut] = []
    axes: list[int | None] = []

    def whole(count: int) -> None:
        for _ in range(count):
            axes.append(len(cuts))
            cuts.append(Cut(0, x.shape[len(cuts)]))

    for i, (b, e, s) in enumerate(zip(begin, end, by)):
        if i in dots:
            whole(x.rank - used)
        elif has("newAxisMask", i):
            axes.append(None)
        elif has("shrinkAxisMask", i):
            cuts.append(Cut(axis_of(op, b, x.shape[len(cuts)]), 1))
        else:
            axes.append(len(cuts))
            first, last = None if has("beginMask", i) else b, None if has("endMask", i) else e
            cuts.append(_python_cut(op, x.shape[len(cuts)], first, last, s))
    whole(x.rank - len(cuts))
    return Selection(tuple(cuts), tuple(axes))


def _select(op: Op, inputs: Sequence[Spec | None]) -> Selection:
    return _select_onnx(op, inputs) if op["fromType"] == 1 else _select_tf(op, inputs)


def _writes(op: Op, inputs: Sequence[Spec | None]) -> bool:
    return op["fromType"] != 1 and given(inputs, 4) is not None


def _infer_strided_slice(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, selection = need(op, inputs, 0), _select(op, inputs)
    if not _writes(op, inputs):
        return [x.with_shape(selection.shape)]
    value = need(op, inputs, 4)
    if value.dtype != x.dtype or not _broadcasts(value.shape, selection.shape):
        raise ShapeError(f"{op}: value {value} cannot be written to the selected part of {x}, of shape {list(selection.shape)}")
    return [x.without_value()]


def _broadcasts(shape: Sequence[int], to: Sequence[int]) -> bool:
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(to)))


def _selected(view: View, selection: Selection) -> View:
    """The selected part of a view of the whole input, with the axes of the result."""
    for axis, c in enumerate(selection.cuts):
        view = view.cut(axis, c.start, c.count, c.step)
    shape = tuple(1 if a is None else view.shape[a] for a in selection.axes)
    return View(shape, tuple(0 if a is None else view.strides[a] for a in selection.axes), view.offset)


def _outside(shape: Sequence[int], cuts: Sequence[Cut]) -> list[View]:
    """Views that together are all but the cut-out part: for each axis, what it leaves out of what earlier axes select."""
    views, inner = [], View.of(shape)
    for axis, (length, c) in enumerate(zip(shape, cuts)):
        if c.count == 0:
            views.append(inner)
            return views
        step = abs(c.step) if c.count > 1 else 1
        low = min(c.start, c.start + (c.count - 1) * c.step)
        high = low + (c.count - 1) * step
        views += [inner.cut(axis, 0, low), inner.cut(axis, high + 1, length - high - 1)]
        if step > 1:
            gaps = inner.cut(axis, low + 1, c.count - 1, step)
            views.append(gaps.insert(axis + 1, step - 1, inner.strides[axis]))
        inner = inner.cut(axis, low, c.count, step)
    return views


def _lower_strided_slice(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    x, selection = need(op, inputs, 0), _select(op, inputs)
    if not _writes(op, inputs):
        src = _selected(View.of(x.shape), selection)
        return raster(op, {op.inputs[0]: [(src, View.of(src.shape))]}, src.shape)
    old = [(op.inputs[0], v, v) for v in _outside(x.shape, selection.cuts)]
    value = View.of(need(op, inputs, 4).shape).expand(selection.shape)
    return raster(op, [*old, (op.inputs[4], value, _selected(View.of(x.shape), selection))], x.shape)


@register("StridedSlice", param="StridedSliceParam", infer=_infer_strided_slice, lower=_lower_strided_slice,
          content=(1, 2, 3, 4), geometry=True, examples=[
    Example({"fromType": 1}, [Spec((10,), _F32), _i32(9), _i32(0), _i32(0), _i32(-3)], name="onnx_backwards"),
    Example({"fromType": 1}, [Spec((10,), _F32), _i32(0), _i32(5), _i32(0), _i32(-1)], name="onnx_empty"),
    Example({"fromType": 1}, [Spec((3, 4, 5), _F32), _i32(-100, 1), _i32(100, -1), _i32(-1, 0)], name="onnx_clamped"),
    Example({}, [Spec((4, 5), _F32), _i32(1, 0), _i32(4, 5), _i32(2, 1)], name="plain"),
    Example({"beginMask": 1, "endMask": 3}, [Spec((4, 5), _F32), _i32(2, 3), _i32(1, 1), _i32(-1, 1)], name="begin_end_masks"),
    Example({"ellipsisMask": 1, "newAxisMask": 2, "shrinkAxisMask": 4},
            [Spec((2, 3, 4), _F32), _i32(0, 0, -1), _i32(0, 0, 0), _i32(1, 1, 1)], name="ellipsis_new_shrink"),
    Example({"shrinkAxisMask": 1}, [Spec((4, 6), _F32), _i32(1, 5), _i32(0, 0), _i32(1, -2), np.array([7, 8, 9], np.float32)],
            name="write"),
    Example({}, [Spec((6, 4), _F32), _i32(1), _i32(6), _i32(3), np.array([[1], [2]], np.float32)], name="write_broadcast"),
])
def strided_slice(op: Op, x: np.ndarray, begin: np.ndarray, end: np.ndarray, third: np.ndarray | None = None,
                  fourth: np.ndarray | None = None) -> np.ndarray:
    """x[begin:end:strides].

    fromType 0 is TensorFlow's: inputs begin, end, strides, bit masks as there; a fifth input is written to the selected part
    of a copy of x. fromType 1 is ONNX's: inputs starts, ends, [axes], [steps]. Both clamp to the axis and may select nothing.
    """
    arrays = (x, begin, end, third, fourth)
    specs = [None if a is None else Spec.of(a) for a in arrays]
    selection = _select(op, specs)
    if not _writes(op, specs):
        return _take(x, selection.cuts).reshape(selection.shape)
    assert fourth is not None
    out = x.copy()
    part = np.broadcast_to(fourth, selection.shape).reshape([c.count for c in selection.cuts])
    out[np.ix_(*(c.start + c.step * np.arange(c.count) for c in selection.cuts))] = part
    return out


# Crop


def _crop_cuts(op: Op, inputs: Sequence[Spec | None]) -> list[Cut]:
    x, like, offsets = need(op, inputs, 0), need(op, inputs, 1), [int(v) for v in op["offset"]] or [0]
    axis = axis_of(op, op["axis"], x.rank)
    count = x.rank - axis
    offsets = offsets * count if len(offsets) == 1 else offsets
    if like.rank != x.rank or len(offsets) != count:
        raise ShapeError(f"{op}: cannot crop {x} to {like} from axis {axis} on with offsets {list(op['offset'])}")
    cuts = [Cut(0, d) for d in x.shape[:axis]] + [Cut(o, n) for o, n in zip(offsets, like.shape[axis:])]
    if any(c.start < 0 or c.start + c.count > d for c, d in zip(cuts, x.shape)):
        raise ShapeError(f"{op}: {like} at offsets {offsets} from axis {axis} on leaves {x}")
    return cuts


def _infer_crop(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    return [need(op, inputs, 0).with_shape([c.count for c in _crop_cuts(op, inputs)])]


def _lower_crop(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    src = _cut_view(need(op, inputs, 0).shape, _crop_cuts(op, inputs))
    return raster(op, {op.inputs[0]: [(src, View.of(src.shape))]}, src.shape)


@register("Crop", param="Crop", infer=_infer_crop, lower=_lower_crop, geometry=True, examples=[
    Example({"axis": 2, "offset": (1, 2)}, [Spec((1, 3, 6, 7), _F32), Spec((1, 9, 4, 5), _F32)]),
    Example({"axis": 1, "offset": (1,)}, [Spec((1, 3, 6), _F32), Spec((1, 2, 4), _F32)], name="one_offset"),
])
def crop(op: Op, x: np.ndarray, like: np.ndarray) -> np.ndarray:
    """x cut to the size of `like` in all axes from `axis` on, beginning at `offset` (Caffe)."""
    return _take(x, _crop_cuts(op, [Spec.of(x), Spec.of(like)]))
