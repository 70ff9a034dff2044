"""Convolution in NumPy for any number of spatial dimensions: strided windows and matrix products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ir import Op
from .conv_geometry import Geometry

#: Elements of windows that are laid out as a matrix at a time.
_CHUNK = 1 << 20


def padded(x: np.ndarray, g: Geometry, value: float = 0) -> np.ndarray:
    """x (N, C, ...) with its padding, cut or lengthened to what the windows read. May be x itself."""
    ends = [(o - 1) * s + d * (k - 1) + 1 - b - i
            for o, s, d, k, b, i in zip(g.output, g.strides, g.dilations, g.kernel, g.begins, g.input)]
    if any(g.begins) or any(e > 0 for e in ends):
        x = np.pad(x, ((0, 0), (0, 0), *((b, max(e, 0)) for b, e in zip(g.begins, ends))), constant_values=value)
    return x


def windows(x: np.ndarray, g: Geometry) -> np.ndarray:
    """A view of a padded x: (N, C, *kernel, *output)."""
    space = x.strides[2:]
    return np.lib.stride_tricks.as_strided(
        x, (*x.shape[:2], *g.kernel, *g.output),
        (*x.strides[:2], *(s * d for s, d in zip(space, g.dilations)), *(s * t for s, t in zip(space, g.strides))),
        writeable=False)


def working_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype to multiply in: at least float32; float64 for integers, where it is exact."""
    return np.promote_types(dtype, np.float32) if dtype.kind == "f" else np.dtype(np.float64)


def convolution(x: np.ndarray, weight: np.ndarray, g: Geometry, group: int, fill: float = 0) -> np.ndarray:
    """x (N, C, ...), weight (O, C / group, *kernel) -> (N, O, *output) in the working dtype."""
    dtype = working_dtype(x.dtype)
    x = padded(x.astype(dtype, copy=False), g, fill)
    w = weight.astype(dtype, copy=False)
    n, outputs = x.shape[0], weight.shape[0]
    out = np.empty((n, outputs, *g.output), dtype)
    if out.size == 0:
        return out
    if weight.shape[1] == 1 and group > 1:
        return _depthwise(x, w, g, out)
    view = windows(x, g)
    depth = math.prod(weight.shape[1:])
    matrix = w.reshape(group, outputs // group, depth)
    rows = max(1, _CHUNK // max(1, depth * group * math.prod(g.output[1:])))
    first = 2 + len(g.kernel)
    for image in range(n):
        for row in range(0, g.output[0], rows):
            index: tuple[Any, ...] = (image, *(slice(None),) * (first - 1), slice(row, row + rows))
            columns = view[index].reshape(group, depth, -1)
            out[image, :, row:row + rows] = (matrix @ columns).reshape(outputs, -1, *g.output[1:])
    return out


def _depthwise(x: np.ndarray, weight: np.ndarray, g: Geometry, out: np.ndarray) -> np.ndarray:
    """Each input channel makes outputs / channels output channels: sums over the taps, one after the other."""
    each = weight.shape[0] // x.shape[1]
    view = windows(x, g)
    if each > 1:
        view = np.repeat(view, each, axis=1)
    out[...] = 0
    space = (1,) * len(g.kernel)
    for tap in np.ndindex(*g.kernel):
        out += view[(slice(None), slice(None), *tap)] * weight[(slice(None), 0, *tap)].reshape(-1, *space)
    return out


def transposed(x: np.ndarray, weight: np.ndarray, g: Geometry, group: int) -> np.ndarray:
    """x (N, I, ...), weight (I, O / group, *kernel) -> (N, O, *output) in the working dtype."""
    dtype = working_dtype(x.dtype)
    n, inputs, each = x.shape[0], x.shape[1], weight.shape[1]
    outputs = each * group
    full = [max((i - 1) * s + d * (k - 1) + 1, b + o) for i, s, d, k, b, o in
            zip(g.input, g.strides, g.dilations, g.kernel, g.begins, g.output)]
    out = np.zeros((n, outputs, *full), dtype)
    if x.size and out.size:
        columns = x.astype(dtype, copy=False).reshape(n, group, inputs // group, -1)
        w = weight.astype(dtype, copy=False).reshape(group, inputs // group, each, *g.kernel)
        for tap in np.ndindex(*g.kernel):
            part = w[(..., *tap)].swapaxes(1, 2) @ columns
            where = tuple(slice(t * d, t * d + (i - 1) * s + 1, s) for t, d, i, s in zip(tap, g.dilations, g.input, g.strides))
            out[(slice(None), slice(None), *where)] += part.reshape(n, outputs, *g.input)
    return out[(slice(None), slice(None), *(slice(b, b + o) for b, o in zip(g.begins, g.output)))]


def finished(op: Op, out: np.ndarray, bias: np.ndarray | None, dtype: np.dtype) -> np.ndarray:
    """Bias added, then `relu` or `relu6`, as a dtype."""
    if bias is not None:
        out = out + bias.astype(out.dtype, copy=False).reshape(-1, *(1,) * (out.ndim - 2))
    if op["relu6"]:
        out = np.clip(out, 0, 6)
    elif op["relu"]:
        out = np.maximum(out, 0)
    return np.ascontiguousarray(out.astype(dtype, copy=False))
