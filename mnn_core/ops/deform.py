"""Deformable convolution (Dai et al. 2017, modulated by Zhu et al. 2018), as ONNX's DeformConv."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import need
from ._rules import FLOAT32, as_array, optional, require_float
from .registry import Example, register

_ATTRIBUTES = {"kernel_shape": (), "strides": (), "pads": (), "dilations": (), "group": 1, "offset_group": 1}


class _Shape:
    """Sizes of a deformable convolution."""

    def __init__(self, op: Op, x: Spec, w: Spec, offset: Spec) -> None:
        if x.rank != 4 or w.rank != 4 or offset.rank != 4:
            raise ShapeError(f"{op}: found x {x}, weight {w}, offset {offset}; images of two dimensions are supported")
        self.kernel = tuple(int(k) for k in op["kernel_shape"]) or w.shape[2:]
        self.strides, self.dilations = tuple(op["strides"]) or (1, 1), tuple(op["dilations"]) or (1, 1)
        self.pads = tuple(op["pads"]) or (0, 0, 0, 0)
        self.group, self.offset_group = op["group"], op["offset_group"]
        room = [n + a + b - (d * (k - 1) + 1)
                for n, a, b, d, k in zip(x.shape[2:], self.pads, self.pads[2:], self.dilations, self.kernel)]
        positive = min(*self.strides, *self.dilations, self.group, self.offset_group) >= 1
        if not positive or min(room) < 0 or self.kernel != w.shape[2:] or x.shape[1] != w.shape[1] * self.group or \
                w.shape[0] % self.group or x.shape[1] % self.offset_group:
            raise ShapeError(f"{op}: x {x} and weight {w} do not fit: kernel {self.kernel}, strides {self.strides}, pads "
                             f"{self.pads}, dilations {self.dilations}, {self.group} groups, {self.offset_group} offset groups")
        self.out = tuple(r // s + 1 for r, s in zip(room, self.strides))
        taps = self.kernel[0] * self.kernel[1]
        if offset.shape != (x.shape[0], self.offset_group * taps * 2, *self.out):
            raise ShapeError(f"{op}: offset is {offset}; expected [{x.shape[0]}, {self.offset_group * taps * 2}, "
                             f"{self.out[0]}, {self.out[1]}]")


def _infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, w = need(op, inputs, 0), need(op, inputs, 1)
    require_float(op, x)
    shape = _Shape(op, x, w, need(op, inputs, 2))
    mask = optional(inputs, 4)
    wanted = (x.shape[0], shape.offset_group * shape.kernel[0] * shape.kernel[1], *shape.out)
    if mask is not None and mask.shape != wanted:
        raise ShapeError(f"{op}: mask is {mask}; expected {list(wanted)}")
    return [Spec((x.shape[0], w.shape[0], *shape.out), FLOAT32)]


def _sampled(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Images x [n, c, height, width] at places (y, z) [n, ...], bilinear; 0 outside: [n, c, ...]."""
    height, width = x.shape[2:]
    top, left = np.floor(y), np.floor(z)
    batch = np.arange(len(x)).reshape(-1, *[1] * (y.ndim - 1))
    total = np.zeros((x.shape[1], *y.shape))
    for row, share in ((top, top + 1 - y), (top + 1, y - top)):
        for column, part in ((left, left + 1 - z), (left + 1, z - left)):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            i, j = (np.where(inside, p, 0).astype(np.intp) for p in (row, column))
            total += np.moveaxis(x[batch, :, i, j], -1, 0) * np.where(inside, share * part, 0)
    return np.moveaxis(total, 0, 1)


@register("onnx.DeformConv", attrs=_ATTRIBUTES, infer=_infer, examples=[
    Example({"pads": (1, 1, 1, 1)}, [Spec((2, 4, 5, 6), FLOAT32), Spec((3, 4, 3, 3), FLOAT32), Spec((2, 18, 5, 6), FLOAT32),
                                     Spec((3,), FLOAT32), Spec((2, 9, 5, 6), FLOAT32)], 1e-4),
    Example({"group": 2, "offset_group": 2, "strides": (2, 1), "dilations": (1, 2)},
            [Spec((1, 4, 7, 6), FLOAT32), Spec((4, 2, 2, 2), FLOAT32), Spec((1, 16, 3, 4), FLOAT32)], 1e-4, "groups"),
])
def deform_conv(op: Op, x: np.ndarray, w: np.ndarray, offset: np.ndarray, bias: np.ndarray | None = None,
                mask: np.ndarray | None = None) -> np.ndarray:
    """x [N, C, H, W] convolved with w [O, C / group, kH, kW]; each tap reads where its offset moves it to.

    offset [N, offset_group * kH * kW * 2, oH, oW] holds (down, right) for each tap; mask [N, offset_group * kH * kW, oH, oW]
    weights what is read. Between pixels values are bilinear, outside of the image 0.
    """
    s = _Shape(op, Spec.of(x), Spec.of(w), Spec.of(offset))
    n, channels = x.shape[:2]
    taps = s.kernel[0] * s.kernel[1]
    move = offset.reshape(n, s.offset_group, taps, 2, *s.out).astype(np.float64)
    share = np.ones((n, s.offset_group, taps, *s.out)) if mask is None else mask.reshape(n, s.offset_group, taps, *s.out)
    down, right = (np.arange(o).reshape(shape) * step - pad for o, step, pad, shape in zip(
        s.out, s.strides, s.pads, ((-1, 1), (1, -1))))
    parts = x.astype(np.float64).reshape(n, s.offset_group, -1, *x.shape[2:])
    columns = np.empty((n, s.offset_group, parts.shape[2], taps, *s.out))
    for g in range(s.offset_group):
        for tap, (i, j) in enumerate(np.ndindex(*s.kernel)):
            y, z = down + i * s.dilations[0] + move[:, g, tap, 0], right + j * s.dilations[1] + move[:, g, tap, 1]
            columns[:, g, :, tap] = _sampled(parts[:, g], y, z) * share[:, g, tap][:, None]
    columns = columns.reshape(n, s.group, channels // s.group * taps, -1)
    weights = w.astype(np.float64).reshape(s.group, w.shape[0] // s.group, -1)
    out = (weights @ columns).reshape(n, w.shape[0], *s.out)
    if bias is not None:
        out += bias.reshape(1, -1, 1, 1)
    return as_array(out, FLOAT32)
