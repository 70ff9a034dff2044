"""PriorBox, DetectionOutput (Caffe's SSD), DetectionPostProcess (TensorFlow Lite's SSD): boxes from anchors and scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import need
from ._rules import FLOAT32, first_outputs
from .nms import suppress
from .registry import Example, register


def prior_sizes(op: Op) -> list[tuple[float, float]]:
    """(width, height) of the boxes at each place, in pixels. Raises ShapeError if there are none."""
    ratios = [1.0]
    for ratio in (float(r) for r in op["aspectRatios"]):
        if all(abs(ratio - r) > 1e-6 for r in ratios):
            ratios += [ratio, 1 / ratio] if op["flip"] else [ratio]
    smallest, largest = [float(v) for v in op["minSizes"]], [float(v) for v in op["maxSizes"]]
    if not smallest or len(largest) not in (0, len(smallest)) or min(ratios) <= 0:
        raise ShapeError(f"{op}: minSizes {smallest}, maxSizes {largest} and aspectRatios {ratios}; expected one size at "
                         "least, a greatest one for each or for none, and positive ratios")
    sizes = []
    for i, low in enumerate(smallest):
        sizes.append((low, low))
        if largest:
            sizes.append((math.sqrt(low * largest[i]),) * 2)
        sizes += [(low * math.sqrt(r), low / math.sqrt(r)) for r in ratios[1:]]
    return sizes


def _prior_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = need(op, inputs, 0)
    if x.rank != 4 or ((not op["imageWidth"] or not op["imageHeight"]) and need(op, inputs, 1).rank != 4):
        raise ShapeError(f"{op}: expected feature maps and, if its attributes tell no size, an image, both of rank 4")
    return [Spec((1, 2, x.shape[2] * x.shape[3] * len(prior_sizes(op)) * 4, 1), FLOAT32)]


_MAP, _PHOTO = Spec((1, 8, 3, 4), FLOAT32), Spec((1, 3, 60, 80), FLOAT32)


@register("PriorBox", param="PriorBox", infer=_prior_infer, examples=[
    Example({"minSizes": np.array([10, 20], np.float32), "maxSizes": np.array([20, 30], np.float32), "flip": True,
             "aspectRatios": np.array([2, 3], np.float32), "offset": 0.5,
             "variances": np.array([.1, .1, .2, .2], np.float32)}, [_MAP, _PHOTO]),
    Example({"minSizes": np.array([30], np.float32), "clip": True, "imageWidth": 60, "imageHeight": 50, "stepWidth": 16,
             "stepHeight": 15, "variances": np.array([.1], np.float32)}, [_MAP], name="sizes_given"),
])
def prior_box(op: Op, x: np.ndarray, image: np.ndarray | None = None) -> np.ndarray:
    """(1, 2, places * boxes * 4, 1): left, top, right, bottom of each place's boxes as parts of the image, and variances."""
    height, width = x.shape[2:]
    image_height, image_width = image.shape[2:] if image is not None else (0, 0)
    image_height, image_width = op["imageHeight"] or image_height, op["imageWidth"] or image_width
    steps = op["stepHeight"] or image_height / height, op["stepWidth"] or image_width / width
    rows, columns = ((np.arange(n) + op["offset"]) * step for n, step in zip((height, width), steps))
    centres = np.stack(np.broadcast_arrays(columns[None, :], rows[:, None]), -1)[:, :, None]
    half = np.array(prior_sizes(op)) / 2
    boxes = np.concatenate([centres - half, centres + half], -1) / np.array([image_width, image_height] * 2)
    boxes = np.clip(boxes, 0, 1) if op["clip"] else boxes
    variances = np.asarray(op["variances"], np.float64)
    variances = np.full(4, variances[0] if variances.size else 0.1) if variances.size < 4 else variances[:4]
    both = np.stack([boxes.reshape(-1), np.tile(variances, boxes.size // 4)])
    return both.reshape(1, 2, -1, 1).astype(np.float32)


def _post_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    boxes, scores, anchors = (need(op, inputs, i) for i in range(3))
    if boxes.rank != 3 or scores.rank != 3 or boxes.shape[0] != 1 or scores.shape[:2] != boxes.shape[:2] or \
            anchors.shape != (boxes.shape[1], 4) or boxes.shape[2] < 4 or scores.shape[2] < op["numClasses"]:
        raise ShapeError(f"{op}: expected boxes (1, count, 4), scores (1, count, classes) and anchors (count, 4), found "
                         f"{boxes}, {scores} and {anchors}, with {op['numClasses']} classes")
    most = op["maxDetections"] * op["maxClassesPerDetection"]
    specs = [Spec(s, FLOAT32) for s in ((1, most, 4), (1, most), (1, most), (1,))]
    return specs[: len(op.outputs)] if op.outputs else specs


_POST = {"maxDetections": 4, "maxClassesPerDetection": 1, "detectionsPerClass": 10, "nmsScoreThreshold": -1.0,
         "iouThreshold": 0.5, "numClasses": 2, "centerSizeEncoding": np.array([10, 10, 5, 5], np.float32)}
_ENCODED: list[Spec | np.ndarray] = [Spec((1, 9, 4), FLOAT32), Spec((1, 9, 3), FLOAT32),
            np.random.default_rng(0).random((9, 4)).astype(np.float32) + np.float32(0.1)]


@register("DetectionPostProcess", param="DetectionPostProcessParam", infer=_post_infer, examples=[
    Example(_POST, _ENCODED, name="fast"),
    Example({**_POST, "useRegularNMS": True}, _ENCODED, name="regular"),
])
def detection_post_process(op: Op, encoded: np.ndarray, scores: np.ndarray, anchors: np.ndarray) -> tuple[np.ndarray, ...]:
    """Boxes (top, left, bottom, right), classes, scores and their count, best first, from boxes encoded against anchors.

    Both, encoded and anchors, are (y, x, height, width). Scores may have a background class in front. Regular suppression looks
    at each class by itself; the fast one at the best class of each box, and then gives its maxClassesPerDetection best classes.
    """
    sizes = np.asarray(op["centerSizeEncoding"], np.float32)
    parts = encoded[0, :, :4] / (sizes if sizes.size == 4 else np.ones(4, np.float32))
    centre = parts[:, :2] * anchors[:, 2:] + anchors[:, :2]
    with np.errstate(over="ignore"):
        half = np.exp(parts[:, 2:]) * anchors[:, 2:] / 2
    boxes = np.concatenate([centre - half, centre + half], 1)
    scores = scores[0, :, scores.shape[2] - op["numClasses"]:]
    found = (_regular if op["useRegularNMS"] else _fast)(op, boxes, scores)
    most = op["maxDetections"] * op["maxClassesPerDetection"]
    results = np.zeros((most, 4), np.float32), np.zeros(most, np.float32), np.zeros(most, np.float32)
    for i, (box, kind) in enumerate(found[:most]):
        results[0][i], results[1][i], results[2][i] = boxes[box], kind, scores[box, kind]
    count = np.array([min(len(found), most)], np.float32)
    return first_outputs(op, (*(r[None] for r in results), count))


def _regular(op: Op, boxes: np.ndarray, scores: np.ndarray) -> list[tuple[int, int]]:
    """(box, class) of each class by itself, the best of all first."""
    found: list[tuple[int, int]] = []
    for kind in range(op["numClasses"]):
        kept = np.flatnonzero(scores[:, kind] >= op["nmsScoreThreshold"])
        chosen = suppress(boxes[kept], scores[kept, kind], op["detectionsPerClass"], op["iouThreshold"], None)
        found += [(int(kept[i]), kind) for i in chosen]
    return sorted(found, key=lambda pair: -scores[pair])[:op["maxDetections"]]


def _fast(op: Op, boxes: np.ndarray, scores: np.ndarray) -> list[tuple[int, int]]:
    """(box, class): boxes by their best class, each with its best classes."""
    best = scores.max(1)
    kept = np.flatnonzero(best >= op["nmsScoreThreshold"])
    each = min(op["maxClassesPerDetection"], op["numClasses"])
    chosen = suppress(boxes[kept], best[kept], op["maxDetections"], op["iouThreshold"], None)
    return [(int(kept[i]), int(kind)) for i in chosen for kind in np.argsort(-scores[kept[i]], kind="stable")[:each]]
