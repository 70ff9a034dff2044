"""Softmax and normalisations against onnxruntime."""

import numpy as np
import pytest
from ops.definitions import apply, run_op
from ops.ort import run

from mnn_core.errors import ShapeError
from mnn_core.ir import Op

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 6, 3, 4)).astype(np.float32)
GAMMA, BETA = RNG.standard_normal((2, 6)).astype(np.float32)


def close(got: np.ndarray, want: np.ndarray, atol: float = 2e-6) -> None:
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("axis", [-1, 0, 1, 2, -3])
def test_softmax(axis: int) -> None:
    close(apply("Softmax", {"axis": axis}, X), run("Softmax", [X], axis=axis))


def test_softmax_values() -> None:
    x = np.array([[[0, 1], [2, 3]]], np.float32)
    close(apply("Softmax", {"axis": -1}, x), np.array([[[.268941, .731059]] * 2], np.float32))
    flat = apply("Softmax", {"axis": 1}, x.reshape(1, 4))  # what opset 11 means
    close(flat, run("Softmax", [x], opset=11).reshape(1, 4))


def test_softmax_corners() -> None:
    huge = np.array([[1e30, -1e30, 0], [-np.inf, 0, 0], [np.nan, 0, 1], [-np.inf] * 3], np.float32)
    want = np.array([[1, 0, 0], [0, .5, .5], [np.nan] * 3, [np.nan] * 3])
    np.testing.assert_array_equal(apply("Softmax", {"axis": -1}, huge), want)
    assert apply("Softmax", {"axis": 1}, np.zeros((2, 0, 3), np.float32)).shape == (2, 0, 3)
    assert apply("Softmax", {"axis": 0}, np.array(3, np.float32)) == 1
    with pytest.raises(ShapeError, match="axis 4"):
        apply("Softmax", {"axis": 4}, X)


@pytest.mark.parametrize("axis", [-1, 1, 2])
def test_layer_norm(axis: int) -> None:
    shape = X.shape[axis:]
    gamma, beta = RNG.standard_normal((2, *shape)).astype(np.float32)
    axes = tuple(range(axis, 0)) if axis < 0 else tuple(range(axis, 4))
    want = run("LayerNormalization", [X, gamma, beta], axis=axis, epsilon=1e-3)
    close(apply("LayerNorm", {"axis": axes, "epsilon": 1e-3}, X, gamma, beta), want)
    close(apply("LayerNorm", {"axis": axes, "epsilon": 1e-3}, X, gamma.ravel(), beta.ravel()), want)


def test_layer_norm_rms_and_plain() -> None:
    wide = X.astype(np.float64)
    rms = wide / np.sqrt((wide ** 2).mean(-1, keepdims=True) + 1e-6)
    close(apply("LayerNorm", {"axis": (-1,), "epsilon": 1e-6, "useRMSNorm": True}, X), rms)
    plain = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-6)
    close(apply("LayerNorm", {"axis": (1,), "epsilon": 1e-6}, X, None, None), plain)


def test_layer_norm_that_adds_first() -> None:
    gamma = GAMMA[:4]
    op = Op("LayerNorm", ["a", "b", "g"], ["sum", "y"], {"axis": (-1,), "epsilon": 1e-5})
    total, y = run_op(op, [X, X[::-1], gamma])
    close(total, X + X[::-1])
    close(y, apply("LayerNorm", {"axis": (-1,), "epsilon": 1e-5}, total, gamma))


def test_group_norm() -> None:
    want = run("GroupNormalization", [X, GAMMA, BETA], opset=21, num_groups=3, epsilon=1e-5)
    close(apply("GroupNorm", {"group": 3, "epsilon": 1e-5}, X, GAMMA, BETA), want)
    close(apply("LayerNorm", {"group": 3, "epsilon": 1e-5}, X, GAMMA, BETA), want)
    swish = apply("GroupNorm", {"group": 3, "epsilon": 1e-5, "bSwish": 1}, X, GAMMA, BETA)
    close(swish, want / (1 + np.exp(-want)))
    added = RNG.standard_normal((2, 6)).astype(np.float32)
    close(apply("GroupNorm", {"group": 3, "epsilon": 1e-5}, X, GAMMA, BETA, added),
          run("GroupNormalization", [X + added[:, :, None, None], GAMMA, BETA], opset=21, num_groups=3, epsilon=1e-5))


def test_instance_norm() -> None:
    want = run("InstanceNormalization", [X, GAMMA, BETA], epsilon=1e-5)
    attrs = {"slopeData": GAMMA, "biasData": BETA, "epsilon": 1e-5}
    close(apply("InstanceNorm", attrs, X), want)
    close(apply("InstanceNorm", attrs, X, X.mean((2, 3)), X.var((2, 3))), want)


@pytest.mark.parametrize("x", [X, X[:, :, 0], X[:, :, 0, 0]])
def test_batch_norm(x: np.ndarray) -> None:
    mean, variance = BETA * 2, np.abs(GAMMA) + 0.1
    want = run("BatchNormalization", [x, GAMMA, BETA, mean, variance], epsilon=1e-5)
    attrs = {"slopeData": GAMMA, "biasData": BETA, "meanData": mean, "varData": variance, "epsilon": 1e-5}
    close(apply("BatchNorm", attrs, x), want)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9])
def test_lrn(size: int) -> None:
    attrs = {"alpha": 0.3, "beta": 0.75, "bias": 1.5}
    if size % 2:  # onnxruntime takes odd sizes only
        want = run("LRN", [X], size=size, **attrs)
    else:
        before, after = (size - 1) // 2, size // 2
        sums = np.stack([(X[:, max(0, c - before):c + after + 1] ** 2).sum(1) for c in range(6)], 1)
        want = X / (1.5 + 0.3 / size * sums) ** 0.75
    close(apply("LRN", {"localSize": size, **attrs}, X), want)


def test_lrn_within_channel() -> None:
    want = run("AveragePool", [X ** 2], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    got = apply("LRN", {"localSize": 3, "alpha": 0.3, "beta": 0.75, "bias": 1.5, "regionType": 1}, X)
    close(got, X / (1.5 + 0.3 * want) ** 0.75)


def test_normalize() -> None:
    got = apply("Normalize", {"eps": 0.0, "scale": np.ones(6, np.float32)}, X)
    close(got, run("LpNormalization", [X], axis=1, p=2))
    spatial = apply("Normalize", {"eps": 0.0, "acrossSpatial": 1, "channelShared": 1, "scale": np.array([2], np.float32)}, X)
    close(spatial.reshape(2, -1), 2 * run("LpNormalization", [X.reshape(2, -1)], axis=1, p=2))
