"""DetectionOutput: the boxes that Caffe's SSD finds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import need
from ._rules import FLOAT32
from .nms import suppress
from .registry import Example, register


def _infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    places, scores, priors = (need(op, inputs, i) for i in range(3))
    count, batch, classes = priors.size // 8, places.shape[0] if places.rank else 0, op["classCount"]
    each = 1 if op["shareLocation"] else classes
    if classes < 1 or places.size != batch * count * each * 4 or scores.size != batch * count * classes or priors.size % 8:
        raise ShapeError(f"{op}: expected places (N, boxes * 4), scores (N, boxes * {classes}) and priors (1, 2, boxes * 4), "
                         f"found {places}, {scores} and {priors}")
    if op["keepTopK"] < 1:
        raise ShapeError(f"{op}: keepTopK {op['keepTopK']}; expected 1 or more, the number of rows of the result")
    return [Spec((batch, 1, op["keepTopK"], 6), FLOAT32)]


_RNG = np.random.default_rng(0)
_CORNERS = np.concatenate([_RNG.random((9, 2)) / 2, _RNG.random((9, 2)) / 2 + 0.5], 1).reshape(-1)
_PRIORS = np.stack([_CORNERS, np.tile([.1, .1, .2, .2], 9)]).reshape(1, 2, 36, 1).astype(np.float32)
_ATTRS = {"classCount": 3, "nmsThresholdold": 0.4, "nmsTopK": 20, "keepTopK": 6, "confidenceThreshold": 0.1, "shareLocation": 1,
          "codeType": 2}


@register("DetectionOutput", param="DetectionOutput", infer=_infer, examples=[
    Example(_ATTRS, [Spec((2, 36), FLOAT32), Spec((2, 27), FLOAT32), _PRIORS], name="centre_size"),
    Example({**_ATTRS, "codeType": 1, "shareLocation": 0, "varianceEncodedTarget": 1},
            [Spec((1, 108), FLOAT32), Spec((1, 27), FLOAT32), _PRIORS], name="corner"),
])
def detection_output(op: Op, places: np.ndarray, scores: np.ndarray, priors: np.ndarray) -> np.ndarray:
    """Rows (class, score, left, top, right, bottom) of each image, the best first, (N, 1, keepTopK, 6); what is left is 0.

    Of each class but backgroundLable the nmsTopK best boxes of a score above confidenceThreshold, without those that overlap a
    better one by more than nmsThresholdold. codeType says how places stand to priors: 1 corners, 2 centre and size, 3 corners
    relative to the prior's size.
    """
    batch, classes = places.shape[0], op["classCount"]
    prior, variance = priors.reshape(2, -1, 4).astype(np.float64)
    places = places.reshape(batch, len(prior), -1, 4)
    scores = scores.reshape(batch, len(prior), classes)
    out = np.zeros((batch, 1, op["keepTopK"], 6), np.float32)
    for place, score, rows in zip(places, scores, out[:, 0]):
        found: list[tuple[float, int, np.ndarray]] = []
        for kind in range(classes):
            if kind == op["backgroundLable"]:
                continue
            boxes = decoded(op, place[:, 0 if op["shareLocation"] else kind].astype(np.float64), prior, variance)
            kept = np.flatnonzero(score[:, kind] > op["confidenceThreshold"])
            kept = kept[np.argsort(-score[kept, kind], kind="stable")]
            kept = kept[:op["nmsTopK"]] if op["nmsTopK"] > 0 else kept
            chosen = suppress(boxes[kept], score[kept, kind], len(kept), op["nmsThresholdold"], None)
            found += [(float(score[kept[i], kind]), kind, boxes[kept[i]]) for i in chosen]
        found.sort(key=lambda item: -item[0])
        for row, (value, kind, box) in zip(rows, found):
            row[:] = (kind, value, *box)
    return out


def decoded(op: Op, place: np.ndarray, prior: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Boxes as corners. Raises ShapeError for an unknown codeType."""
    place = place if op["varianceEncodedTarget"] else place * variance
    size = prior[:, 2:] - prior[:, :2]
    if op["codeType"] == 1:
        return prior + place
    if op["codeType"] == 3:
        return prior + place * np.concatenate([size, size], 1)
    if op["codeType"] != 2:
        raise ShapeError(f"{op}: unknown codeType {op['codeType']}; expected 1, 2 or 3")
    centre = (prior[:, :2] + prior[:, 2:]) / 2 + place[:, :2] * size
    with np.errstate(over="ignore"):
        half = np.exp(place[:, 2:]) * size / 2
    return np.concatenate([centre - half, centre + half], 1)
