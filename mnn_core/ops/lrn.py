"""LRN and Normalize: divisions by the size of a neighbourhood. Sums are float64."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._rules import FLOAT32, as_array, present, require_float
from .activations import per_channel
from .registry import Example, register

_IMAGE = Spec((2, 6, 3, 4), FLOAT32)


def _window_sum(x: np.ndarray, axis: int, size: int) -> np.ndarray:
    """Sums of windows of a size along an axis: (size-1)//2 elements before each element and size//2 after; outside is 0."""
    length = x.shape[axis]
    before, after = (min(n, length) for n in ((size - 1) // 2, size // 2))  # beyond the axis all is 0
    pad = [(0, 0)] * x.ndim
    pad[axis] = (before, after)
    padded = np.pad(x, pad)
    return sum((np.take(padded, np.arange(i, i + length), axis=axis) for i in range(before + 1 + after)), np.zeros_like(x))


def _lrn_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    require_float(op, x)
    if x.rank < 2 or op["localSize"] < 1 or (op["regionType"] == 1 and x.rank != 4):
        raise ShapeError(f"{op}: cannot normalise {x} with localSize {op['localSize']}, regionType {op['regionType']}")
    return [x.without_value()]


@register("LRN", param="LRN", infer=_lrn_infer, examples=[
    Example({"localSize": 3, "alpha": 0.1, "beta": 0.75, "bias": 1.0}, [_IMAGE]),
    Example({"localSize": 4, "alpha": 0.1, "beta": 0.5, "bias": 2.0}, [_IMAGE], name="even"),
    Example({"localSize": 3, "alpha": 0.1, "beta": 0.75, "bias": 1.0, "regionType": 1}, [_IMAGE], name="within"),
])
def lrn(op: Op, x: np.ndarray) -> np.ndarray:
    """x / (bias + alpha * average of squares) ^ beta, as ONNX has it: the average over localSize channels (zeros beyond the
    ends count), or with regionType 1 over localSize x localSize positions of the channel.
    """
    size = op["localSize"]
    with np.errstate(all="ignore"):
        square = np.square(x.astype(np.float64))
        for axis in (2, 3) if op["regionType"] == 1 else (1,):
            square = _window_sum(square, axis, size) / size
        return as_array(x / (op["bias"] + op["alpha"] * square) ** op["beta"], x.dtype)


def _normalize_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    require_float(op, x)
    if x.rank < 2 or len(op["scale"]) not in (0, 1, x.shape[1]):
        raise ShapeError(f"{op}: {len(op['scale'])} scales do not fit the channels of {x}")
    return [x.without_value()]


@register("Normalize", param="Normalize", infer=_normalize_infer, examples=[
    Example({"eps": 1e-6, "scale": np.linspace(0.5, 2, 6, dtype=np.float32)}, [_IMAGE]),
    Example({"eps": 1e-6, "acrossSpatial": 1, "channelShared": 1, "scale": np.array([2], np.float32)}, [_IMAGE],
            name="spatial"),
])
def normalize(op: Op, x: np.ndarray) -> np.ndarray:
    """x / sqrt(sum of squares + eps) * scale: the sum over channels, with acrossSpatial over positions too (Caffe SSD)."""
    axes = tuple(range(1, x.ndim)) if op["acrossSpatial"] else (1,)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        y = wide / np.sqrt(np.square(wide).sum(axis=axes, keepdims=True) + op["eps"])
        scale = np.asarray(op["scale"], np.float64)
        return as_array(y * per_channel(scale, x.ndim) if scale.size else y, x.dtype)
