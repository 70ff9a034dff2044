"""Ops whose output shape depends on data, against onnxruntime."""

import numpy as np
import pytest
from ops.definitions import apply
from ops.ort import run

from mnn_core.errors import ShapeError

BOXES = np.array([[0, 0, .3, .3], [0, 0, .4, .4], [0, 0, .5, .5], [.5, .5, .9, .9], [.5, .5, 1, 1]], np.float32)
SCORES = np.array([.6, .7, .8, .9, .5], np.float32)
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 0), (2, 3, 2), ()])
def test_where(shape: tuple[int, ...]) -> None:
    x = np.asarray(RNG.integers(-1, 2, shape), np.int32)
    np.testing.assert_array_equal(apply("Where", {}, x), run("NonZero", [x]).T)


def test_where_takes_floats() -> None:
    np.testing.assert_array_equal(apply("Where", {}, np.array([0, -0.0, np.nan, 1], np.float32)), [[2], [3]])


@pytest.mark.parametrize("sort", [True, False])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_unique(sort: bool, axis: int | None) -> None:
    x = RNG.integers(0, 2, (5, 3)).astype(np.float32)
    want = run("Unique", [x], outputs=4, sorted=int(sort), **({} if axis is None else {"axis": axis}))
    got = apply("Unique", {"sorted": sort, "axis": axis}, x, outputs=4)
    for g, w in zip(got, want):
        np.testing.assert_array_equal(g, w)
    np.testing.assert_array_equal(apply("Unique", {"sorted": sort, "axis": axis}, x), want[0])


def test_set_diff_and_segment() -> None:
    x, y = np.array([3, 1, 4, 1, 5], np.int32), np.array([1, 9], np.int32)
    values, index = apply("SetDiff1D", {}, x, y, outputs=2)
    np.testing.assert_array_equal(values, [3, 4, 5])
    np.testing.assert_array_equal(index, [0, 2, 4])
    rows = np.arange(10, dtype=np.float32).reshape(5, 2)
    np.testing.assert_array_equal(apply("Segment", {}, rows, np.array([0, 0, 1, 3, 3])), [[1, 2], [4, 5], [0, 0], [7, 8]])
    with pytest.raises(ShapeError, match="ascending"):
        apply("Segment", {}, rows, np.array([0, 2, 1, 3, 3]))
    with pytest.raises(ShapeError, match="2 GiB"):
        apply("Segment", {}, rows, np.array([0, 0, 0, 0, 2**31 - 1]))


def limits(count: int, overlap: float, score: float) -> list[np.ndarray]:
    return [np.array([count], np.int64), np.array([overlap], np.float32), np.array([score], np.float32)]


def test_nms_of_batches() -> None:
    boxes, scores = np.stack([BOXES] * 2), np.stack([[SCORES] * 2] * 2)
    got = apply("NonMaxSuppressionV2", {}, boxes, scores, *limits(2, .5, 0))
    np.testing.assert_array_equal(got, [(b, c, i) for b in (0, 1) for c in (0, 1) for i in (3, 2)])
    assert apply("NonMaxSuppressionV2", {}, boxes, scores, *limits(2, .5, .99)).shape == (0, 3)
    assert apply("NonMaxSuppressionV2", {}, boxes, scores).shape == (0, 3)
    np.testing.assert_array_equal(apply("NonMaxSuppressionV2", {}, BOXES, SCORES, *limits(2, .5, 0)), [3, 2])


@pytest.mark.parametrize("centered", [False, True])
def test_nms_of_random_boxes(centered: bool) -> None:
    corner = RNG.uniform(0, 1, (2, 40, 2))
    boxes = np.concatenate([corner, corner + RNG.uniform(-.4, .4, (2, 40, 2))], 2).astype(np.float32)
    boxes[..., 2:] = np.abs(boxes[..., 2:]) if centered else boxes[..., 2:]
    scores = np.round(RNG.uniform(0, 1, (2, 3, 40)), 1).astype(np.float32)  # many equal ones
    for count, overlap, score in ((5, .3, .2), (40, .5, 0), (40, 0, .5), (40, 1, 0)):
        want = run("NonMaxSuppression", [boxes, scores, *limits(count, overlap, score)], center_point_box=int(centered))
        got = apply("NonMaxSuppressionV2", {"centered": centered}, boxes, scores, *limits(count, overlap, score))
        np.testing.assert_array_equal(got, want)


def test_nms_errors() -> None:
    with pytest.raises(ShapeError, match=r"\[5, 4\] and scores \[4\]"):
        apply("NonMaxSuppressionV2", {}, BOXES, SCORES[:4], *limits(2, .5, 0))
