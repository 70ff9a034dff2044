"""Interp, Interp3D, Resize: images resampled to another size.

resizeType 1 takes the nearest element downwards, 4 the nearest (halves downwards, ONNX's round_prefer_floor), 2 interpolates
linearly, 3 by a cubic of parameter cubicCoeffA; what lies beyond the border is as the border. `ctm` tells where the elements of
the result lie in the input; NotSet leaves it to halfPixelCenters, then to alignCorners, as in older files.

The target size is, in this order: an integer second input; a float second input times the input's size; outputHeight and so
on; heightScale and so on times the input's size. Second inputs have one number per dimension, or per spatial dimension. A
scale that is given is exact: positions use it, not the ratio of the rounded sizes, as ONNX has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import given, need
from ._rules import FLOAT32, require_float
from .registry import Example, register

_NEAREST_FLOOR, _LINEAR, _CUBIC, _NEAREST = 1, 2, 3, 4
#: Attributes of the size and the scale of each spatial dimension, innermost first.
_SIZES = (("outputWidth", "widthScale"), ("outputHeight", "heightScale"), ("outputDepth", "depthScale"))


def target(op: Op, size: Sequence[int], shape: np.ndarray | None) -> list[tuple[int, float]]:
    """For each spatial dimension the new size, and the scale that positions use. Raises ShapeError.

    size: the whole shape of the input; shape: the second input.
    """
    space, n = list(size[2:]), len(size) - 2
    if shape is None:
        return [_from_attributes(op, old, axis) for axis, old in zip(range(n - 1, -1, -1), space)]
    values = shape.reshape(-1)
    if values.size not in (n, n + 2):
        raise ShapeError(f"{op}: a target of {values.size} numbers for an input {list(size)}; expected {n} or {n + 2}")
    if values.size == n + 2:
        kept = values[:2] == (size[:2] if values.dtype.kind in "iu" else (1, 1))
        if not kept.all():
            raise ShapeError(f"{op}: a target of {values.tolist()} changes the first two dimensions of {list(size)}")
        values = values[2:]
    if values.dtype.kind in "iu":
        found = [(int(v), _ratio(int(v), old)) for v, old in zip(values, space)]
    else:
        if not (np.isfinite(values).all() and (values > 0).all()):
            raise ShapeError(f"{op}: scales {values.tolist()}; expected positive numbers")
        found = [(int(np.float32(old) * np.float32(v)), float(np.float32(v))) for v, old in zip(values, space)]
    return found


def _from_attributes(op: Op, old: int, axis: int) -> tuple[int, float]:
    size_name, scale_name = _SIZES[axis]
    if op[size_name]:
        return int(op[size_name]), _ratio(int(op[size_name]), old)
    scale = np.float32(op[scale_name])
    return int(np.float32(old) * scale), float(scale)


def _ratio(new: int, old: int) -> float:
    return float(np.float32(new) / np.float32(old)) if old else 1.0


def _infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, shape = need(op, inputs, 0), given(inputs, 1)
    if x.rank not in (3, 4, 5):
        raise ShapeError(f"{op}: expected an image (N, C, ...) with one to three spatial dimensions, found {x}")
    if op["resizeType"] not in (_NEAREST_FLOOR, _LINEAR, _CUBIC, _NEAREST):
        raise ShapeError(f"{op}: unknown resizeType {op['resizeType']}; expected 1, 2, 3 or 4")
    if op["resizeType"] in (_LINEAR, _CUBIC):
        require_float(op, x)
    if shape is not None and shape.value is None:
        raise ShapeError(f"{op}: the target size (input 1) must be known when shapes are planned")
    new = [n for n, _ in target(op, x.shape, None if shape is None else shape.value)]
    if min(new) < 0 or (min(new) == 0 and 0 not in x.shape) or (0 in x.shape[2:] and 0 not in new):
        raise ShapeError(f"{op}: cannot resample {x} to a size of {new}")
    return [x.with_shape((*x.shape[:2], *new))]


def positions(op: Op, old: int, new: int, scale: float) -> np.ndarray:
    """Where the elements of the result lie along an axis of the input, in float32 as ONNX runtimes calculate it."""
    one, step = np.float32(1), np.float32(scale)
    at = np.arange(new, dtype=np.float32)
    mode = op["ctm"]
    if mode == "NotSet":
        half = op["halfPixelCenters"] and op["resizeType"] != _NEAREST_FLOOR
        mode = "HalfPixels" if half else "AlignCorners" if op["alignCorners"] else "Asymmetric"
    if mode in ("AlignCorners", "TensorflowCropAndResize"):  # the region to crop is the whole image
        return at * (np.float32(old) - one) / (np.float32(new) - one) if new > 1 else np.zeros(new, np.float32)
    if mode == "Asymmetric":
        return at / step
    centres = (at + np.float32(0.5)) / step
    if mode == "TensorflowHalfPixels":
        return centres
    if mode == "PytorchHalfPixels" and new == 1:
        return np.zeros(new, np.float32)
    if mode in ("HalfPixels", "PytorchHalfPixels"):
        return centres - np.float32(0.5)
    raise ShapeError(f"{op}: unknown coordinate transformation {mode!r}")


def cubic_weights(fraction: np.ndarray, a: float) -> list[np.ndarray]:
    """Weights of the four elements around positions that lie a fraction behind the second."""
    def near(d: np.ndarray) -> np.ndarray:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: np.ndarray) -> np.ndarray:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(1 + fraction), near(fraction), near(1 - fraction), far(2 - fraction)]


def _taps(op: Op, at: np.ndarray, old: int) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """(elements of an axis, their weights) that make the elements at given positions; weight None is 1."""
    kind = op["resizeType"]
    if kind in (_NEAREST_FLOOR, _NEAREST):
        rounded = np.floor(at) if kind == _NEAREST_FLOOR else np.ceil(at - np.float32(0.5))
        return [(_clipped(rounded, old), None)]
    if kind == _LINEAR:
        at = np.clip(at, 0, old - 1)
    low = np.floor(at)
    fraction = at.astype(np.float64) - low
    if kind == _LINEAR:
        return [(_clipped(low, old), 1 - fraction), (_clipped(low + 1, old), fraction)]
    return [(_clipped(low + i - 1, old), w) for i, w in enumerate(cubic_weights(fraction, op["cubicCoeffA"]))]


def _clipped(at: np.ndarray, old: int) -> np.ndarray:
    return np.clip(at, 0, old - 1).astype(np.intp)


def _f(*shape: int) -> Spec:
    return Spec(shape, FLOAT32)


def _size(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


def _scale(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


def _method(kind: int, mode: str, **more: Any) -> dict[str, Any]:
    return {"resizeType": kind, "ctm": mode, **more}


@register("Interp", param="Interp", infer=_infer, content=(1,), examples=[
    *(Example(_method(kind, mode), [_f(2, 3, 5, 7), _size(2, 3, 8, 4)], name=f"{name}_{mode}")
      for kind, name in ((1, "floor"), (2, "linear"), (3, "cubic"), (4, "round"))
      for mode in ("AlignCorners", "HalfPixels", "PytorchHalfPixels", "Asymmetric")),
    Example(_method(1, "Asymmetric"), [_f(1, 17, 6, 5), _scale(1, 1, 2, 2)], name="nearest_twice"),
    Example(_method(2, "HalfPixels"), [_f(1, 17, 6, 5), _scale(1, 1, 2, 2)], name="linear_twice"),
    Example(_method(2, "AlignCorners"), [_f(1, 33, 6, 5), _size(1, 33, 24, 20)], name="linear_four_times"),
    Example(_method(4, "HalfPixels"), [_f(1, 1, 3, 3), _scale(1, 1, 1.5, 1.5)], name="scale_is_exact"),
    Example({"resizeType": 2, "halfPixelCenters": True}, [_f(1, 4, 6, 5), _size(9, 9)], name="spatial_size"),
    Example({"resizeType": 2, "heightScale": 2.0, "outputWidth": 3}, [_f(1, 4, 6, 5)], name="attributes"),
    Example({"resizeType": 2, "heightScale": 1.7, "widthScale": 0.7}, [_f(1, 4, 6, 5)], name="attribute_scale_is_exact"),
    Example({"resizeType": 2, "halfPixelCenters": True, "alignCorners": True}, [_f(1, 4, 6, 5), _size(9, 9)],
            name="both_flags"),
    Example({"resizeType": 2, "ctm": "HalfPixels"}, [_f(0, 4, 6, 5), _size(0, 4, 12, 10)], name="no_images"),
])
@register("Interp3D", param="Interp", infer=_infer, content=(1,), examples=[
    Example(_method(1, "Asymmetric"), [_f(1, 3, 4, 5, 6), _size(1, 3, 8, 5, 3)], name="nearest"),
    Example(_method(2, "HalfPixels"), [_f(2, 2, 4, 5, 6), _size(2, 2, 5, 7, 12)], name="linear"),
])
def interp(op: Op, x: np.ndarray, shape: np.ndarray | None = None) -> np.ndarray:
    """(N, C, *size) resampled to (N, C, *new size), one spatial axis after the other."""
    return _resample(op, x, target(op, x.shape, shape))


def _resample(op: Op, x: np.ndarray, to: list[tuple[int, float]]) -> np.ndarray:
    out: np.ndarray = x
    for axis, (new, scale) in enumerate(to, 2):
        old = out.shape[axis]
        if old == 0 or new == 0:
            out = np.zeros((*out.shape[:axis], new, *out.shape[axis + 1:]), out.dtype)
            continue
        taps = _taps(op, positions(op, old, new, scale), old)
        if taps[0][1] is None:
            out = out.take(taps[0][0], axis=axis)
            continue
        total: Any = 0
        for index, weight in taps:
            assert weight is not None
            total = total + out.take(index, axis=axis) * weight.reshape(-1, *(1,) * (x.ndim - 1 - axis)).astype(out.dtype)
        out = total
    return np.ascontiguousarray(out)


def _as_interp(op: Op) -> Op:
    """A Resize op as the Interp that it is short for."""
    return Op("Interp", op.inputs, op.outputs, {"resizeType": _LINEAR, "ctm": "Asymmetric", "widthScale": op["xScale"],
                                               "heightScale": op["yScale"]}, op.name)


def _infer_resize(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    return _infer(_as_interp(op), inputs[:1])


@register("Resize", param="Resize", infer=_infer_resize, examples=[
    Example({"xScale": 2.0, "yScale": 1.5}, [_f(1, 3, 4, 5)]),
])
def resize(op: Op, x: np.ndarray) -> np.ndarray:
    """(N, C, H, W), linearly resampled by yScale and xScale; element i of the result lies at i / scale."""
    return interp(_as_interp(op), x)
