"""Detection: PriorBox, DetectionOutput, DetectionPostProcess against plain loops."""

import math

import numpy as np
import pytest
from ops.definitions import apply

from mnn_core.errors import ShapeError

RNG = np.random.default_rng(6)


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def iou(a: np.ndarray, b: np.ndarray) -> float:
    width, height = (min(a[i + 2], b[i + 2]) - max(a[i], b[i]) for i in range(2))
    shared = max(width, 0) * max(height, 0)
    areas = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
    return shared / (sum(areas) - shared)


def greedy(boxes: np.ndarray, scores: np.ndarray, limit: float) -> list[int]:
    kept: list[int] = []
    for i in sorted(range(len(boxes)), key=lambda i: -scores[i]):
        if all(iou(boxes[i], boxes[k]) <= limit for k in kept):
            kept.append(i)
    return kept


def test_prior_box() -> None:
    attrs = {"minSizes": np.array([10, 20], np.float32), "maxSizes": np.array([20, 30], np.float32), "flip": True,
             "offset": 0.5, "aspectRatios": np.array([1, 2, 2], np.float32),
             "variances": np.array([.1, .1, .2, .3], np.float32)}
    got = apply("PriorBox", attrs, f(1, 8, 3, 4), f(1, 3, 60, 80))
    want = []
    for i, j in np.ndindex(3, 4):
        for low, high in ((10, 20), (20, 30)):
            middle, wide = math.sqrt(low * high), low * math.sqrt(2)
            for w, h in ((low, low), (middle, middle), (wide, wide / 2), (wide / 2, wide)):
                x, y = (j + 0.5) * 20, (i + 0.5) * 20
                want += [(x - w / 2) / 80, (y - h / 2) / 60, (x + w / 2) / 80, (y + h / 2) / 60]
    np.testing.assert_allclose(got[0, 0, :, 0], want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got[0, 1, :, 0], np.tile([.1, .1, .2, .3], 96), rtol=1e-6)
    assert apply("PriorBox", {**attrs, "clip": True}, f(1, 8, 3, 4), f(1, 3, 60, 80))[0, 0].min() == 0
    with pytest.raises(ShapeError, match="minSizes"):
        apply("PriorBox", {}, f(1, 8, 3, 4), f(1, 3, 60, 80))


@pytest.mark.parametrize("code", [1, 2, 3])
def test_detection_output(code: int) -> None:
    count, classes = 30, 4
    corners = np.concatenate([RNG.random((count, 2)) / 2, RNG.random((count, 2)) / 2 + 0.5], 1)
    priors = np.stack([corners.reshape(-1), np.tile([.1, .1, .2, .2], count)]).astype(np.float32).reshape(1, 2, -1)
    places, scores = f(2, count * 4), RNG.random((2, count * classes)).astype(np.float32)
    attrs = {"classCount": classes, "nmsThresholdold": 0.4, "nmsTopK": 25, "keepTopK": 15, "confidenceThreshold": 0.3,
             "shareLocation": 1, "codeType": code}
    got = apply("DetectionOutput", attrs, places, scores, priors)
    for image in range(2):
        rows = []
        boxes = np.empty((count, 4))
        for k, (p, c) in enumerate(zip(places[image].reshape(-1, 4) * np.float32([.1, .1, .2, .2]), corners)):
            w, h = c[2] - c[0], c[3] - c[1]
            if code == 2:
                x, y, a, b = (c[0] + c[2]) / 2 + p[0] * w, (c[1] + c[3]) / 2 + p[1] * h, math.exp(p[2]) * w, math.exp(p[3]) * h
                boxes[k] = x - a / 2, y - b / 2, x + a / 2, y + b / 2
            else:
                boxes[k] = c + p * ([w, h, w, h] if code == 3 else 1)
        table = scores[image].reshape(count, classes)
        for kind in range(1, classes):
            order = [i for i in np.argsort(-table[:, kind]) if table[i, kind] > 0.3][:25]
            rows += [(kind, table[order[i], kind], *boxes[order[i]]) for i in greedy(boxes[order], table[order, kind], 0.4)]
        rows = sorted(rows, key=lambda r: -r[1])[:15]
        np.testing.assert_allclose(got[image, 0, :len(rows)], rows, rtol=1e-4, atol=1e-5)
        assert not got[image, 0, len(rows):].any()


@pytest.mark.parametrize("regular", [False, True])
def test_detection_post_process(regular: bool) -> None:
    encoded, scores, anchors = f(1, 20, 4), RNG.random((1, 20, 4)).astype(np.float32), RNG.random((20, 4)).astype(np.float32)
    attrs = {"maxDetections": 7, "maxClassesPerDetection": 1, "detectionsPerClass": 5, "nmsScoreThreshold": 0.4,
             "iouThreshold": 0.3, "numClasses": 3, "centerSizeEncoding": np.array([10, 10, 5, 5], np.float32),
             "useRegularNMS": regular}
    boxes = np.empty((20, 4))
    for k, (e, a) in enumerate(zip(encoded[0] / [10, 10, 5, 5], anchors)):
        y, x, h, w = e[0] * a[2] + a[0], e[1] * a[3] + a[1], math.exp(e[2]) * a[2], math.exp(e[3]) * a[3]
        boxes[k] = y - h / 2, x - w / 2, y + h / 2, x + w / 2
    table = scores[0, :, 1:]
    rows = []
    if regular:
        for kind in range(3):
            order = [i for i in range(20) if table[i, kind] >= 0.4]
            rows += [(order[i], kind) for i in greedy(boxes[order], table[order, kind], 0.3)[:5]]
        rows = sorted(rows, key=lambda r: -table[r])[:7]
    else:
        order = [i for i in range(20) if table[i].max() >= 0.4]
        rows = [(order[i], int(table[order[i]].argmax())) for i in greedy(boxes[order], table[order].max(1), 0.3)][:7]
    places, kinds, values, count = apply("DetectionPostProcess", attrs, encoded, scores, anchors, outputs=4)
    assert count.tolist() == [len(rows)]
    np.testing.assert_allclose(places[0, :len(rows)], boxes[[i for i, _ in rows]], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(kinds[0, :len(rows)], [k for _, k in rows])
    np.testing.assert_array_equal(values[0, :len(rows)], [table[r] for r in rows])
    assert not places[0, len(rows):].any()
