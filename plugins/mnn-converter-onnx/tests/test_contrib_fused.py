"""Fused operators of onnxruntime: activations, normalisations, convolutions, products."""

from __future__ import annotations

import numpy as np
import pytest
from contrib_cases import check, check_values, contrib
from onnx_cases import node, random

from mnn_core import ConversionError

X = random(2, 5, 8)


def _erf(x: np.ndarray) -> np.ndarray:
    """erf by its series, which converges for the values of these tests."""
    x = x.astype(np.float64)
    term = total = x.copy()
    for n in range(1, 80):
        term = -term * x * x / n
        total = total + term / (2 * n + 1)
    return total * 2 / np.sqrt(np.pi)


def _gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + _erf(x / np.sqrt(2)))


def _f32(*arrays: np.ndarray) -> list[np.ndarray]:
    return [a.astype(np.float32) for a in arrays]


@pytest.mark.parametrize(("nodes", "extra"), [
    (contrib("Gelu", "x"), {}), (contrib("BiasGelu", "x b"), {"b": random(8, seed=1)}), (contrib("FastGelu", "x"), {}),
    (contrib("FastGelu", "x b"), {"b": random(8, seed=1)}), (contrib("QuickGelu", "x"), {}),
    (contrib("QuickGelu", "x", alpha=1.0), {}), (contrib("QuickGelu", "x", alpha=-0.5), {}),
])
def test_activations(nodes, extra) -> None:
    check(nodes, [{"x": X, **extra}, {"x": random(3, 1, 8, seed=3), **extra}])
    check(nodes, {"x": X}, constants=extra)


def test_activations_without_a_cpu_kernel() -> None:
    bias, skip = random(8, seed=1), random(2, 5, 8, seed=2)
    check_values(contrib("BiasAdd", "x b s"), {"x": X, "b": bias, "s": skip}, _f32(X + bias + skip))
    left, right = np.split(X + bias, 2, -1)
    check_values(contrib("BiasSplitGelu", "x b"), {"x": X, "b": bias}, _f32(left * _gelu(right)))
    check_values(contrib("BiasDropout", "x b s"), {"x": X, "b": bias, "s": skip}, _f32(X + bias + skip))
    check_values(contrib("BiasDropout", "x b _", "y m"), {"x": X, "b": bias}, [*_f32(X + bias), np.ones(X.shape, bool)],
                 ("y", "m"))
    e = np.exp(X + skip[:, :1])
    check_values(contrib("BiasSoftmax", "x b", axis=2, is_inner_broadcast=1), {"x": X, "b": skip[:, :1]},
                 _f32(e / e.sum(-1, keepdims=True)))
    check_values(contrib("BiasSoftmax", "x b", axis=1, is_inner_broadcast=0), {"x": X, "b": skip[:, :1]},
                 _f32(e / e.sum((1, 2), keepdims=True)))
    product = X @ random(8, 3, seed=4)
    want = 0.5 * product * (1 + np.tanh(np.sqrt(2 / np.pi) * (product + 0.044715 * product**3)))
    check_values(contrib("GemmFastGelu", "x w"), {"x": X, "w": random(8, 3, seed=4)}, _f32(want))


def test_dropout_in_training_is_refused() -> None:
    feeds = {"x": X, "b": random(8), "r": np.float32(0.5), "t": np.array(True)}
    with pytest.raises(ConversionError, match="training mode"):
        check_values(contrib("BiasDropout", "x b _ r t"), feeds, [X])


@pytest.mark.parametrize("axis", [-1, 2, 1])
@pytest.mark.parametrize("outputs", ["y", "y i"])
def test_simplified_layer_normalization(axis, outputs) -> None:
    scale = random(*X.shape[axis:], seed=1)
    nodes = node("SimplifiedLayerNormalization", "x s", outputs, axis=axis, epsilon=1e-3)
    check(nodes, {"x": X, "s": scale}, outputs.split())


@pytest.mark.parametrize("skip", [(2, 5, 8), (1, 5, 8), (5, 8)])
@pytest.mark.parametrize("inputs", ["x s g", "x s g b", "x s g b e", "x s g _ e"])
@pytest.mark.parametrize("outputs", ["y", "y _ _ t"])
def test_skip_layer_normalization(skip, inputs, outputs) -> None:
    extra = {"g": random(8, seed=2), "b": random(8, seed=3), "e": random(8, seed=4)}
    used = {n: v for n, v in extra.items() if n in inputs.split()}
    nodes = contrib("SkipLayerNormalization", inputs, outputs, epsilon=1e-4)
    check(nodes, {"x": X, "s": random(*skip, seed=1)}, [n for n in outputs.split() if n != "_"], constants=used)
    if skip == (2, 5, 8):
        check(nodes, {"x": X, "s": random(*skip, seed=1), **used}, [n for n in outputs.split() if n != "_"])


@pytest.mark.parametrize("inputs", ["x s g", "x s g e"])
@pytest.mark.parametrize("outputs", ["y", "y _ _ t"])
def test_skip_simplified_layer_normalization(inputs, outputs) -> None:
    extra = {"g": random(8, seed=2), "e": random(8, seed=4)}
    used = {n: v for n, v in extra.items() if n in inputs.split()}
    nodes = contrib("SkipSimplifiedLayerNormalization", inputs, outputs)
    feeds = [{"x": random(*shape), "s": random(*shape, seed=1)} for shape in ((2, 5, 8), (1, 3, 8))]
    check(nodes, feeds, [n for n in outputs.split() if n != "_"], constants=used)


@pytest.mark.parametrize(("inputs", "outputs"), [
    ("i s w p k g b m", "y c t"), ("i s w p k g b m q", "y c"), ("i _ w p _ g b", "y c"), ("i _ w p _ g b m", "y c"),
    ("i _ w p _ g b _", "y c"), ("i s w p k g b _ q", "y c t"),
])
def test_embed_layer_normalization(inputs, outputs) -> None:
    rng = np.random.default_rng(0)
    tables = {"w": random(20, 8), "p": random(9, 8, seed=1), "k": random(2, 8, seed=2), "g": random(8, seed=3),
              "b": random(8, seed=4)}
    feeds = []
    for batch, length in ((2, 5), (3, 7)):
        feed = {"i": rng.integers(0, 20, (batch, length)), "s": rng.integers(0, 2, (batch, length)),
                "m": (np.arange(length) < rng.integers(1, length, (batch, 1))), "q": rng.integers(0, 9, (batch, length))}
        feeds.append({n: v.astype(np.int32) for n, v in feed.items() if n in inputs.split()})
    used = {n: v for n, v in tables.items() if n in inputs.split()}
    nodes = contrib("EmbedLayerNormalization", inputs, outputs)
    check(nodes, feeds, [n for n in outputs.split() if n != "_"], constants=used)


def _group_norm(x: np.ndarray, groups: int, gamma: np.ndarray, beta: np.ndarray, silu: bool) -> np.ndarray:
    """Of (N, H, W, C)."""
    n, h, w, c = x.shape
    split = x.astype(np.float64).reshape(n, h, w, groups, c // groups)
    y = (split - split.mean((1, 2, 4), keepdims=True)) / np.sqrt(split.var((1, 2, 4), keepdims=True) + 1e-5)
    y = y.reshape(x.shape) * gamma + beta
    return y / (1 + np.exp(-y)) if silu else y


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("silu", [0, 1])
def test_group_norm(last, silu) -> None:
    x, gamma, beta = random(2, 3, 4, 6), random(6, seed=1), random(6, seed=2)

    def laid(a: np.ndarray) -> np.ndarray:
        return a if last or a.ndim != 4 else np.ascontiguousarray(a.transpose(0, 3, 1, 2))

    attrs = {"groups": 3, "activation": silu, "channels_last": last}
    want = laid(_group_norm(x, 3, gamma, beta, bool(silu)))
    check_values(contrib("GroupNorm", "x g b", **attrs), {"x": laid(x), "g": gamma, "b": beta}, _f32(want))
    for skip in (random(2, 3, 4, 6, seed=3), random(2, 1, 1, 6, seed=3), random(2, 6, seed=3)):
        bias = random(6, seed=4)
        total = x + (skip.reshape(2, 1, 1, 6) if skip.ndim == 2 else skip) + bias
        want = [laid(_group_norm(total, 3, gamma, beta, bool(silu))), laid(total)]
        check_values(contrib("SkipGroupNorm", "x g b s e", "y t", **attrs),
                     {"x": laid(x), "s": laid(skip)}, _f32(*want), ("y", "t"), constants={"g": gamma, "b": beta, "e": bias})


@pytest.mark.parametrize(("kind", "params"), [("", ()), ("Relu", ()), ("Tanh", ()), ("Sigmoid", ()), ("LeakyRelu", (0.2,)),
                                          ("Clip", (-0.5, 0.7)), ("HardSigmoid", (0.3, 0.4))])
@pytest.mark.parametrize("inputs", ["x w", "x w b", "x w b z"])
def test_fused_conv(kind, params, inputs) -> None:
    feeds = {"x": random(2, 4, 6, 5), "z": random(2, 6, 3, 3, seed=3)}
    constants = {"w": random(6, 2, 3, 3, seed=1), "b": random(6, seed=2)}
    attrs = {"group": 2, "kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    if kind:
        attrs.update(activation=kind)
    if params:
        attrs.update(activation_params=params)
    names = inputs.split()
    check(contrib("FusedConv", inputs, **attrs), {n: v for n, v in feeds.items() if n in names},
          constants={n: v for n, v in constants.items() if n in names})


def test_channels_last() -> None:
    x, w, b, z = random(2, 6, 5, 4), random(3, 4, 3, 3, seed=1), random(3, seed=2), random(2, 6, 5, 3, seed=3)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    conv = sum(padded[:, i:i + 6, j:j + 5] @ w[:, :, i, j].T for i in range(3) for j in range(3)) + b
    attrs = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    constants = {"w": w, "b": b}
    check_values(contrib("NhwcConv", "x w b", **attrs), {"x": x}, _f32(conv), constants=constants)
    check_values(contrib("NhwcFusedConv", "x w b z", activation="Relu", **attrs), {"x": x, "z": z},
                 _f32(np.maximum(conv + z, 0)), constants=constants)
    for dtype in (np.int8, np.uint8):
        q = np.random.default_rng(0).integers(0, 100, (2, 6, 5, 4)).astype(dtype)
        check(contrib("NhwcMaxPool", "x", kernel_shape=[2, 3], strides=[2, 1], pads=[0, 1, 0, 1]), {"x": q})


def test_conv_transpose_with_dynamic_pads() -> None:
    feeds, w = {"x": random(1, 2, 4, 5)}, random(2, 3, 3, 3, seed=1)
    attrs = {"kernel_shape": [3, 3], "strides": [2, 2], "output_padding": [1, 1]}
    constants = {"w": w, "p": np.array([1, 0, 1, 0], np.int64), "b": random(3, seed=2)}
    check(contrib("ConvTransposeWithDynamicPads", "x w p b", **attrs), feeds, constants=constants)
    with pytest.raises(ConversionError, match="make them constant"):
        check(contrib("ConvTransposeWithDynamicPads", "x w p", **attrs), {**feeds, "p": constants["p"]}, constants={"w": w})


@pytest.mark.parametrize(("a", "b", "flags"), [
    ((2, 4, 5), (2, 5, 3), {}), ((2, 5, 4), (2, 3, 5), {"transA": 1, "transB": 1}),
    ((4, 2, 5), (2, 5, 3), {"transBatchA": 1}), ((2, 4, 5), (5, 2, 3), {"transBatchB": 1}),
    ((5, 3, 2, 4), (3, 2, 5, 6), {"transBatchA": 1, "transA": 1}),
    ((3, 2, 4, 5), (6, 3, 2, 5), {"transBatchB": 1, "transB": 1}),
    ((2, 4, 5), (5, 3), {}), ((5,), (5, 3), {"transA": 1}), ((4, 5), (5,), {"transB": 1}),
])
@pytest.mark.parametrize("alpha", [1.0, 0.3])
def test_fused_matmul(a, b, flags, alpha) -> None:
    nodes = contrib("FusedMatMul", "a b", alpha=alpha, **flags)
    check(nodes, {"a": random(*a), "b": random(*b, seed=1)})
    check(nodes, {"a": random(*a)}, constants={"b": random(*b, seed=1)})


def test_transpose_matmul() -> None:
    check(contrib("TransposeMatMul", "a b", alpha=2.0, transA=1), {"a": random(5, 4), "b": random(5, 3, seed=1)})


@pytest.mark.parametrize(("kind", "attrs"), [
    ("Relu", {}), ("LeakyRelu", {"activation_alpha": 0.2}), ("Sigmoid", {}), ("Tanh", {}),
    ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}), ("Elu", {"activation_alpha": 0.5}), ("Softplus", {}),
    ("Softsign", {}),
    ("Selu", {"activation_alpha": 1.5, "activation_gamma": 1.1}), ("ThresholdedRelu", {"activation_alpha": 0.4}),
])
def test_fused_gemm(kind, attrs) -> None:
    feeds = {"a": random(5, 4), "b": random(3, 5, seed=1), "c": random(3, seed=2)}
    common = {"alpha": 0.7, "beta": 1.3, "transA": 1, "transB": 1}
    check(contrib("FusedGemm", "a b c", activation=kind, **attrs, **common), feeds)
    if kind in ("Relu", "Sigmoid", "Tanh"):
        want = {"Relu": lambda v: np.maximum(v, 0), "Sigmoid": lambda v: 1 / (1 + np.exp(-v)), "Tanh": np.tanh}[kind]
        product = 0.7 * feeds["a"].T @ feeds["b"].T
        check_values(contrib("FusedMatMulActivation", "a b", activation=kind, alpha=0.7, transA=1, transB=1),
                     {n: feeds[n] for n in "ab"}, _f32(want(product)))
