"""Attention without padding gives the rows that are no padding of attention with it, which onnxruntime has on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
from contrib_cases import check_values, contrib, contrib_model
from onnx_cases import random, theirs

N, D = 2, 4
H = N * D
LENGTHS = np.array([3, 5, 1], np.int32)
SEEN = np.arange(5) < LENGTHS[:, None]
PLACES = {"o": np.concatenate([np.flatnonzero(SEEN), np.flatnonzero(~SEEN)]).reshape(3, 5).astype(np.int32),
          "n": np.concatenate([[0], np.cumsum(LENGTHS)]).astype(np.int32)}


@pytest.mark.parametrize("extra", [False, True])
@pytest.mark.parametrize("sizes", [None, [H, H, 12]])
def test_packed_attention(extra, sizes) -> None:
    width = sum(sizes or [H] * 3)
    x, e = random(3, 5, 6), random(1, N, 5, 5, seed=3)
    constants = {"w": random(6, width, seed=1), "b": random(width, seed=2)}
    attrs = {"num_heads": N, **({"qkv_hidden_sizes": sizes} if sizes else {})}
    feeds = {"x": x, "m": SEEN.astype(np.int32), **({"e": e} if extra else {})}
    padded = contrib_model(contrib("Attention", f"x w b m _ {'e' if extra else ''}", **attrs), feeds, constants=constants)
    want = theirs(padded, feeds)[0][SEEN]
    packed = {"x": x[SEEN], **PLACES, **({"e": e} if extra else {})}
    check_values(contrib("PackedAttention", f"x w b o n {'e' if extra else ''}", **attrs), packed, [want], constants=constants)


@pytest.mark.parametrize("extra", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_packed_multi_head_attention(extra, bias) -> None:
    states = {n: random(3, 5, H, seed=i) for i, n in enumerate("qkv")}
    more = {"e": random(3, N, 5, 5, seed=4)} if extra else {}
    constants = {"b": random(3 * H, seed=5)} if bias else {}
    names = f"{'b' if bias else '_'} %s {'e' if extra else ''}"
    feeds = {**states, "m": SEEN.astype(np.int32), **more}
    attrs = {"num_heads": N, "scale": 0.3}
    padded = contrib_model(contrib("MultiHeadAttention", "q k v " + names % "m", **attrs), feeds, constants=constants)
    want = [theirs(padded, feeds)[0][SEEN]]
    apart = {**{n: v[SEEN] for n, v in states.items()}, **PLACES, **more}
    check_values(contrib("PackedMultiHeadAttention", "q k v " + names % "o n", **attrs), apart, want, constants=constants)
    joined = {"q": np.stack([v[SEEN].reshape(-1, N, D) for v in states.values()], 2), **PLACES, **more}
    check_values(contrib("PackedMultiHeadAttention", "q _ _ " + names % "o n", **attrs), joined, want, constants=constants)
