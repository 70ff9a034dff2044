"""ROIPooling and ROIAlign: regions of an image, each reduced to a grid of one size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import given, need
from ._rules import FLOAT32, require_float
from .registry import Example, register


def _infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, rois, which = need(op, inputs, 0), need(op, inputs, 1), given(inputs, 2)
    require_float(op, x)
    columns = 5 if which is None else 4
    count = rois.shape[0] if rois.rank else 0
    if x.rank != 4 or rois.size != count * columns or (which is not None and which.size != count):
        raise ShapeError(f"{op}: expected an image (N, C, H, W) and regions (count, 5), or (count, 4) with an image number for "
                         f"each; found {x}, {rois} and {which}")
    size = op["pooledHeight"], op["pooledWidth"]
    if min(size) < 1 or 0 in x.shape[2:]:
        raise ShapeError(f"{op}: cannot pool regions of {x} to {list(size)}")
    return [x.with_shape((count, x.shape[1], *size))]


def _regions(op: Op, x: np.ndarray, rois: np.ndarray, which: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Regions (count, 4) in float32 and their images. Raises ShapeError for an image that does not exist."""
    count = rois.shape[0]
    table = rois.reshape(count, 5 if which is None else 4).astype(np.float32)
    numbers = (table[:, 0] if which is None else which.reshape(-1)).astype(np.int64)
    if count and (numbers.min() < 0 or numbers.max() >= x.shape[0]):
        raise ShapeError(f"{op}: image numbers {numbers.min()}..{numbers.max()} of {x.shape[0]} images")
    return table[:, -4:], numbers


def _f(*shape: int) -> Spec:
    return Spec(shape, FLOAT32)


_WITH_IMAGE = np.array([[0, 1, 2, 9, 8], [1, 0, 0, 3, 15], [1, 7, 7, 6, 6]], np.float32)
_BOXES = np.array([[1.3, 2, 9.7, 8], [0, 0, 3.2, 15], [-3, 4, 30, 9]], np.float32)
_WHICH = np.array([0, 1, 1], np.int32)


@register("ROIPooling", param="RoiParameters", infer=_infer, examples=[
    Example({"pooledHeight": 3, "pooledWidth": 2, "spatialScale": 1.0}, [_f(2, 3, 12, 11), _WITH_IMAGE]),
    Example({"pooledHeight": 2, "pooledWidth": 4, "spatialScale": 0.5}, [_f(2, 17, 8, 9), _WITH_IMAGE], name="scaled"),
])
def roi_pooling(op: Op, x: np.ndarray, rois: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
    """The greatest of each cell of regions (image, left, top, right, bottom), whose corners are rounded and belong to them.

    A cell without elements is 0. As Caffe's ROIPooling and ONNX's MaxRoiPool.
    """
    boxes, numbers = _regions(op, x, rois, which)
    height, width = op["pooledHeight"], op["pooledWidth"]
    out = np.zeros((len(numbers), x.shape[1], height, width), x.dtype)
    scaled = boxes * np.float32(op["spatialScale"])
    corners = (np.sign(scaled) * np.floor(np.abs(scaled) + 0.5)).astype(np.int64)  # halves away from zero, as C's round
    for image, (left, top, right, bottom), pooled in zip(numbers, corners, out):
        rows = _cells(top, bottom, height, x.shape[2])
        columns = _cells(left, right, width, x.shape[3])
        for i, j in np.ndindex(height, width):
            cell = x[image, :, slice(*rows[i]), slice(*columns[j])]
            if cell.shape[1] and cell.shape[2]:
                pooled[:, i, j] = cell.max((1, 2))
    return out


def _cells(first: int, last: int, count: int, length: int) -> list[tuple[int, int]]:
    """(begin, end) of the cells that a region is split into; they may overlap."""
    step = np.float32(max(last - first + 1, 1)) / np.float32(count)
    begins = np.floor(np.arange(count, dtype=np.float32) * step).astype(int) + first
    ends = np.ceil(np.arange(1, count + 1, dtype=np.float32) * step).astype(int) + first
    return [(int(b), int(e)) for b, e in zip(np.clip(begins, 0, length), np.clip(ends, 0, length))]


@register("ROIAlign", param="RoiParameters", attrs={"greatestCorner": False}, infer=_infer, examples=[
    Example({"pooledHeight": 3, "pooledWidth": 2, "spatialScale": 1.0, "samplingRatio": 2}, [_f(2, 3, 12, 11), _BOXES, _WHICH],
            name="mean"),
    Example({"pooledHeight": 2, "pooledWidth": 4, "spatialScale": 0.5, "aligned": True}, [_f(2, 17, 8, 9), _BOXES, _WHICH],
            name="aligned"),
    Example({"pooledHeight": 2, "pooledWidth": 2, "spatialScale": 1.0, "poolType": "MAXPOOL"}, [_f(2, 3, 12, 11), _WITH_IMAGE],
            name="max"),
    Example({"pooledHeight": 2, "pooledWidth": 2, "spatialScale": 1.0, "poolType": "MAXPOOL", "greatestCorner": True},
            [_f(2, 3, 12, 11), _WITH_IMAGE], name="greatest_corner"),
])
def roi_align(op: Op, x: np.ndarray, rois: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
    """The mean or the greatest of linearly interpolated samples in each cell of regions (left, top, right, bottom).

    samplingRatio: samples of a cell per dimension; 0 or less: as many as the cell is long, rounded up. `aligned` places pixel
    centres at whole numbers less 0.5; without it a region has a size of 1 at least. As ONNX's RoiAlign, whose
    greatest is not that of the samples, as in MNN, but that of the elements around them times their weights: `greatestCorner`.
    """
    boxes, numbers = _regions(op, x, rois, which)
    size = op["pooledHeight"], op["pooledWidth"]
    out = np.zeros((len(numbers), x.shape[1], *size), x.dtype)
    boxes = boxes * np.float32(op["spatialScale"]) - np.float32(0.5 if op["aligned"] else 0)
    for image, box, pooled in zip(numbers, boxes, out):
        taps = []
        for axis in range(2):
            start, extent = box[1 - axis], box[3 - axis] - box[1 - axis]
            extent = extent if op["aligned"] else np.maximum(extent, np.float32(1))
            cell = extent / np.float32(size[axis])
            count = op["samplingRatio"] if op["samplingRatio"] > 0 else int(np.ceil(cell))
            steps = np.arange(size[axis], dtype=np.float32)[:, None] * cell
            at = start + steps + (np.arange(count, dtype=np.float32) + np.float32(0.5)) * cell / np.float32(max(count, 1))
            taps.append(_taps(at.reshape(-1), x.shape[2 + axis]))
        pooled[...] = _pooled(x[image], taps, size, op["poolType"] == "MAXPOOL", op["greatestCorner"])
    return out


Taps = list[tuple[np.ndarray, np.ndarray]]


def _taps(at: np.ndarray, length: int) -> Taps:
    """(elements, weights) along an axis; samples more than 1 outside weigh nothing."""
    inside = (at >= -1) & (at <= length)
    at = np.clip(at, 0, length - 1)
    low = np.floor(at)
    share = (at - low).astype(np.float64)
    high = np.minimum(low + 1, length - 1)
    return [(low.astype(np.intp), (1 - share) * inside), (high.astype(np.intp), share * inside)]


def _pooled(image: np.ndarray, taps: list[Taps], size: tuple[int, int], greatest: bool, corner: bool) -> np.ndarray:
    """Samples (C, rows, columns) reduced to the cells."""
    parts = [image[:, rows[:, None], columns] * (row_share[:, None] * column_share)
             for rows, row_share in taps[0] for columns, column_share in taps[1]]
    samples = np.max(parts, 0) if greatest and corner else np.sum(parts, 0)
    if samples.size == 0:
        return np.zeros((image.shape[0], *size), image.dtype)
    cells = samples.reshape(image.shape[0], size[0], -1, size[1], samples.shape[2] // size[1])
    return cells.max((2, 4)) if greatest else cells.mean((2, 4))
