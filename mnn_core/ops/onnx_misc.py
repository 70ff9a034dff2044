"""Operators of ONNX that MNN has no op for, and that are too small for files of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ..ir.dtypes import NUMPY_OF, stored_dtype
from ._args import axis_of, ints, need
from ._rules import FLOAT32, INT32, as_array, optional, present, scalar
from .registry import Example, register


def _bit_types(op: Op) -> tuple[np.dtype, np.dtype]:
    for name in (op["from"], op["to"]):
        if name not in NUMPY_OF or NUMPY_OF[name].kind not in "biuf":
            raise ShapeError(f"{op}: {name!r} is no type of numbers")
    source, target = NUMPY_OF[op["from"]], NUMPY_OF[op["to"]]
    if source.itemsize != target.itemsize:
        raise ShapeError(f"{op}: {source} has {source.itemsize} bytes, {target} {target.itemsize}")
    return source, target


def _bit_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    return [Spec(present(op, inputs).shape, stored_dtype(_bit_types(op)[1]))]


@register("onnx.BitCast", attrs={"from": "DT_FLOAT", "to": "DT_INT32"}, infer=_bit_infer, examples=[
    Example({}, [np.array([[1.5, -0.0, 3e38]], np.float32)]),
    Example({"from": "DT_INT8", "to": "DT_UINT8"}, [np.array([-1, 0, 127], np.int8)], name="int8"),
])
def bit_cast(op: Op, x: np.ndarray) -> np.ndarray:
    """The bits of x, taken as `from` (a DataType name), seen as a number of type `to` of as many bytes."""
    source, target = _bit_types(op)
    with np.errstate(all="ignore"):
        bits = np.ascontiguousarray(x.astype(source)).view(target)
        return as_array(bits.reshape(x.shape), stored_dtype(target))


def _windows(op: Op, image: tuple[int, ...], block: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """(strides, dilations, pads at begins, window counts)."""
    n = len(image)
    strides, dilations = tuple(op["strides"]) or (1,) * n, tuple(op["dilations"]) or (1,) * n
    pads = tuple(op["pads"]) or (0,) * (2 * n)
    if not n == len(block) == len(strides) == len(dilations) or len(pads) != 2 * n or min(*strides, *dilations, *block) < 1:
        raise ShapeError(f"{op}: blocks {list(block)}, strides {strides}, dilations {dilations}, pads {pads} do not fit an "
                         f"image {list(image)}")
    counts = tuple((size + a + b - d * (k - 1) - 1) // s + 1 for size, a, b, d, k, s in zip(
        image, pads, pads[n:], dilations, block, strides))
    return strides, dilations, pads[:n], counts


def _col2im_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    image = ints(op, need(op, inputs, 1), "the image size (input 1)")
    block = ints(op, need(op, inputs, 2), "the block size (input 2)")
    counts = _windows(op, image, block)[3]
    taps = int(np.prod(block))
    if x.rank != 3 or x.shape[1] % taps or min(counts) < 1 or x.shape[2] != int(np.prod(counts)) or min(image) < 1:
        raise ShapeError(f"{op}: {x} does not hold {counts} blocks {list(block)} of an image {list(image)}")
    return [x.with_shape((x.shape[0], x.shape[1] // taps, *image))]


@register("onnx.Col2Im", attrs={"strides": (), "dilations": (), "pads": ()}, infer=_col2im_infer, content=(1, 2), examples=[
    Example({}, [Spec((1, 5, 5), FLOAT32), np.array([5, 5], np.int32), np.array([1, 5], np.int32)]),
    Example({"pads": (1, 0, 1, 1, 0, 1), "strides": (1, 2, 1), "dilations": (1, 1, 2)},
            [Spec((2, 16, 32), FLOAT32), np.array([3, 4, 4], np.int32), np.array([2, 2, 2], np.int32)], name="3d"),
])
def col2im(op: Op, x: np.ndarray, image: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Blocks x [N, C * prod(block), blocks] added up where they lie in an image of any rank: [N, C, *image]."""
    size, kernel = tuple(map(int, image)), tuple(map(int, block))
    strides, dilations, before, counts = _windows(op, size, kernel)
    columns = x.reshape(x.shape[0], -1, *kernel, *counts)
    out = np.zeros((x.shape[0], columns.shape[1], *size), x.dtype)
    for tap in np.ndindex(*kernel):
        places = [np.arange(c) * s + t * d - b for c, s, t, d, b in zip(counts, strides, tap, dilations, before)]
        inside = [(p >= 0) & (p < n) for p, n in zip(places, size)]
        part = columns[(slice(None), slice(None), *tap)]
        for axis, keep in enumerate(inside):
            part = part.compress(keep, axis=2 + axis)
        out[(slice(None), slice(None), *np.ix_(*[p[k] for p, k in zip(places, inside)]))] += part
    return out


def _scatter_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    past, update, indices = need(op, inputs, 0), need(op, inputs, 1), optional(inputs, 2)
    axis = axis_of(op, op["axis"], past.rank)
    same = [i for i in range(past.rank) if i != axis]
    if op["mode"] not in ("linear", "circular"):
        raise ShapeError(f"{op}: mode is {op['mode']!r}; expected 'linear' or 'circular'")
    if axis == 0 or update.rank != past.rank or any(past.shape[i] != update.shape[i] for i in same) or \
            past.dtype != update.dtype or update.shape[axis] > past.shape[axis] or \
            (indices is not None and indices.shape != past.shape[:1]):
        raise ShapeError(f"{op}: cache {past}, update {update} and indices {indices} do not fit along axis {op['axis']}")
    return [past.without_value()]


@register("onnx.TensorScatter", attrs={"axis": -2, "mode": "linear"}, infer=_scatter_infer, examples=[
    Example({}, [Spec((2, 3, 6, 4), FLOAT32), Spec((2, 3, 2, 4), FLOAT32), np.array([1, 4], np.int32)]),
    Example({"mode": "circular", "axis": 1}, [Spec((2, 5, 4), FLOAT32), Spec((2, 3, 4), FLOAT32), np.array([4, 1], np.int32)],
            name="circular"),
    Example({}, [Spec((2, 6, 4), FLOAT32), Spec((2, 2, 4), FLOAT32)], name="start"),
])
def tensor_scatter(op: Op, past: np.ndarray, update: np.ndarray, indices: np.ndarray | None = None) -> np.ndarray:
    """A cache [batch, ...] with an update written along `axis` from each row's index on (0 if there are none).

    mode "circular": what goes beyond the end continues at the start; "linear": it must not.
    """
    axis = axis_of(op, op["axis"], past.ndim)
    count, room = update.shape[axis], past.shape[axis]
    out = past.copy()
    for row in range(len(past)):
        start = 0 if indices is None else int(indices[row])
        places = np.arange(start, start + count)
        if op["mode"] == "circular":
            places %= room
        elif start < 0 or start + count > room:
            raise ShapeError(f"{op}: row {row} writes {count} entries from {start} on, beyond the {room} of the cache")
        np.moveaxis(out[row], axis - 1, 0)[places] = np.moveaxis(update[row], axis - 1, 0)
    return out


def _mel_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    bins, points = (scalar(op, _value(op, inputs, i), f"input {i}") for i in (0, 1))
    if bins < 1 or points < 1:
        raise ShapeError(f"{op}: {bins} bands of transforms of {points} points; expected 1 or more")
    return [Spec((points // 2 + 1, bins), FLOAT32)]


def _value(op: Op, inputs: Sequence[Spec | None], index: int) -> np.ndarray:
    value = need(op, inputs, index).value
    if value is None:
        raise ShapeError(f"{op}: the value of input {index} must be known to tell the output shape")
    return value


@register("onnx.MelWeightMatrix", infer=_mel_infer, content=(0, 1), examples=[
    Example({}, [np.array(8, INT32), np.array(16, INT32), np.array(8192, INT32), np.array(0, FLOAT32),
                 np.array(4096, FLOAT32)]),
])
def mel_weight_matrix(op: Op, bands: np.ndarray, points: np.ndarray, rate: np.ndarray, low: np.ndarray,
                      high: np.ndarray) -> np.ndarray:
    """Weights [points // 2 + 1, bands] that sum a spectrum up to bands of equal width on the mel scale, as ONNX defines them.

    The borders of the bands are rounded down to points of the spectrum; band i is a triangle from border i to i + 2.
    """
    count, size = int(bands.reshape(-1)[0]), int(points.reshape(-1)[0])
    limits = [2595 * np.log10(1 + float(np.asarray(f).reshape(-1)[0]) / 700) for f in (low, high)]
    mel = np.arange(count + 2) * ((limits[1] - limits[0]) / (count + 2)) + limits[0]
    borders = np.floor((size + 1) * (700 * (10 ** (mel / 2595) - 1)) / float(rate.reshape(-1)[0])).astype(np.int64)
    out = np.zeros((size // 2 + 1, count))
    for i in range(count):
        lower, center, upper = (int(b) for b in borders[i:i + 3])
        rise = center - lower
        if rise == 0:
            if 0 <= center < len(out):
                out[center, i] = 1
        else:
            for j in range(max(lower, 0), min(center + 1, len(out))):
                out[j, i] = (j - lower) / rise
        for j in range(max(center, 0), min(upper, len(out))):
            if upper > center:
                out[j, i] = (upper - j) / (upper - center)
    return as_array(out, FLOAT32)
