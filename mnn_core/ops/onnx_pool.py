"""ONNX's MaxPool, AveragePool and LpPool in their general forms: what MNN's Pooling and Pooling3D cannot say.

Any number of spatial dimensions, dilations, uneven padding, SAME for sizes known at run time, partial windows at the end
(ceil_mode), and places in the whole tensor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._rules import FLOAT32, INT32, as_array, present
from ._windows import padded, windows
from .conv_geometry import Geometry, Ints, Window, checked
from .registry import Example, register

_ATTRS: dict[str, Any] = {"kernel_shape": (), "strides": (), "dilations": (), "pads": (), "auto_pad": "NOTSET",
                          "ceil_mode": False}
_MODES = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


def _window(op: Op) -> Window:
    kernel = tuple(op["kernel_shape"])
    n = len(kernel)
    if not n or op["auto_pad"] not in _MODES or len(op["pads"]) not in (0, 2 * n):
        raise ShapeError(f"{op}: kernel_shape {list(kernel)}, pads {list(op['pads'])}, auto_pad {op['auto_pad']!r}; expected "
                         f"a kernel, two pads a dimension, and one of {', '.join(_MODES)}")
    pads = tuple(op["pads"]) if op["auto_pad"] == "NOTSET" else ()
    strides, dilations = tuple(op["strides"]) or (1,) * n, tuple(op["dilations"]) or (1,) * n
    return checked(op, Window(kernel, strides, dilations, pads or (0,) * (2 * n)))


def _geometry(op: Op, shape: Ints) -> Geometry:
    """Where the windows lie (ONNX, operator MaxPool, version 22). One that starts in the padding at the end is left out."""
    w = _window(op)
    n, size = len(w.kernel), shape[2:]
    if len(size) != n:
        raise ShapeError(f"{op}: its input has shape {list(shape)}; expected {n} spatial dimensions after two others")
    begins, ends = w.pads[:n], w.pads[n:]
    if op["auto_pad"].startswith("SAME"):
        output = tuple(-(-i // s) for i, s in zip(size, w.strides))
        totals = [max((o - 1) * s + e - i, 0) for o, s, e, i in zip(output, w.strides, w.extent, size)]
        small, large = tuple(t // 2 for t in totals), tuple(t - t // 2 for t in totals)
        begins, ends = (small, large) if op["auto_pad"] == "SAME_UPPER" else (large, small)
        return Geometry(w.kernel, w.strides, w.dilations, begins, ends, size, output)
    room = [i + b + e - x for i, b, e, x in zip(size, begins, ends, w.extent)]
    if min(room) < 0 and not (op["ceil_mode"] and all(r > -s for r, s in zip(room, w.strides))):
        raise ShapeError(f"{op}: a window that spans {list(w.extent)} does not fit an input of {list(size)} padded by "
                         f"{list(begins)} and {list(ends)}")
    ceil = op["ceil_mode"]
    counts = [(-(-r // s) if ceil else r // s) + 1 for r, s in zip(room, w.strides)]
    output = tuple(c - 1 if ceil and (c - 1) * s >= i + b else c for c, s, i, b in zip(counts, w.strides, size, begins))
    return Geometry(w.kernel, w.strides, w.dilations, begins, ends, size, output)


def _infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    shape = (*x.shape[:2], *_geometry(op, x.shape).output)
    return [Spec(shape, x.dtype), *([Spec(shape, INT32)] if len(op.outputs) > 1 else [])]


def _examples(**more: Any) -> list[Example]:
    return [
        Example({"kernel_shape": (3,), **more}, [Spec((1, 2, 7), FLOAT32)], name="line"),
        Example({"kernel_shape": (2, 3), "strides": (2, 2), "dilations": (2, 1), "pads": (0, 1, 1, 0), "ceil_mode": True,
                 **more}, [Spec((2, 3, 7, 6), FLOAT32)], name="dilated"),
        Example({"kernel_shape": (3, 2, 2), "strides": (2, 2, 1), "auto_pad": "SAME_LOWER", **more},
                [Spec((1, 2, 5, 4, 3), FLOAT32)], name="volume"),
    ]


def _flat(view: np.ndarray, rank: int) -> np.ndarray:
    """Windows (N, C, *kernel, *output) with the kernel as one axis, the third."""
    return view.reshape(*view.shape[:2], math.prod(view.shape[2:2 + rank]), *view.shape[2 + rank:])


@register("onnx.MaxPool", attrs={**_ATTRS, "storage_order": 0}, infer=_infer, examples=_examples())
def max_pool(op: Op, x: np.ndarray) -> Any:
    """The greatest element of each window; output 1: its place in the whole tensor, the first if there are several.

    storage_order 1 counts places within an image by columns: the first spatial dimension varies fastest.
    """
    g = _geometry(op, x.shape)
    rank = len(g.kernel)
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    values = _flat(windows(padded(x, g, lowest), g), rank)
    best = values.max(axis=2, initial=lowest)
    if len(op.outputs) < 2:
        return as_array(best, x.dtype)
    numbers = np.arange(math.prod(g.input), dtype=np.int64)
    image = numbers.reshape(g.input[::-1]).transpose() if op["storage_order"] else numbers.reshape(g.input)
    places = _flat(windows(padded(image[None, None], g, -1), g), rank)
    found = np.where((values == best[:, :, None]) & (places >= 0), places, np.iinfo(np.int64).max)
    # of equal elements that which comes first by rows
    rows = _flat(windows(padded(numbers.reshape(1, 1, *g.input), g, -1), g), rank)
    first = np.where(found < np.iinfo(np.int64).max, rows, np.iinfo(np.int64).max).argmin(axis=2)
    place = np.take_along_axis(np.broadcast_to(places, values.shape), first[:, :, None], 2)[:, :, 0]
    planes = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *(1,) * rank) * image.size
    return as_array(best, x.dtype), as_array(np.maximum(place, 0) + planes, INT32)


@register("onnx.AveragePool", attrs={**_ATTRS, "count_include_pad": False}, infer=_infer,
          examples=[*_examples(), *_examples(count_include_pad=True)])
def average_pool(op: Op, x: np.ndarray) -> np.ndarray:
    """The mean of each window: of its elements in the input or, with count_include_pad, in the padding too, never beyond."""
    g = _geometry(op, x.shape)
    rank = len(g.kernel)
    total = _flat(windows(padded(x.astype(np.float64), g), g), rank).sum(axis=2)
    ones = np.ones((1, 1, *g.input))
    if op["count_include_pad"]:
        ones = np.pad(ones, ((0, 0), (0, 0), *zip(g.begins, g.ends)), constant_values=1)
        inside = Geometry(g.kernel, g.strides, g.dilations, (0,) * rank, (0,) * rank, ones.shape[2:], g.output)
        count = _flat(windows(padded(ones, inside), inside), rank).sum(axis=2)
    else:
        count = _flat(windows(padded(ones, g), g), rank).sum(axis=2)
    with np.errstate(all="ignore"):
        return as_array(total / count, x.dtype)


@register("onnx.LpPool", attrs={**_ATTRS, "p": 2}, infer=_infer, examples=[*_examples(), *_examples(p=3)])
def lp_pool(op: Op, x: np.ndarray) -> np.ndarray:
    """The p-norm of each window: (sum |x|^p)^(1/p)."""
    g = _geometry(op, x.shape)
    powers = np.abs(x.astype(np.float64)) ** op["p"]
    return as_array(_flat(windows(padded(powers, g), g), len(g.kernel)).sum(axis=2) ** (1 / op["p"]), x.dtype)
