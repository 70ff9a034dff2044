"""Matrices and statistics: MatrixBandPart, Det, Histogram."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._rules import FLOAT32, INT32, as_array, present, require_float, require_matrix, scalar
from .registry import Example, register


def _matrices(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    require_matrix(op, present(op, inputs))
    return [present(op, inputs).without_value()]


@register("MatrixBandPart", infer=_matrices, examples=[
    *(Example({}, [Spec((2, 4, 5), FLOAT32), np.array(low, np.int32), np.array(up, np.int32)], name=f"{low},{up}")
      for low, up in ((0, -1), (-1, 0), (1, 2))),
    Example({}, [Spec((3, 3), INT32), np.array([0], np.int32), np.array([0], np.int32)], name="diagonal"),
])
def matrix_band_part(op: Op, x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Each matrix with zeros outside a band of `lower` (input 1) diagonals below the main one and `upper` (input 2) above.

    A negative number keeps the whole triangle.
    """
    below, above = scalar(op, lower, "input 1"), scalar(op, upper, "input 2")
    offset = np.arange(x.shape[-1]) - np.arange(x.shape[-2])[:, None]
    inside = ((below < 0) | (-offset <= below)) & ((above < 0) | (offset <= above))
    return np.where(inside, x, np.zeros((), x.dtype))


def _det_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    require_float(op, x)
    require_matrix(op, x)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{op}: {x} holds no square matrices")
    return [Spec(x.shape[:-2], x.dtype)]


@register("Det", infer=_det_infer, examples=[Example({}, [Spec((2, 3, 4, 4), FLOAT32)]), Example({}, [Spec((1, 1), FLOAT32)])])
def det(op: Op, x: np.ndarray) -> np.ndarray:
    """Determinants of the last two axes."""
    with np.errstate(all="ignore"):
        return as_array(np.linalg.det(x.astype(np.float64)), x.dtype)


def _histogram_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    if op["outMaxVal"] < 1 or op["topK"] <= op["softmaxThreshold"]:
        raise ShapeError(f"{op}: cannot count {op['outMaxVal']} bins from {op['softmaxThreshold']} to {op['topK']}")
    if op["axis"] >= 0 and (x.rank == 0 or op["axis"] >= x.shape[-1]):
        raise ShapeError(f"{op}: {x} has no channel {op['axis']} in its last dimension")
    return [Spec((op["outMaxVal"],), FLOAT32)]


@register("Histogram", param="ArgMax", infer=_histogram_infer, examples=[
    Example({"axis": -1, "outMaxVal": 5, "softmaxThreshold": -2, "topK": 2}, [Spec((7, 3), FLOAT32)]),
    Example({"axis": 1, "outMaxVal": 4, "softmaxThreshold": 0, "topK": 8}, [Spec((9, 3), np.dtype(np.uint8))]),
])
def histogram(op: Op, x: np.ndarray) -> np.ndarray:
    """How many numbers fall into each of even bins, as floats; numbers outside the range, and NaN, do not count.

    MNN keeps the parameters in ArgMax's table: `outMaxVal` bins from `softmaxThreshold` to `topK`, both included, of
    channel `axis` of the last dimension, or of everything if that is negative.
    """
    bins, low, high = op["outMaxVal"], op["softmaxThreshold"], op["topK"]
    values = (x if op["axis"] < 0 else x[..., op["axis"]]).reshape(-1).astype(np.float64)
    values = values[(values >= low) & (values <= high)]
    index = np.minimum(((values - low) * bins / (high - low)).astype(np.int64), bins - 1)
    return as_array(np.bincount(index, minlength=bins), FLOAT32)
