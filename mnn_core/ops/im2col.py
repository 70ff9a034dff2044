"""Windows of an image as columns, and back: Im2Col, Col2Im."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import given, ints, need
from ._regions import View, raster
from .registry import Example, Lowered, register

_F32 = np.dtype(np.float32)


class _Windows:
    """Where the windows of a (height, width) image lie; attributes as those of a convolution."""

    def __init__(self, op: Op, height: int, width: int) -> None:
        self.kernel = (op["kernelY"], op["kernelX"])
        self.stride = (op["strideY"], op["strideX"])
        self.dilate = (op["dilateY"], op["dilateX"])
        pads = [int(p) for p in op["pads"]] or [op["padY"], op["padX"]] * 2
        self.size, self.before = (height, width), (pads[0], pads[1])
        reach = [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilate)]
        room = [n + a + b - r for n, a, b, r in zip(self.size, pads[:2], pads[2:], reach)]
        if min(*self.kernel, *self.stride, *self.dilate) < 1 or min(room) < 0 or min(pads) < 0:
            raise ShapeError(f"{op}: windows of {self.kernel}, stride {self.stride}, dilation {self.dilate} do not fit an "
                             f"image of {height} x {width} padded by {pads}")
        self.count = tuple(r // s + 1 for r, s in zip(room, self.stride))

    def inside(self, axis: int, tap: int) -> tuple[int, int, int]:
        """(first window, first pixel, number of windows) whose `tap`-th pixel along an axis is within the image."""
        offset = tap * self.dilate[axis] - self.before[axis]
        first = max(0, -(offset // self.stride[axis])) if offset < 0 else 0
        last = (self.size[axis] - 1 - offset) // self.stride[axis]
        return first, first * self.stride[axis] + offset, max(0, min(last, self.count[axis] - 1) - first + 1)


def _image(op: Op, inputs: Sequence[Spec | None]) -> tuple[Spec, _Windows]:
    x = need(op, inputs, 0)
    if x.rank != 4:
        raise ShapeError(f"{op}: expected an input (N, C, H, W), found {x}")
    return x, _Windows(op, *x.shape[2:])


def _infer_im2col(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, w = _image(op, inputs)
    return [x.with_shape((x.shape[1] * w.kernel[0] * w.kernel[1], x.shape[0] * w.count[0] * w.count[1]))]


def _taps(view: View, w: _Windows, row: int, column: int) -> View:
    """Pixels (n, c, i, j) of an image view that windows (i, j), where they are inside, have at a place of theirs."""
    for axis, tap in enumerate((row, column)):
        _, pixel, count = w.inside(axis, tap)
        view = view.cut(2 + axis, pixel, count, w.stride[axis])
    return view


def _lower_im2col(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    x, w = _image(op, inputs)
    n, c = x.shape[:2]
    columns = View.of(outputs[0].shape).split(1, (n, *w.count)).split(0, (c, *w.kernel)).permute((3, 0, 1, 2, 4, 5))
    copies = []
    for row, column in np.ndindex(*w.kernel):
        dst = columns.cut(2, row, 1).cut(3, column, 1)
        for axis, tap in enumerate((row, column)):
            first, _, count = w.inside(axis, tap)
            dst = dst.cut(4 + axis, first, count)
        copies.append((_taps(View.of(x.shape), w, row, column).insert(2).insert(2), dst))
    return raster(op, {op.inputs[0]: copies}, outputs[0].shape, 0 if any(op["pads"]) or op["padX"] or op["padY"] else None)


@register("Im2Col", param="Convolution2D", infer=_infer_im2col, lower=_lower_im2col, geometry=True, examples=[
    Example({"kernelX": 3, "kernelY": 2}, [Spec((2, 3, 5, 6), _F32)]),
    Example({"kernelX": 3, "kernelY": 3, "padX": 1, "padY": 2, "strideX": 2, "dilateY": 2}, [Spec((2, 3, 5, 6), _F32)],
            name="padded"),
    Example({"kernelX": 2, "kernelY": 2, "pads": (1, 0, 0, 2)}, [Spec((1, 1, 4, 4), _F32)], name="pads"),
])
def im2col(op: Op, x: np.ndarray) -> np.ndarray:
    """Windows of (N, C, H, W) as columns: (C * kernelY * kernelX, N * windows)."""
    x_spec, w = _image(op, [Spec.of(x)])
    n, c = x_spec.shape[:2]
    out = np.zeros((c, *w.kernel, n, *w.count), x.dtype)
    for row, column in np.ndindex(*w.kernel):
        (i, y, rows), (j, z, columns) = w.inside(0, row), w.inside(1, column)
        pixels = x[:, :, y:y + rows * w.stride[0]:w.stride[0], z:z + columns * w.stride[1]:w.stride[1]]
        out[:, row, column, :, i:i + rows, j:j + columns] = pixels[:, :, :rows, :columns].swapaxes(0, 1)
    return out.reshape(c * w.kernel[0] * w.kernel[1], n * w.count[0] * w.count[1])


def _columns(op: Op, inputs: Sequence[Spec | None]) -> tuple[Spec, _Windows, int]:
    x, size = need(op, inputs, 0), ints(op, given(inputs, 1), "the image size (input 1)")
    if x.rank != 3 or len(size) != 2:
        raise ShapeError(f"{op}: expected columns (N, C * kernelY * kernelX, windows) and an image size [H, W], found {x} and "
                         f"{list(size)}")
    w = _Windows(op, *size)
    taps = w.kernel[0] * w.kernel[1]
    if x.shape[1] % taps or x.shape[2] != w.count[0] * w.count[1]:
        raise ShapeError(f"{op}: {x} does not hold {w.count} windows of {w.kernel} of an image {list(size)}")
    return x, w, x.shape[1] // taps


def _infer_col2im(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, w, channels = _columns(op, inputs)
    return [x.with_shape((x.shape[0], channels, *w.size))]


@register("Col2Im", param="Convolution2D", infer=_infer_col2im, content=(1,), examples=[
    Example({"kernelX": 2, "kernelY": 3}, [Spec((2, 12, 15), _F32), np.array([5, 6], np.int32)]),
    Example({"kernelX": 2, "kernelY": 2, "strideX": 2, "padX": 1, "padY": 1, "dilateY": 2},
            [Spec((1, 4, 15), _F32), np.array([5, 5], np.int32)], name="padded"),
])
def col2im(op: Op, x: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Columns (N, C * kernelY * kernelX, windows) added up where their windows lie in an image: (N, C, H, W)."""
    _, w, channels = _columns(op, [Spec.of(x), Spec.of(size)])
    out = np.zeros((x.shape[0], channels, *w.size), x.dtype)
    columns = x.reshape(x.shape[0], channels, *w.kernel, *w.count)
    for row, column in np.ndindex(*w.kernel):
        (i, y, rows), (j, z, cols) = w.inside(0, row), w.inside(1, column)
        part = out[:, :, y:, z:][:, :, ::w.stride[0], ::w.stride[1]][:, :, :rows, :cols]
        part += columns[:, :, row, column, i:i + rows, j:j + cols]
    return out
