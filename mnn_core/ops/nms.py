"""NonMaxSuppressionV2."""

from __future__ import annotations

import numpy as np

from ..errors import ShapeError
from ..ir import Op
from ._rules import INT32, as_array, scalar
from .order import descending
from .registry import Example, register


def _corners(boxes: np.ndarray, centered: bool) -> np.ndarray:
    """Boxes as (low, low, high, high) rows; from (x, y, width, height) if centered, else from any two opposite corners."""
    wide = boxes.astype(np.float64)
    if centered:
        half = wide[:, 2:] / 2
        return np.concatenate([wide[:, :2] - half, wide[:, :2] + half], 1)
    return np.concatenate([np.minimum(wide[:, :2], wide[:, 2:]), np.maximum(wide[:, :2], wide[:, 2:])], 1)


def _overlap(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Intersection over union of a box with others; 0 where one of them has no area."""
    size = np.maximum(np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2]), 0)
    shared = size.prod(1)
    union = (box[2:] - box[:2]).prod() + (others[:, 2:] - others[:, :2]).prod(1) - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=(shared > 0) & (union > 0))


def suppress(boxes: np.ndarray, scores: np.ndarray, count: int, overlap: float, threshold: float | None) -> list[int]:
    """Indices of boxes to keep, best score first: at most count, scores above threshold, no two that overlap more."""
    order = descending(scores, 0)
    left = order if threshold is None else order[scores[order] > threshold]
    kept: list[int] = []
    while left.size and len(kept) < count:
        kept.append(int(left[0]))
        left = left[1:][_overlap(boxes[left[0]], boxes[left[1:]]) <= overlap]
    return kept


_BOXES = np.array([[0, 0, .3, .3], [0, 0, .4, .4], [0, 0, .5, .5], [.5, .5, .9, .9], [.5, .5, 1, 1]], np.float32)
_SCORES = np.array([.6, .7, .8, .9, .5], np.float32)
_LIMITS = [np.array(2, np.int32), np.array(.5, np.float32), np.array(0, np.float32)]


@register("NonMaxSuppressionV2", param="NonMaxSuppressionV2", attrs={"centered": False}, dynamic=True, examples=[
    Example({}, [_BOXES, _SCORES, *_LIMITS]),
    Example({}, [np.stack([_BOXES] * 2), np.stack([[_SCORES] * 2] * 2), *_LIMITS], name="batches"),
    Example({}, [_BOXES, _SCORES, _LIMITS[0], _LIMITS[1], np.array(.99, np.float32)], name="none"),
])
def non_max_suppression(op: Op, boxes: np.ndarray, scores: np.ndarray, count: np.ndarray | None = None,
                        overlap: np.ndarray | None = None, threshold: np.ndarray | None = None) -> np.ndarray:
    """Boxes that stay when worse ones that overlap them more than a threshold are dropped.

    Boxes [n, 4] and scores [n] give int32 indices [kept]. Boxes [batch, n, 4] and scores [batch, classes, n] give ONNX's
    rows (batch, class, box) [kept, 3]. Absent: count is 0 (nothing stays), overlap 0, score threshold: all pass.
    centered: boxes are (x, y, width, height) of their centres rather than two corners.
    """
    flat = boxes.ndim == 2
    all_boxes, all_scores = (boxes[None], scores[None, None]) if flat else (boxes, scores)
    if all_boxes.ndim != 3 or all_boxes.shape[2] != 4 or all_scores.shape[::2] != all_boxes.shape[:2]:
        raise ShapeError(f"{op}: boxes {list(boxes.shape)} and scores {list(scores.shape)} do not fit; "
                         "expected [n, 4] with [n], or [batch, n, 4] with [batch, classes, n]")
    limit = 0 if count is None else scalar(op, count, "input 2")
    most = 0.0 if overlap is None else float(overlap.reshape(-1)[0])
    least = None if threshold is None else float(threshold.reshape(-1)[0])
    rows = [(b, c, i) for b, some in enumerate(all_boxes) for c, values in enumerate(all_scores[b])
            for i in suppress(_corners(some, op["centered"]), values, limit, most, least)]
    found = as_array(np.array(rows).reshape(len(rows), 3), INT32)
    return found[:, 2].copy() if flat else found
