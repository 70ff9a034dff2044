"""Gates of newer language models, as onnxruntime has them."""

from __future__ import annotations

import numpy as np
import pytest
from contrib_cases import check, check_values, contrib
from onnx_cases import random

from mnn_core import ConversionError

X = random(2, 5, 8)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def test_scaled_silu() -> None:
    check(contrib("ScaledSiLU", "x", alpha=0.7), {"x": X})
    check(contrib("ScaledSiLU", "x s"), {"x": X, "s": np.float32(-1.3)})


def test_gated_add() -> None:
    check(contrib("GatedAdd", "x z g"), {"x": X, "z": random(2, 5, 8, seed=1), "g": random(2, 5, 1, seed=2)})
    with pytest.raises(ConversionError, match="gate_weight"):
        check(contrib("GatedAdd", "x z g w"), {"x": X, "z": X, "g": X, "w": random(8, 1)})


@pytest.mark.parametrize("attrs", [{}, {"activation_alpha": 1.702, "activation_beta": 1.0, "limit": 0.8}])
def test_swiglu(attrs) -> None:
    """By the formula of its documentation: onnxruntime has no CPU kernel."""
    gate, up = random(2, 3, 6), random(2, 3, 6, seed=1)
    alpha, beta, limit = attrs.get("activation_alpha", 1), attrs.get("activation_beta", 0), attrs.get("limit", np.inf)
    g, linear = np.minimum(gate, limit), np.clip(up, -limit, limit)
    want = [(g * _sigmoid(alpha * g) * (linear + beta)).astype(np.float32)]
    check_values(contrib("SwiGLU", "g u", **attrs), {"g": gate, "u": up}, want)
    check_values(contrib("SwiGLU", "x", **attrs), {"x": np.concatenate([gate, up], -1)}, want)


@pytest.mark.parametrize("kind", ["silu", "swish", "sigmoid"])
@pytest.mark.parametrize("size", [8, 4])
def test_gated_rms_norm(kind, size) -> None:
    feeds = [{"x": random(*shape), "g": random(*shape, seed=1)} for shape in ((2, 5, 8), (1, 3, 8))]
    check(contrib("GatedRMSNorm", "x s g", activation=kind, epsilon=1e-3), feeds, constants={"s": random(size, seed=2)})


@pytest.mark.parametrize("scale", [(), (4,), (2, 4), (8,)])
@pytest.mark.parametrize("flat", [False, True])
def test_branchwise_rms_norm(scale, flat) -> None:
    x = random(3, 5, 8) if flat else random(3, 5, 2, 4)
    attrs = {"num_branches": 2} if flat else {}
    constants = {"s": random(*scale, seed=1)} if scale else {}
    check(contrib("BranchwiseRMSNorm", "x s" if scale else "x", epsilon=1e-3, **attrs), {"x": x}, constants=constants)


@pytest.mark.parametrize("kind", ["none", "silu", "swish"])
@pytest.mark.parametrize("inputs", ["x w", "x w b", "x w b p", "x w _ p"])
@pytest.mark.parametrize("dilation", [1, 2])
def test_causal_convolution(kind, inputs, dilation) -> None:
    feeds = []
    for batch, length in ((2, 5), (1, 1)):
        feed = {"x": random(batch, 6, length), "p": random(batch, 6, 2 * dilation, seed=3)}
        feeds.append({n: v for n, v in feed.items() if n in inputs.split()})
    constants = {n: v for n, v in (("w", random(6, 1, 3, seed=1)), ("b", random(6, seed=2))) if n in inputs.split()}
    nodes = contrib("CausalConvWithState", inputs, "y s", activation=kind, dilation=dilation)
    check(nodes, feeds, ("y", "s"), constants=constants)
