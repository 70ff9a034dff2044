"""Blocks of pixels moved into channels or the batch, and back."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import given, ints, need
from ._regions import View, raster
from .registry import Example, Lowered, register

_F32 = np.dtype(np.float32)


def _image(op: Op, inputs: Sequence[Spec | None]) -> tuple[Spec, int]:
    x, block = need(op, inputs, 0), op["blockSize"]
    if x.rank != 4 or block < 1:
        raise ShapeError(f"{op}: expected an input (N, C, H, W) and a blockSize of at least 1, found {x} and {block}")
    return x, block


def _infer_depth_to_space(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, b = _image(op, inputs)
    n, c, h, w = x.shape
    if c % (b * b):
        raise ShapeError(f"{op}: {c} channels of {x} are no multiple of blockSize² = {b * b}")
    return [x.with_shape((n, c // (b * b), h * b, w * b))]


def _infer_space_to_depth(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, b = _image(op, inputs)
    n, c, h, w = x.shape
    if h % b or w % b:
        raise ShapeError(f"{op}: height and width of {x} are no multiples of blockSize {b}")
    return [x.with_shape((n, c * b * b, h // b, w // b))]


def _depth_view(op: Op, shape: Sequence[int], b: int) -> View:
    """The deep side as (n, c, block row, block column, h, w)."""
    c = shape[1] // (b * b)
    if op["mode"] == "CRD":
        return View.of(shape).split(1, (c, b, b))
    return View.of(shape).split(1, (b, b, c)).permute((0, 3, 1, 2, 4, 5))


def _space_view(shape: Sequence[int], b: int) -> View:
    """The wide side as (n, c, block row, block column, h, w)."""
    return View.of(shape).split(3, (shape[3] // b, b)).split(2, (shape[2] // b, b)).permute((0, 1, 3, 5, 2, 4))


def _lower_depth_to_space(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    x, b = _image(op, inputs)
    out = outputs[0].shape
    return raster(op, {op.inputs[0]: [(_depth_view(op, x.shape, b), _space_view(out, b))]}, out)


def _lower_space_to_depth(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    x, b = _image(op, inputs)
    out = outputs[0].shape
    return raster(op, {op.inputs[0]: [(_space_view(x.shape, b), _depth_view(op, out, b))]}, out)


@register("DepthToSpace", param="DepthSpaceParam", infer=_infer_depth_to_space, lower=_lower_depth_to_space, geometry=True,
          examples=[Example({"blockSize": 2, "mode": mode}, [Spec((2, 12, 3, 5), _F32)], name=mode) for mode in ("DCR", "CRD")])
def depth_to_space(op: Op, x: np.ndarray) -> np.ndarray:
    """Channels become blocks of pixels. `mode`: channels are (row, column, depth) for "DCR", (depth, row, column) for "CRD"."""
    b = op["blockSize"]
    n, c, h, w = x.shape
    c //= b * b
    if op["mode"] == "CRD":
        y = x.reshape(n, c, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    else:
        y = x.reshape(n, b, b, c, h, w).transpose(0, 3, 4, 1, 5, 2)
    return y.reshape(n, c, h * b, w * b)


@register("SpaceToDepth", param="DepthSpaceParam", infer=_infer_space_to_depth, lower=_lower_space_to_depth, geometry=True,
          examples=[Example({"blockSize": 2, "mode": mode}, [Spec((2, 3, 4, 6), _F32)], name=mode) for mode in ("DCR", "CRD")])
def space_to_depth(op: Op, x: np.ndarray) -> np.ndarray:
    """Blocks of pixels become channels: the inverse of DepthToSpace."""
    b = op["blockSize"]
    n, c, h, w = x.shape
    y = x.reshape(n, c, h // b, b, w // b, b)
    y = y.transpose((0, 1, 3, 5, 2, 4) if op["mode"] == "CRD" else (0, 3, 5, 1, 2, 4))
    return y.reshape(n, c * b * b, h // b, w // b)


def _table(op: Op, inputs: Sequence[Spec | None], index: int, name: str) -> tuple[int, ...]:
    """Block sizes or paddings: an input, or a table attribute."""
    spec = given(inputs, index)
    if spec is not None:
        value = spec.value
        return ints(op, None if value is None else value.reshape(-1), f"input {index} ({name})")
    blob = op[name]
    if blob is None:
        raise ShapeError(f"{op}: it has neither input {index} nor attribute {name!r}")
    return tuple(int(v) for v in blob["int32s"])


def _blocks(op: Op, inputs: Sequence[Spec | None]) -> tuple[Spec, int, tuple[int, ...], list[tuple[int, int]]]:
    """The input, its first spatial axis, block sizes, and paddings or crops; spatial axes stand behind (N, C)."""
    x, block = need(op, inputs, 0), _table(op, inputs, 1, "blockShape")
    flat = _table(op, inputs, 2, "padding")
    first = 2 if x.rank >= len(block) + 2 else 1
    if x.rank < first + len(block) or len(flat) != 2 * len(block) or min(block, default=1) < 1 or min(flat, default=0) < 0:
        raise ShapeError(f"{op}: block {list(block)} and padding {list(flat)} do not fit {x}; expected a positive block size "
                         "and a pair of paddings, not negative, for each spatial axis")
    return x, first, block, list(zip(flat[::2], flat[1::2]))


def _infer_space_to_batch(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, first, block, pads = _blocks(op, inputs)
    shape = list(x.shape)
    for axis, (b, (before, after)) in enumerate(zip(block, pads), first):
        padded = shape[axis] + before + after
        if padded % b:
            raise ShapeError(f"{op}: padded size {padded} of axis {axis} of {x} is no multiple of its block size {b}")
        shape[axis] = padded // b
    shape[0] *= prod(block)
    return [x.with_shape(shape)]


def _infer_batch_to_space(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, first, block, crops = _blocks(op, inputs)
    shape = list(x.shape)
    for axis, (b, (before, after)) in enumerate(zip(block, crops), first):
        shape[axis] = shape[axis] * b - before - after
    if shape[0] % prod(block) or min(shape) < 0:
        raise ShapeError(f"{op}: {x} cannot be taken apart into blocks {list(block)} cropped by {crops}")
    shape[0] //= prod(block)
    return [x.with_shape(shape)]


def _meeting(wide: int, deep: int, b: int, phase: int, before: int) -> tuple[int, int, int]:
    """Position `phase` of blocks of b along an axis padded by `before`: (first index on it, first block, number of blocks)."""
    skip = max(0, -(-(before - phase) // b))
    count = min(deep, (wide + before - phase + b - 1) // b) - skip
    return skip * b + phase - before, skip, max(0, count)


def _copies(space: Sequence[int], batch: Sequence[int], first: int, block: Sequence[int],
            pads: Sequence[tuple[int, int]]) -> list[tuple[View, View]]:
    """(view of the space side, view of the batch side) for every position in a block."""
    n, pairs = space[0], []
    for number, phase in enumerate(np.ndindex(*block)):
        wide, deep = View.of(space), View.of(batch).cut(0, number * n, n)
        for axis, (b, p, (before, _)) in enumerate(zip(block, phase, pads), first):
            start, skip, count = _meeting(space[axis], batch[axis], b, p, before)
            wide, deep = wide.cut(axis, start, count, b), deep.cut(axis, skip, count)
        pairs.append((wide, deep))
    return pairs


def _lower_space_to_batch(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    x, first, block, pads = _blocks(op, inputs)
    out = outputs[0].shape
    fill = 0 if any(map(any, pads)) else None
    return raster(op, {op.inputs[0]: _copies(x.shape, out, first, block, pads)}, out, fill)


def _lower_batch_to_space(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    x, first, block, crops = _blocks(op, inputs)
    out = outputs[0].shape
    return raster(op, {op.inputs[0]: [(b, a) for a, b in _copies(out, x.shape, first, block, crops)]}, out)


@register("SpaceToBatchND", param="SpaceBatch", infer=_infer_space_to_batch, lower=_lower_space_to_batch, content=(1, 2),
          geometry=True, examples=[
    Example({}, [Spec((2, 3, 4, 6), _F32), np.array([2, 3], np.int32), np.zeros((2, 2), np.int32)]),
    Example({}, [Spec((1, 2, 3, 5), _F32), np.array([2, 2], np.int32), np.array([[1, 0], [2, 1]], np.int32)], name="padded"),
    Example({"blockShape": {"int32s": (2,)}, "padding": {"int32s": (0, 1)}}, [Spec((1, 2, 5), _F32)], name="attributes"),
])
def space_to_batch(op: Op, x: np.ndarray, block: np.ndarray | None = None, pads: np.ndarray | None = None) -> np.ndarray:
    """Spatial axes of (N, C, ...) padded with zeros and cut in blocks; each position in a block becomes a batch of its own."""
    ins = [Spec.of(x), None if block is None else Spec.of(block), None if pads is None else Spec.of(pads)]
    _, first, sizes, widths = _blocks(op, ins)
    padded = np.pad(x, [(0, 0)] * first + widths + [(0, 0)] * (x.ndim - first - len(sizes)))
    parts = []
    for phase in np.ndindex(*sizes):
        parts.append(padded[(slice(None),) * first + tuple(slice(p, None, b) for p, b in zip(phase, sizes))])
    return np.concatenate(parts)


@register("BatchToSpaceND", param="SpaceBatch", infer=_infer_batch_to_space, lower=_lower_batch_to_space, content=(1, 2),
          geometry=True, examples=[
    Example({}, [Spec((12, 3, 2, 2), _F32), np.array([2, 3], np.int32), np.zeros((2, 2), np.int32)]),
    Example({}, [Spec((4, 2, 3, 5), _F32), np.array([2, 2], np.int32), np.array([[1, 0], [2, 1]], np.int32)], name="cropped"),
])
def batch_to_space(op: Op, x: np.ndarray, block: np.ndarray | None = None, crops: np.ndarray | None = None) -> np.ndarray:
    """The inverse of SpaceToBatchND; crops take the place of paddings."""
    ins = [Spec.of(x), None if block is None else Spec.of(block), None if crops is None else Spec.of(crops)]
    _, first, sizes, widths = _blocks(op, ins)
    n = x.shape[0] // prod(sizes)
    spatial = [d * b for d, b in zip(x.shape[first:], sizes)]
    whole = np.empty((n, *x.shape[1:first], *spatial, *x.shape[first + len(sizes):]), x.dtype)
    for number, phase in enumerate(np.ndindex(*sizes)):
        index = (slice(None),) * first + tuple(slice(p, None, b) for p, b in zip(phase, sizes))
        whole[index] = x[number * n:(number + 1) * n]
    return whole[(slice(None),) * first + tuple(slice(a, d - z) for (a, z), d in zip(widths, spatial))]
