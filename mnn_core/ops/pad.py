"""Padding, Tile, BroadcastTo: tensors made larger by repeating or inventing elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import given, ints, need
from ._regions import Run, View, count_runs, raster, runs
from .registry import Example, Lowered, register

_F32 = np.dtype(np.float32)
#: A padding of more pieces, many times its tensor's size, is computed instead.
_FEW_REGIONS = 4096


def _i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


# Padding


def _widths(op: Op, inputs: Sequence[Spec | None]) -> list[tuple[int, int]]:
    """(before, after) of each axis; negative ones cut."""
    x, pads = need(op, inputs, 0), given(inputs, 1)
    flat = ints(op, None if pads is None or pads.value is None else pads.value.reshape(-1), "the paddings (input 1)")
    widths = list(zip(flat[::2], flat[1::2]))
    if len(flat) != 2 * x.rank or any(d + a + b < 0 for d, (a, b) in zip(x.shape, widths)):
        raise ShapeError(f"{op}: paddings {list(flat)} do not fit {x}; expected a pair (before, after) for each axis, that "
                         "cuts off no more than is there")
    return widths


def _indices(op: Op, length: int, before: int, after: int) -> np.ndarray:
    """Which element of an axis stands at each place of the padded axis; -1 where none does."""
    at = np.arange(-before, length + after)
    mode = op["mode"]
    if mode == "CONSTANT":
        return np.where((at < 0) | (at >= length), -1, at)
    if mode == "EDGE":
        return np.clip(at, 0, length - 1)
    if mode == "SYMMETRIC":
        at = at % (2 * length) if length else at
        return np.where(at < length, at, 2 * length - 1 - at)
    period = max(1, 2 * (length - 1))
    at = at % period
    return np.where(at < length, at, period - at)


def _parts(indices: np.ndarray) -> list[Run]:
    """Runs of an axis; those of places where no element stands begin with -1."""
    borders = np.flatnonzero(np.diff(indices < 0)) + 1
    found, at = [], 0
    for block in np.split(indices, borders):
        found += [Run(at + r.at, r.first, r.count, r.step) for r in runs(block)]
        at += len(block)
    return found


def _all_indices(op: Op, inputs: Sequence[Spec | None]) -> list[np.ndarray]:
    return [_indices(op, d, a, b) for d, (a, b) in zip(need(op, inputs, 0).shape, _widths(op, inputs))]


def _infer_padding(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, widths = need(op, inputs, 0), _widths(op, inputs)
    if op["mode"] != "CONSTANT" and any(d == 0 and a + b > 0 for d, (a, b) in zip(x.shape, widths)):
        raise ShapeError(f"{op}: an empty axis cannot be padded in mode {op['mode']}")
    return [x.with_shape([d + a + b for d, (a, b) in zip(x.shape, widths)])]


def _lower_padding(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered | None:
    x, value, shape = need(op, inputs, 0), given(inputs, 2), outputs[0].shape
    indices = _all_indices(op, inputs)
    if math.prod(map(count_runs, indices)) > _FEW_REGIONS:
        return None
    parts = [_parts(i) for i in indices]
    inside: list[tuple[View, View]] = []
    outside: list[tuple[View, View]] = []
    for block in product(*parts):
        dst = View.of(shape)
        src, padded = View.of(x.shape), False
        for axis, run in enumerate(block):
            dst = dst.cut(axis, run.at, run.count)
            src = src.cut(axis, run.first, run.count, run.step)
            padded = padded or run.first < 0
        (outside if padded else inside).append((src, dst))
    if op["mode"] != "CONSTANT" or not outside:
        return raster(op, {op.inputs[0]: inside}, shape)
    if value is None or value.value is not None:
        fill = 0 if value is None or value.value is None else value.value.reshape(-1)[0].item()
        return raster(op, {op.inputs[0]: inside}, shape, fill)
    filled = [(op.inputs[2], View.of(()).expand(dst.shape), dst) for _, dst in outside]
    return raster(op, [*((op.inputs[0], src, dst) for src, dst in inside), *filled], shape)


@register("Padding", param="PadParam", infer=_infer_padding, lower=_lower_padding, content=(1,), geometry=True, examples=[
    Example({}, [Spec((2, 3), _F32), _i32(1, 0, 2, 3)], name="zeros"),
    Example({}, [Spec((2, 3), _F32), _i32(1, 1, 0, 1), np.array(2.5, np.float32)], name="value"),
    Example({}, [Spec((2, 3), _F32), _i32(1, 1, 0, 1), Spec((), _F32)], name="computed_value"),
    Example({}, [Spec((1, 4), _F32), _i32(0, 0, -1, 1)], name="negative"),
    Example({"mode": "REFLECT"}, [Spec((1, 2, 4, 5), _F32), _i32(0, 0, 0, 0, 2, 1, 1, 3)], name="reflect"),
    Example({"mode": "SYMMETRIC"}, [Spec((3, 4), _F32), _i32(2, 1, 0, 4)], name="symmetric"),
    Example({"mode": "EDGE"}, [Spec((3, 4), np.dtype(np.int32)), _i32(2, 1, 0, 4)], name="edge"),
])
def padding(op: Op, x: np.ndarray, pads: np.ndarray, value: np.ndarray | None = None) -> np.ndarray:
    """x with more (or, where paddings are negative, fewer) elements at both ends of its axes.

    pads: before, after for each axis. `mode`: the new elements are `value` (0) for "CONSTANT", mirrored without ("REFLECT")
    or with ("SYMMETRIC") the last element, or the last element ("EDGE").
    """
    indices = _all_indices(op, [Spec.of(x), Spec.of(pads)])
    if not indices:
        return x.copy()
    shape = tuple(len(i) for i in indices)
    fill = 0 if value is None else value.reshape(-1)[0]
    if 0 in x.shape:
        return np.full(shape, fill, x.dtype)
    y = x[np.ix_(*indices)]
    for axis, index in enumerate(indices):
        np.moveaxis(y, axis, 0)[index < 0] = fill
    return y


# Tile


def _repeats(op: Op, inputs: Sequence[Spec | None]) -> tuple[int, ...]:
    x, repeats = need(op, inputs, 0), ints(op, given(inputs, 1), "the repeats (input 1)")
    if len(repeats) != x.rank or min(repeats, default=0) < 0:
        raise ShapeError(f"{op}: repeats {list(repeats)} do not fit {x}; expected a number, not negative, for each axis")
    return repeats


def _infer_tile(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = need(op, inputs, 0)
    return [x.with_shape([d * r for d, r in zip(x.shape, _repeats(op, inputs))])]


def _lower_tile(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    x = need(op, inputs, 0)
    src, dst = View.of(x.shape), View.of(outputs[0].shape)
    for axis, times in reversed(list(enumerate(_repeats(op, inputs)))):
        dst = dst.split(axis, (times, x.shape[axis]))
        src = src.insert(axis, times)
    return raster(op, {op.inputs[0]: [(src, dst)]}, outputs[0].shape)


@register("Tile", infer=_infer_tile, lower=_lower_tile, content=(1,), geometry=True, examples=[
    Example({}, [Spec((2, 3), _F32), _i32(2, 3)]),
    Example({}, [Spec((2, 1, 3), np.dtype(np.int32)), _i32(1, 4, 1)], name="one_axis"),
    Example({}, [Spec((2, 3), _F32), _i32(0, 1)], name="none"),
])
def tile(op: Op, x: np.ndarray, repeats: np.ndarray) -> np.ndarray:
    """x repeated `repeats` times along its axes."""
    return np.tile(x, _repeats(op, [Spec.of(x), Spec.of(repeats)]))


# BroadcastTo


def _broadcast_shape(op: Op, inputs: Sequence[Spec | None]) -> tuple[int, ...]:
    x, wanted = need(op, inputs, 0), ints(op, given(inputs, 1), "the shape (input 1)")
    exact = "axis" in op.attrs and op["axis"] != 0
    try:
        shape = np.broadcast_shapes(x.shape, wanted)
    except ValueError:
        shape = None
    if shape is None or (exact and shape != wanted):
        raise ShapeError(f"{op}: {x} cannot be broadcast to {list(wanted)}")
    return shape


def _infer_broadcast(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    return [need(op, inputs, 0).with_shape(_broadcast_shape(op, inputs))]


def _lower_broadcast(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    shape = outputs[0].shape
    return raster(op, {op.inputs[0]: [(View.of(need(op, inputs, 0).shape).expand(shape), View.of(shape))]}, shape)


_BROADCAST_EXAMPLES = [
    Example({}, [Spec((3, 1), _F32), _i32(2, 3, 4)]),
    Example({}, [Spec((3, 4), _F32), _i32(1, 1)], name="both_ways"),
    Example({}, [Spec((), _F32), _i32(2, 0)], name="empty"),
]


@register("BroadcastTo", param="Axis", infer=_infer_broadcast, lower=_lower_broadcast, content=(1,), geometry=True,
          examples=_BROADCAST_EXAMPLES)
def broadcast_to(op: Op, x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """x broadcast to a shape, which x may itself enlarge (as ONNX's Expand); with `axis` other than 0, exactly to it."""
    return np.broadcast_to(x, _broadcast_shape(op, [Spec.of(x), Spec.of(shape)])).copy()


@register("Broastcast", infer=_infer_broadcast, lower=_lower_broadcast, content=(1,), geometry=True,
          examples=_BROADCAST_EXAMPLES)
def broastcast(op: Op, x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """The older spelling of BroadcastTo."""
    return broadcast_to(op, x, shape)
