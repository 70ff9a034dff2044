"""GridSample, AffineGrid and CropAndResize: images sampled at given places."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import given, ints, need
from ._rules import FLOAT32, as_array, known, present, require_float
from .interp import cubic_weights
from .registry import Example, register


def _mode(op: Op) -> str:
    """BILINEAR, NEAREST, or CUBIC, which MNN's table does not have."""
    return "CUBIC" if op["cubic"] else op["mode"]


def _grid_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, grid = need(op, inputs, 0), need(op, inputs, 1)
    require_float(op, x)
    if op["backward"]:
        raise ShapeError(f"{op}: `backward` makes it the gradient of GridSample, which is an op of training")
    if x.rank not in (4, 5) or grid.rank != x.rank or grid.shape[0] != x.shape[0] or grid.shape[-1] != x.rank - 2:
        raise ShapeError(f"{op}: expected an image (N, C, H, W) and a grid (N, height, width, 2), or (N, C, D, H, W) and "
                         f"(N, depth, height, width, 3); found {x} and {grid}")
    if op["paddingMode"] not in ("ZEROS", "CLAMP", "REFLECTION"):
        raise ShapeError(f"{op}: unknown paddingMode {op['paddingMode']!r}; expected ZEROS, CLAMP or REFLECTION")
    if 0 in x.shape[2:] and grid.size:
        raise ShapeError(f"{op}: cannot sample {x}, which has no elements")
    return [x.with_shape((*x.shape[:2], *grid.shape[1:-1]))]


def _f(*shape: int) -> Spec:
    return Spec(shape, FLOAT32)


@register("GridSample", param="GridSample", attrs={"cubic": False}, infer=_grid_infer, examples=[
    *(Example({"mode": mode, "paddingMode": padding, "alignCorners": align}, [_f(2, 3, 5, 6), _f(2, 4, 7, 2)],
              name=f"{mode}_{padding}_{'corners' if align else 'centres'}".lower())
      for mode in ("BILINEAR", "NEAREST") for padding in ("ZEROS", "CLAMP", "REFLECTION") for align in (False, True)),
    Example({"cubic": True}, [_f(1, 17, 5, 6), _f(1, 4, 4, 2)], name="cubic"),
    Example({}, [_f(1, 2, 3, 4, 5), _f(1, 2, 3, 4, 3)], name="3d"),
])
def grid_sample(op: Op, x: np.ndarray, grid: np.ndarray, shape: np.ndarray | None = None) -> np.ndarray:
    """x (N, C, *size) at the places of grid (N, *new size, spatial rank), which has x first, then y, then z, from -1 to 1.

    `alignCorners`: -1 and 1 are the centres of the outermost elements, otherwise their outer borders. What lies outside is 0,
    the nearest border element (CLAMP), or mirrored at the border. `cubic` has a = -0.75. As ONNX's GridSample.
    """
    n, align, mode = x.ndim - 2, op["alignCorners"], _mode(op)
    size = x.shape[2:]
    places = []
    for axis, length in enumerate(size):
        at = grid[..., n - 1 - axis].astype(np.float32)
        at = (at + 1) / 2 * (length - 1) if align else ((at + 1) * length - 1) / 2
        places.append(np.nan_to_num(at, nan=-1.0, posinf=2**30, neginf=-(2.0**30)).astype(np.float32))
    taps = [_axis_taps(at, mode) for at in places]
    image = x.reshape(*x.shape[:2], math.prod(size))
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]), np.float64)
    for choice in np.ndindex(*(len(t) for t in taps)):
        picked = [t[i] for t, i in zip(taps, choice)]
        index, weight = np.zeros(grid.shape[:-1], np.intp), np.ones(grid.shape[:-1])
        for (element, share), length in zip(picked, size):
            inside, element = _outside(op["paddingMode"], element, length, align)
            index, weight = index * length + element, weight * share * inside
        count = math.prod(grid.shape[1:-1])
        flat = np.broadcast_to(index.reshape(x.shape[0], 1, count), (*x.shape[:2], count))
        out += np.take_along_axis(image, flat, 2).reshape(out.shape) * weight[:, None]
    return out.astype(x.dtype)


def _axis_taps(at: np.ndarray, mode: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """(elements, weights) along an axis, elements as whole numbers that may lie outside."""
    if mode == "NEAREST":
        return [(np.rint(at), np.ones(at.shape))]
    low = np.floor(at)
    fraction = at.astype(np.float64) - low
    if mode == "BILINEAR":
        return [(low, 1 - fraction), (low + 1, fraction)]
    return [(low + i - 1, w) for i, w in enumerate(cubic_weights(fraction, -0.75))]


def _outside(padding: str, at: np.ndarray, length: int, align: bool) -> tuple[np.ndarray, np.ndarray]:
    """Whether elements count, and which ones they are of an axis."""
    clamped = np.clip(at, 0, length - 1)
    if padding == "ZEROS":
        return at == clamped, clamped.astype(np.intp)
    if padding == "REFLECTION":
        first, last = (0.0, length - 1.0) if align else (-0.5, length - 0.5)
        span = last - first
        if span == 0:
            clamped = np.zeros_like(at)
        else:
            distance = np.abs(at.astype(np.float64) - first) % (2 * span)
            clamped = np.clip(first + np.minimum(distance, 2 * span - distance), 0, length - 1)
    return np.ones(at.shape, bool), clamped.astype(np.intp)


def _crop_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, boxes, which = (need(op, inputs, i) for i in range(3))
    size = ints(op, given(inputs, 3), "the size of crops (input 3)")
    fits = x.rank == 4 and boxes.rank == 2 and boxes.shape[1] == 4 and which.size == boxes.shape[0]
    if not fits or len(size) != 2 or min(size) < 1:
        raise ShapeError(f"{op}: expected images (N, H, W, C), boxes (count, 4), an image number for each, and [height, "
                         f"width]; found {x}, {boxes}, {which} and {list(size)}")
    return [Spec((boxes.shape[0], *size, x.shape[3]), FLOAT32)]


_BOXES = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.6, 0.9], [0.8, 0.9, 0.1, -0.4]], np.float32)
_WHICH = np.array([0, 1, 1], np.int32)


@register("CropAndResize", param="CropAndResize", infer=_crop_infer, content=(3,), examples=[
    Example({"extrapolationValue": 0.5}, [_f(2, 5, 7, 3), _BOXES, _WHICH, np.array([4, 3], np.int32)]),
    Example({"method": "NEAREST"}, [_f(2, 5, 7, 3), _BOXES, _WHICH, np.array([1, 6], np.int32)], name="nearest"),
])
def crop_and_resize(op: Op, x: np.ndarray, boxes: np.ndarray, which: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Boxes (top, left, bottom, right; 0 and 1 are the first and the last pixel) of images (N, H, W, C), each to one size.

    TensorFlow's op: what lies outside is extrapolationValue. Raises ShapeError for a number of an image that does not exist.
    """
    numbers = which.reshape(-1)
    if numbers.size and (numbers.min() < 0 or numbers.max() >= x.shape[0]):
        raise ShapeError(f"{op}: image numbers {numbers.min()}..{numbers.max()} of {x.shape[0]} images")
    out = np.empty((len(numbers), *(int(v) for v in size.reshape(-1)), x.shape[3]), np.float32)
    for box, number, crop in zip(boxes.astype(np.float32), numbers, out):
        rows, columns = (_places(box[i], box[i + 2], crop.shape[i], x.shape[1 + i]) for i in range(2))
        valid = ((rows >= 0) & (rows <= x.shape[1] - 1))[:, None] & ((columns >= 0) & (columns <= x.shape[2] - 1))[None]
        sampled = _sampled(x[number].astype(np.float32), rows, columns, op["method"])
        crop[...] = np.where(valid[..., None], sampled, np.float32(op["extrapolationValue"]))
    return out


def _places(start: np.float32, end: np.float32, count: int, length: int) -> np.ndarray:
    top = np.float32(length - 1)
    if count == 1:
        return np.array([0.5 * (start + end) * top], np.float32)
    return start * top + np.arange(count, dtype=np.float32) * ((end - start) * top / np.float32(count - 1))


def _sampled(image: np.ndarray, rows: np.ndarray, columns: np.ndarray, method: str) -> np.ndarray:
    """(H, W, C) at the crossings of rows and columns, which are clipped to the image."""
    for axis, at in enumerate((rows, columns)):
        at = np.clip(at, 0, image.shape[axis] - 1)
        if method == "NEAREST":
            image = image.take(np.floor(at + np.float32(0.5)).astype(np.intp), axis)
            continue
        low = np.floor(at)
        share = (at - low).reshape(-1, *(1,) * (2 - axis))
        high = np.ceil(at).astype(np.intp)
        first = image.take(low.astype(np.intp), axis)
        image = first + (image.take(high, axis) - first) * share
    return image


def _affine_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    theta, size = present(op, inputs), known(op, inputs, 1).reshape(-1)
    n = len(size) - 2
    if n not in (2, 3) or theta.shape != (int(size[0]), n, n + 1) or size.min() < 0:
        raise ShapeError(f"{op}: matrices {theta} for images of {size.tolist()}; expected 4 or 5 sizes, and for each image a "
                         f"matrix of {n} x {n + 1}")
    return [Spec((int(size[0]), *(int(s) for s in size[2:]), n), theta.dtype)]


@register("onnx.AffineGrid", attrs={"align_corners": False}, infer=_affine_infer, content=(1,), examples=[
    *(Example({"align_corners": corners}, [Spec((2, 2, 3), FLOAT32), np.array([2, 3, 4, 5], np.int32)]) for corners in (0, 1)),
    Example({}, [Spec((1, 3, 4), FLOAT32), np.array([1, 1, 2, 1, 3], np.int32)], name="volume"),
])
def affine_grid(op: Op, theta: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The places that affine maps `theta` take the pixels of an image of a size to: (N, height, width, (x, y)).

    Pixels lie between -1 and 1, which are the centres of the outermost ones with align_corners, otherwise
    their borders; a single one lies at 0.
    """
    counts = [int(s) for s in size.reshape(-1)[2:]]
    corners = op["align_corners"]
    lines = [np.linspace(-1, 1, c) if corners and c > 1 else (2 * np.arange(c) + 1) / max(c, 1) - 1 for c in counts]
    places = np.meshgrid(*lines, indexing="ij")
    grid = np.stack([*places[::-1], np.ones(counts)], -1).reshape(-1, len(counts) + 1)
    mapped = grid @ theta.astype(np.float64).swapaxes(1, 2)
    return as_array(mapped, theta.dtype).reshape(theta.shape[0], *counts, len(counts))
