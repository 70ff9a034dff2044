"""Attention operators of onnxruntime, with every input and option."""

from __future__ import annotations

import numpy as np
import pytest
from contrib_cases import check, check_values, contrib, contrib_model
from onnx import TensorProto
from onnx_cases import random, theirs

N, D = 2, 4
H = N * D


def _mask(kind: str, batch: int, length: int, total: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    ends = rng.integers(max(total - 3, 1), total + 1, batch).astype(np.int32)
    if kind == "ends":
        return ends
    if kind == "bounds":
        return np.concatenate([ends, np.minimum(1, ends - 1)]).astype(np.int32)
    seen = (np.arange(total) < ends[:, None]).astype(np.int32)
    if kind == "keys":
        return seen
    each = np.repeat(seen[:, None], length, 1) * (rng.random((batch, length, total)) < 0.8)
    each[..., 0] = 1  # rows that are hidden as a whole have only a few digits
    return each


def _attention(batch: int, length: int, past: int, mask: str, bias: bool) -> dict[str, np.ndarray]:
    feeds: dict[str, np.ndarray] = {"x": random(batch, length, 6)}
    total = length + past
    if mask:
        feeds["m"] = _mask(mask, batch, length, total).astype(np.int32)
    if past:
        feeds["p"] = random(2, batch, N, past, D, seed=7)
    if bias:
        feeds["e"] = random(batch, N, length, total, seed=8)
    return feeds


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize(("mask", "past", "bias", "attrs"), [
    ("", 0, False, {}), ("ends", 0, False, {}), ("bounds", 0, False, {"scale": 0.7}), ("keys", 0, True, {}),
    ("each", 0, False, {"mask_filter_value": -50.0}), ("", 3, False, {}), ("keys", 3, False, {}), ("each", 2, False, {}),
    ("each", 0, True, {}),
    ("keys", 0, False, {"qkv_hidden_sizes": [H, H, 12]}),
])
def test_attention(causal, mask, past, bias, attrs) -> None:
    width = sum(attrs.get("qkv_hidden_sizes", [H] * 3))
    names = ["x", "w", "b", *("m" if mask else "_"), *("p" if past else "_"), *("e" if bias else "_")]
    while names[-1] == "_":
        names.pop()
    outputs = "y n" if past else "y"
    nodes = contrib("Attention", " ".join(names), outputs, num_heads=N, unidirectional=causal, **attrs)
    feeds = [_attention(b, s, past, mask, bias) for b, s in ((2, 5), (3, 1) if past else (1, 4))]
    check(nodes, feeds, outputs.split(), constants={"w": random(6, width, seed=1), "b": random(width, seed=2)})


def test_attention_without_bias() -> None:
    check(contrib("Attention", "x w", num_heads=N), {"x": random(2, 5, 6)}, constants={"w": random(6, 3 * H, seed=1)})


def _mha(form: str, batch: int, length: int, keys: int, past: int) -> dict[str, np.ndarray]:
    if form == "cache":
        feeds = {"q": random(batch, length, H), "k": random(batch, N, keys, D, seed=1), "v": random(batch, N, keys, D, seed=2)}
    else:
        wide = 12 if form == "wide" else H
        feeds = {"q": random(batch, length, H), "k": random(batch, keys, H, seed=1), "v": random(batch, keys, wide, seed=2)}
    if past:
        feeds.update(pk=random(batch, N, past, D, seed=3), pv=random(batch, N, past, D, seed=4))
    return feeds


@pytest.mark.parametrize(("form", "keys", "past", "mask", "bias", "extra", "causal", "outputs"), [
    ("", 0, 0, "", False, "", 0, "y"), ("", 0, 0, "keys", True, "", 0, "y"), ("wide", 7, 0, "keys", True, "e", 0, "y"),
    ("", 7, 0, "ends", False, "e1", 0, "y"), ("", 0, 3, "keys", True, "", 1, "y pk2 pv2"),
    ("", 0, 3, "", False, "e", 1, "y pk2 pv2 qk"),
    ("cache", 7, 0, "keys", False, "e1", 0, "y"), ("cache", 7, 0, "", True, "", 0, "y _ _ qk"),
    ("", 0, 0, "", False, "", 1, "y pk2 pv2"), ("", 0, 0, "each", False, "", 1, "y"), ("", 0, 0, "", True, "", 0, "y _ _ qk"),
])
def test_multi_head_attention(form, keys, past, mask, bias, extra, causal, outputs) -> None:
    names = ["q", "k", "v", "b" if bias else "_", "m" if mask else "_", "e" if extra else "_", *(["pk", "pv"] if past else [])]
    while names[-1] == "_":
        names.pop()
    feeds = []
    for batch, length in ((2, 5), (3, 2)):
        count = keys or length
        feed = _mha(form, batch, length, count, past)
        if mask:
            feed["m"] = _mask(mask, batch, length, count + past).astype(np.int32)
        if extra:
            feed["e"] = random(*((1, 1) if extra == "e1" else (batch, N)), length, count + past, seed=6)
        feeds.append(feed)
    constants = {"b": random(2 * H + (12 if form == "wide" else H), seed=9)} if bias else {}
    attrs = {"scale": 0.4} if bias else {}
    nodes = contrib("MultiHeadAttention", " ".join(names), outputs, num_heads=N, unidirectional=causal, **attrs)
    check(nodes, feeds, [n for n in outputs.split() if n != "_"], constants=constants, types={"qk": TensorProto.FLOAT})


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("causal", [0, 1])
def test_packed(bias, causal) -> None:
    """Packed operands give what onnxruntime gives for the same ones apart, which is all that its CPU kernel takes."""
    q, k, v, e = random(2, 5, N, D), random(2, 5, N, D, seed=1), random(2, 5, N, D, seed=2), random(1, N, 5, 5, seed=3)
    constants = {"b": random(3 * H, seed=4)} if bias else {}
    attrs = {"num_heads": N, "unidirectional": causal}
    apart = {"q": q.reshape(2, 5, H), "k": k.reshape(2, 5, H), "v": v.reshape(2, 5, H), "e": e}
    name = "b" if bias else "_"
    want = theirs(contrib_model(contrib("MultiHeadAttention", f"q k v {name} _ e", **attrs), apart, constants=constants), apart)
    check_values(contrib("MultiHeadAttention", f"q _ _ {name} _ e", **attrs), {"q": np.stack([q, k, v], 3), "e": e}, want,
                 constants=constants)
    flat = np.concatenate([apart["q"], apart["k"], apart["v"]], -1)
    check_values(contrib("MultiHeadAttention", f"q _ _ {name} _ e", **attrs), {"q": flat, "e": e}, want, constants=constants)
    if not bias:
        check_values(contrib("MultiHeadAttention", "q k _ _ _ e", **attrs), {"q": apart["q"], "k": np.stack([k, v], 3), "e": e},
                     want)


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("past", [0, 3])
def test_decoder_masked_multi_head_attention(mask, bias, past) -> None:
    feeds = _mha("", 2, 1, 1, 3)
    if mask:
        feeds["m"] = _mask("keys", 2, 1, past + 1)
    constants = {"b": random(3 * H, seed=9)} if bias else {}
    nodes = contrib("DecoderMaskedMultiHeadAttention", f"q k v {'m' if mask else '_'} _ pk pv l _ _ {'b' if bias else '_'}",
                    "y n1 n2 qk", num_heads=N, past_present_share_buffer=1, output_qk=1)
    feeds["pk"], feeds["pv"] = random(2, N, 6, D, seed=3), random(2, N, 6, D, seed=4)
    feeds["l"] = np.array([past], np.int32)
    check(nodes, feeds, ("y", "n1", "n2", "qk"), constants=constants, types={"qk": TensorProto.FLOAT})
