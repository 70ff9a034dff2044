"""Reductions and ops about order against onnxruntime."""

import numpy as np
import pytest
from ops.definitions import apply
from ops.ort import run

from mnn_core.errors import ShapeError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4, 5)).astype(np.float32)
WHOLE = RNG.integers(-9, 9, (3, 4, 5)).astype(np.int32)
ONNX = {"SUM": "ReduceSum", "ASUM": "ReduceL1", "SUMSQ": "ReduceSumSquare", "MEAN": "ReduceMean", "PROD": "ReduceProd",
        "MAXIMUM": "ReduceMax", "MINIMUM": "ReduceMin"}


@pytest.mark.parametrize("name", ONNX)
@pytest.mark.parametrize("axes", [(1,), (-1,), (0, 2), (0, 1, 2), ()])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("x", [X, WHOLE], ids=["float", "int"])
def test_reduction(name: str, axes: tuple[int, ...], keep: bool, x: np.ndarray) -> None:
    want = run(ONNX[name], [x, np.array(axes, np.int64)] if axes else [x], keepdims=int(keep))
    if name == "PROD" and x is WHOLE:
        want = x.astype(np.int64).prod(axis=axes or None, keepdims=keep).astype(np.int32)
    attrs = {"operation": name, "keepDims": keep}
    for got in (apply("Reduction", attrs | {"dim": axes}, x), apply("Reduction", attrs, x, np.array(axes, np.int32))):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_mean_of_integers_truncates() -> None:
    x = np.array([[-7, 0], [7, 0], [-1, 0]], np.int32)
    want = run("ReduceMean", [x, np.array([1])], keepdims=0)
    np.testing.assert_array_equal(want, [-3, 3, 0])
    np.testing.assert_array_equal(apply("Reduction", {"operation": "MEAN", "dim": (1,)}, x), want)


def test_any_and_all() -> None:
    x = np.array([[0, 2], [0, 0], [-1, 3]], np.int32)
    np.testing.assert_array_equal(apply("Reduction", {"operation": "ANY", "dim": (1,)}, x), [1, 0, 1])
    np.testing.assert_array_equal(apply("Reduction", {"operation": "ALL", "dim": (1,)}, x), [0, 0, 1])


def test_of_nothing_and_rank_0() -> None:
    empty = np.zeros((2, 0), np.float32)
    for name, want in {"SUM": 0, "PROD": 1, "MAXIMUM": -np.inf, "MINIMUM": np.inf, "MEAN": np.nan}.items():
        np.testing.assert_array_equal(apply("Reduction", {"operation": name, "dim": (1,)}, empty), [want] * 2)
        scalar = np.array(3, np.float32)
        assert apply("Reduction", {"operation": name}, scalar) == scalar
    assert apply("Reduction", {"operation": "MAXIMUM", "dim": (0,)}, empty).shape == (0,)


def test_nan_wins() -> None:
    x = np.array([1, np.nan, 2], np.float32)
    for name in ("MAXIMUM", "MINIMUM", "SUM"):
        assert np.isnan(apply("Reduction", {"operation": name}, x))


def test_reduction_errors() -> None:
    with pytest.raises(ShapeError, match="axis 3"):
        apply("Reduction", {"operation": "SUM", "dim": (3,)}, X)
    with pytest.raises(ShapeError, match="twice"):
        apply("Reduction", {"operation": "SUM", "dim": (0, -3)}, X)


def test_moments() -> None:
    mean, variance = apply("Moments", {"dim": (1,)}, X, outputs=2)
    np.testing.assert_allclose(mean, X.mean(1, keepdims=True), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(variance, X.var(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(("name", "onnx"), [("ArgMax", "ArgMax"), ("ArgMin", "ArgMin")])
def test_arg(name: str, onnx: str, axis: int) -> None:
    for x in (X, WHOLE):
        np.testing.assert_array_equal(apply(name, {"axis": axis}, x), run(onnx, [x], axis=axis, keepdims=0))
    assert apply(name, {"axis": 1}, np.zeros((0, 3), np.float32)).shape == (0,)
    with pytest.raises(ShapeError, match="nothing to choose"):
        apply(name, {"axis": 1}, np.zeros((3, 0), np.float32))


def test_arg_max_of_caffe() -> None:
    x = X[..., None]
    got = apply("ArgMax", {"axis": 1, "topK": 2, "outMaxVal": 1}, x)
    np.testing.assert_array_equal(got[:, :2], np.argsort(-x, 1)[:, :2])
    np.testing.assert_array_equal(got[:, 2:], -np.sort(-x, 1)[:, :2])
    whole = apply("ArgMax", {"axis": 10000, "topK": 3}, x)
    np.testing.assert_array_equal(whole.reshape(3, 3), np.argsort(-x.reshape(3, -1), 1)[:, :3])


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("axis", [0, -1])
def test_top_k(largest: bool, axis: int) -> None:
    for x in (X, WHOLE):
        want = run("TopK", [x, np.array([2])], outputs=2, axis=axis, largest=int(largest))
        got = apply("TopKV2", {"largest": largest}, x, np.array(2, np.int32), np.array(axis, np.int32), outputs=2)
        np.testing.assert_array_equal(got[0], want[0])
        np.testing.assert_array_equal(got[1], want[1])
    with pytest.raises(ShapeError, match="top 9"):
        apply("TopKV2", {}, X, np.array([9], np.int32), outputs=2)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, -1])
def test_cum_sum(exclusive: bool, reverse: bool, axis: int) -> None:
    for x in (X, WHOLE):
        want = run("CumSum", [x, np.array(axis)], exclusive=int(exclusive), reverse=int(reverse))
        got = apply("CumSum", {"exclusive": exclusive, "reverse": reverse}, x, np.array(axis, np.int32))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    empty = np.zeros((2, 0), np.float32)
    assert apply("CumSum", {"exclusive": exclusive}, empty, np.array(1, np.int32)).shape == (2, 0)


def test_cum_prod() -> None:
    np.testing.assert_allclose(apply("CumProd", {"axis": 1}, X), X.cumprod(1), rtol=1e-5)
