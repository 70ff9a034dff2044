"""Mixtures of experts of onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contrib_cases import check, check_values, contrib
from onnx_cases import random

from mnn_core import ConversionError

pytestmark = pytest.mark.filterwarnings("ignore::mnn_core.PlacementWarning")

H, INNER, E = 16, 32, 4
FEEDS = [{"x": random(5, H), "r": random(5, E, seed=1)}, {"x": random(1, H, seed=7), "r": random(1, E, seed=8)}]


def _weights(fused: int = 1) -> dict[str, np.ndarray]:
    return {"a": random(E, INNER * fused, H, seed=2), "ab": random(E, INNER * fused, seed=3), "c": random(E, H, INNER, seed=4),
            "cb": random(E, H, seed=5)}


@pytest.mark.parametrize("normalised", [0, 1])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("kind", ["relu", "gelu", "silu", "identity"])
def test_moe(normalised, k, kind) -> None:
    attrs = {"k": k, "activation_type": kind, "normalize_routing_weights": normalised}
    check(contrib("MoE", "x r a ab c cb", **attrs), FEEDS, constants=_weights())
    plain = {n: v for n, v in _weights().items() if n in "ac"}
    check(contrib("MoE", "x r a _ c", **attrs), {"x": random(2, 3, H), "r": random(6, E, seed=1)}, constants=plain)


@pytest.mark.parametrize("attrs", [{}, {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 2.0}])
def test_gated_units(attrs: dict[str, Any]) -> None:
    """Interleaved halves against onnxruntime; halves one after the other, and apart, give what interleaved ones give."""
    common = {"k": 2, "activation_type": "swiglu", "normalize_routing_weights": 1, **attrs}
    weights = _weights(2)
    check(contrib("MoE", "x r a ab c cb", swiglu_fusion=1, **common), FEEDS, constants=weights)
    x, r = FEEDS[0]["x"], FEEDS[0]["r"]
    share = np.exp(r)
    want = np.zeros_like(x)
    alpha, beta, limit = attrs.get("activation_alpha", 1), attrs.get("activation_beta", 0), attrs.get("swiglu_limit", np.inf)
    for t in range(len(x)):
        best = np.argsort(-r[t])[:2]
        for e in best:
            h = weights["a"][e] @ x[t] + weights["ab"][e]
            g, up = np.minimum(h[::2], limit), np.clip(h[1::2], -limit, limit)
            y = weights["c"][e] @ (g / (1 + np.exp(-alpha * g)) * (up + beta)) + weights["cb"][e]
            want[t] += share[t, e] / share[t, best].sum() * y
    halves = {n: np.concatenate([weights[n][:, ::2], weights[n][:, 1::2]], 1) for n in ("a", "ab")}
    check_values(contrib("MoE", "x r a ab c cb", swiglu_fusion=2, **common), FEEDS[0], [want], constants={**weights, **halves})
    apart = {n: weights[n[0] + n[2:]][:, start::2] for n, start in (("a0", 0), ("a0b", 0), ("a1", 1), ("a1b", 1))}
    check_values(contrib("MoE", "x r a0 a0b c cb a1 a1b", **common), FEEDS[0], [want],
                 constants={**apart, "c": weights["c"], "cb": weights["cb"]})


def _quantised(bits: int, block: int, zero: bool, fused: int) -> dict[str, np.ndarray]:
    rng, found = np.random.default_rng(0), {}
    for name, rows, inner in (("a", INNER * fused, H), ("c", H, INNER)):
        shape = (E, rows, inner // block) if block else (E, rows)
        found[name] = rng.integers(0, 256, (E, rows, inner * bits // 8), np.uint8)
        found[f"{name}s"] = rng.uniform(0.005, 0.02, shape).astype(np.float32)
        if zero:
            found[f"{name}z"] = rng.integers(0, 256, (*shape[:-1], -(-shape[-1] * bits // 8)), np.uint8)
    return found


@pytest.mark.parametrize(("bits", "block"), [(4, 0), (8, 0), (4, 16)])
@pytest.mark.parametrize("zero", [False, True])
def test_quantised(bits, block, zero) -> None:
    """Normalised: onnxruntime's quantised CPU kernel normalises in any case, its float one as documented."""
    constants = _quantised(bits, block, zero, 2)
    attrs = {"k": 2, "normalize_routing_weights": 1, "activation_type": "swiglu", "swiglu_fusion": 1,
             "expert_weight_bits": bits, "accuracy_level": 1}
    if block:
        attrs["block_size"] = block
    names = f"x r a as _ c cs{' _ _ _ _ az cz' if zero else ''}"
    check(contrib("QMoE", names, **attrs), FEEDS, constants=constants, tolerance=1e-4)


def test_what_is_refused() -> None:
    with pytest.raises(ConversionError, match="use_sparse_mixer"):
        check(contrib("MoE", "x r a ab c cb", use_sparse_mixer=1), FEEDS, constants=_weights())
    with pytest.raises(ConversionError, match="export with quant_type 'int'"):
        check(contrib("QMoE", "x r a as _ c cs", quant_type="fp4"), FEEDS, constants=_quantised(4, 0, False, 1))
