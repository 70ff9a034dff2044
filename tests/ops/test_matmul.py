"""Matrix products against onnxruntime and formulas."""

import numpy as np
import pytest
from ops.definitions import apply
from ops.ort import run

from mnn_core.errors import ShapeError

RNG = np.random.default_rng(0)


def _random(*shape: int) -> np.ndarray:
    return np.asarray(RNG.standard_normal(shape), np.float32)


@pytest.mark.parametrize(("a", "b"), [
    ((5, 7), (7, 3)), ((2, 1, 5, 7), (3, 7, 4)), ((7,), (7, 4)), ((2, 5, 7), (7,)), ((7,), (7,)), ((3, 4, 7), (7, 2)),
    ((1, 0, 4), (4, 3)), ((2, 0), (0, 3)), ((0, 2, 3), (1, 3, 2)),
])
def test_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = _random(*a), _random(*b)
    want = run("MatMul", [x, y])
    got = apply("MatMul", {}, x, y)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("a_flag", [False, True])
@pytest.mark.parametrize("b_flag", [False, True])
def test_transposes_and_bias(a_flag: bool, b_flag: bool) -> None:
    x, y, bias = _random(5, 7), _random(7, 3), _random(3)
    want = run("Gemm", [x, y, bias])
    a, b = (x.T.copy() if a_flag else x), (y.T.copy() if b_flag else y)
    got = apply("MatMul", {"transposeA": a_flag, "transposeB": b_flag}, a, b, bias)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    batched = apply("BatchMatMul", {"adjX": a_flag, "adjY": b_flag}, np.stack([a, a]), np.stack([b, -b]))
    np.testing.assert_allclose(batched, np.stack([x @ y, -(x @ y)]), rtol=1e-5, atol=1e-6)


def test_int32_wraps() -> None:
    x = np.array([[2**16, 1]], np.int32)
    np.testing.assert_array_equal(apply("MatMul", {}, x, x.T.copy()), [[1]])


def test_inner_product() -> None:
    x, weight, bias = _random(2, 3, 4), _random(5, 12), _random(5)
    attrs = {"outputCount": 5, "weight": weight.ravel(), "bias": bias}
    np.testing.assert_allclose(apply("InnerProduct", attrs, x), x.reshape(2, 12) @ weight.T + bias, rtol=1e-5, atol=1e-6)
    turned = {"outputCount": 5, "weight": weight.T.ravel(), "transpose": True, "axis": 1}
    np.testing.assert_allclose(apply("InnerProduct", turned, x), x.reshape(2, 12) @ weight.T, rtol=1e-5, atol=1e-6)


def test_cosine_similarity() -> None:
    a, b = _random(2, 8, 3), _random(2, 8, 3)
    want = (a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    np.testing.assert_allclose(apply("CosineSimilarity", {}, a, b, np.array([1], np.int32)), want, rtol=1e-5)
    assert (apply("CosineSimilarity", {}, a * 0, b, np.array(-2, np.int32)) == 0).all()


@pytest.mark.parametrize(("a", "b", "message"), [
    ((2, 3), (4, 5), "inner sizes 3 and 4"), ((), (3,), "rank of 1"), ((2, 2, 3), (3, 3, 4), "batch shapes")])
def test_errors(a: tuple[int, ...], b: tuple[int, ...], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        apply("MatMul", {}, _random(*a), _random(*b))
