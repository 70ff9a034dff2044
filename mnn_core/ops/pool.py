"""Pooling and Pooling3D: the greatest or the mean of windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import need
from ._rules import FLOAT32, INT32, require_float
from .conv_geometry import Geometry, Window, both_ends, checked, convolve
from .registry import Example, register


def geometry(op: Op, size: Sequence[int]) -> Geometry:
    """Where the windows lie over an image of a size, (height, width) or (depth, height, width).

    As many windows fit as ONNX has it: with `ceilModel` the last may reach beyond the padding, but one that would begin behind
    the input is left out. A window larger than the padded input is cut to it, as MNN does. Raises ShapeError.
    """
    size, n = tuple(size), len(size)
    if op["isGlobal"]:
        return Geometry(size, (1,) * n, (1,) * n, (0,) * n, (0,) * n, size, (1,) * n)
    if op.type == "Pooling3D":
        kernel, strides, pads, ceil = tuple(op["kernels"]), tuple(op["strides"]) or (1,) * n, tuple(op["pads"]), False
    else:
        kernel, strides = (op["kernelY"], op["kernelX"]), (op["strideY"] or 1, op["strideX"] or 1)
        pads, ceil = tuple(op["pads"]) or (op["padY"], op["padX"]), op["ceilModel"]
    mode = op["padType"]
    w = checked(op, Window(kernel, strides, (1,) * n, both_ends(op, pads, n), mode))
    if len(kernel) != n or min(size) < 1:
        raise ShapeError(f"{op}: windows of {list(kernel)} do not fit an image of {list(size)}")
    if mode == "CAFFE":
        kernel = tuple(min(k, i + b + e) for k, i, b, e in zip(kernel, size, w.pads[:n], w.pads[n:]))
        w = Window(kernel, strides, w.dilations, w.pads)
    g = convolve(op, w, size)
    if mode != "CAFFE" or not ceil:
        return g
    output = []
    for i, k, s, b, e in zip(size, kernel, strides, g.begins, g.ends):
        count = -(-(i + b + e - k) // s) + 1
        output.append(count - 1 if (count - 1) * s >= i + b else count)
    return Geometry(kernel, strides, w.dilations, g.begins, g.ends, size, tuple(output))


def counts_padding(op: Op) -> bool:
    """Whether a mean counts padding as zeros.

    DEFAULT means no, unless the padding is given as padX, padY without `pads`: that is Caffe's form, which counts it.
    """
    if op.type == "Pooling3D" or op["countType"] == "EXCLUDE_PADDING":
        return False
    return op["countType"] == "INCLUDE_PADDING" or (op["padType"] == "CAFFE" and not op["pads"])


def infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    """(N, C, *output), and the same of int32 where the second output, the places of the greatest, is asked for."""
    x = need(op, inputs, 0)
    if x.rank not in ((4,) if op.type == "Pooling" else (3, 4, 5) if op["isGlobal"] else (5,)):
        raise ShapeError(f"{op}: expected an input of rank {4 if op.type == 'Pooling' else 5}, found {x}")
    if op["type"] not in ("MAXPOOL", "AVEPOOL"):
        raise ShapeError(f"{op}: unknown type {op['type']!r}; expected MAXPOOL or AVEPOOL")
    if op["type"] == "AVEPOOL":
        require_float(op, x)
    shape = (*x.shape[:2], *geometry(op, x.shape[2:]).output)
    return [x.with_shape(shape), Spec(shape, INT32)][:max(1, len(op.outputs))]


def _f(*shape: int) -> Spec:
    return Spec(shape, FLOAT32)


def _kernel(y: int, x: int, stride: int = 1, kind: str = "MAXPOOL", ceil: bool = False, **more: Any) -> dict[str, Any]:
    return {"kernelY": y, "kernelX": x, "strideY": stride, "strideX": stride, "type": kind, "ceilModel": ceil, **more}


_MEAN: dict[str, Any] = {"kind": "AVEPOOL"}


@register("Pooling", param="Pool", infer=infer, examples=[
    Example(_kernel(2, 2, 2), [_f(2, 5, 8, 6)], name="max_2x2"),
    Example(_kernel(3, 3, 2, pads=(1, 1, 1, 1)), [_f(1, 32, 13, 14)], name="max_3x3_stride2"),
    Example(_kernel(3, 2, 2, pads=(0, 1, 2, 1), ceil=True), [_f(1, 19, 8, 7)], name="max_ceil_odd_pads"),
    Example(_kernel(3, 3, 2, padType="SAME"), [_f(1, 4, 8, 9)], name="max_same"),
    Example(_kernel(3, 3, 2, padType="VALID"), [_f(1, 4, 8, 9)], name="max_valid"),
    Example(_kernel(0, 0, isGlobal=True), [_f(2, 17, 5, 6)], name="max_global"),
    Example(_kernel(2, 2, 2, **_MEAN), [_f(2, 5, 8, 6)], name="mean_2x2"),
    Example(_kernel(3, 3, 2, pads=(1, 1, 1, 1), countType="INCLUDE_PADDING", ceil=True, **_MEAN), [_f(1, 17, 8, 8)],
            name="mean_include_ceil"),
    Example(_kernel(3, 3, 2, pads=(1, 0, 2, 1), countType="EXCLUDE_PADDING", ceil=True, **_MEAN), [_f(1, 17, 8, 7)],
            name="mean_exclude_ceil"),
    Example(_kernel(3, 3, padX=1, padY=1, **_MEAN), [_f(1, 3, 6, 6)], name="mean_caffe"),
    Example(_kernel(3, 3, 2, padType="SAME", **_MEAN), [_f(1, 4, 8, 9)], name="mean_same"),
    Example(_kernel(0, 0, isGlobal=True, **_MEAN), [_f(1, 40, 7, 7)], name="mean_global"),
    Example(_kernel(9, 9, **_MEAN), [_f(1, 3, 5, 6)], name="larger_than_image"),
    Example(_kernel(2, 2, 2), [_f(0, 5, 8, 6)], name="no_images"),
])
@register("Pooling3D", param="Pool3D", infer=infer, examples=[
    Example({"kernels": (2, 3, 2), "strides": (2, 1, 2), "pads": (1, 0, 1)}, [_f(2, 3, 5, 6, 7)], name="max"),
    Example({"kernels": (3, 3, 3), "strides": (2, 2, 2), "pads": (1, 1, 1), "type": "AVEPOOL"}, [_f(1, 4, 5, 6, 7)],
            name="mean"),
    Example({"kernels": (2, 2, 2), "strides": (2, 2, 2), "padType": "SAME", "type": "AVEPOOL"}, [_f(1, 2, 5, 4, 3)],
            name="mean_same"),
    Example({"isGlobal": True, "type": "AVEPOOL"}, [_f(2, 3, 4, 5, 6)], name="mean_global"),
    Example({"isGlobal": True}, [_f(2, 3, 4, 5)], name="max_global_2d"),
])
def pooling(op: Op, x: np.ndarray) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """The greatest (MAXPOOL) or the mean (AVEPOOL) of each window of (N, C, *size).

    Padding is never the greatest; whether the mean counts it, counts_padding tells; what lies beyond it never counts.
    A second output, of MAXPOOL in 2-D, has the place of the greatest in its image, row * width + column.
    """
    g = geometry(op, x.shape[2:])
    if op["type"] == "AVEPOOL":
        return _mean(x, g, counts_padding(op)).astype(x.dtype)
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    greatest = x
    for axis in range(len(g.kernel)):
        greatest = _along(greatest, g, axis, lowest, np.maximum)
    if len(op.outputs) < 2:
        return np.ascontiguousarray(greatest)
    return greatest, _places(x, greatest, g)


def _along(x: np.ndarray, g: Geometry, axis: int, fill: float, join: np.ufunc) -> np.ndarray:
    """Joins the taps of the windows along one spatial axis."""
    at, k, s, count = axis + 2, g.kernel[axis], g.strides[axis], g.output[axis]
    n, begin = g.input[axis], g.begins[axis]
    if n == k and count == 1 and begin == 0:
        return join.reduce(x, axis=at, keepdims=True)
    first, last = max(0, begin - (count - 1) * s), min(k, begin + n) - 1  # taps that meet the image
    lead = (slice(None),) * at
    if last < first:
        return np.full((*x.shape[:at], count, *x.shape[at + 1:]), fill, x.dtype)
    pads = [(0, 0)] * x.ndim
    pads[at] = (begin - first, max(0, (count - 1) * s + last + 1 - begin - n))
    x = np.pad(x, pads, constant_values=fill) if any(pads[at]) else x
    out = x[(*lead, slice(0, (count - 1) * s + 1, s))].copy()
    for tap in range(1, last - first + 1):
        join(out, x[(*lead, slice(tap, tap + (count - 1) * s + 1, s))], out=out)
    return out


def _mean(x: np.ndarray, g: Geometry, with_padding: bool) -> np.ndarray:
    total = x.astype(np.float64)
    for axis in range(len(g.kernel)):
        total = _along(total, g, axis, 0, np.add)
        starts = np.arange(g.output[axis]) * g.strides[axis] - g.begins[axis]
        stops = starts + g.kernel[axis]
        first, end = (-g.begins[axis], g.input[axis] + g.ends[axis]) if with_padding else (0, g.input[axis])
        count = np.minimum(stops, end) - np.maximum(starts, first)
        with np.errstate(invalid="ignore"):  # a window wholly in padding is 0 / 0 = 0
            total = total / np.maximum(count, 1).reshape(-1, *(1,) * (len(g.kernel) - 1 - axis))
    return total


def _places(x: np.ndarray, greatest: np.ndarray, g: Geometry) -> np.ndarray:
    """Where in the image each greatest element is, the first of equals."""
    places = np.full(greatest.shape, -1, np.int32)
    meeting = [range(min(k, b + n))[::-1] for k, b, n in zip(g.kernel, g.begins, g.input)]  # taps that can meet the image
    for tap in product(*meeting):
        index = [np.arange(o) * s + t - b for o, s, t, b in zip(g.output, g.strides, tap, g.begins)]
        grid = np.ix_(*(np.clip(i, 0, n - 1) for i, n in zip(index, g.input)))
        inside = np.ix_(*(((i >= 0) & (i < n)).astype(np.int8) for i, n in zip(index, g.input)))
        flat = sum(i * math.prod(g.input[axis + 1:]) for axis, i in enumerate(grid))
        place: tuple[Any, ...] = (slice(None), slice(None), *grid)
        here = (x[place] == greatest) & (math.prod(inside) > 0)
        places = np.where(here, flat, places).astype(np.int32)
    return places
