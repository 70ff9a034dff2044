"""GroupQueryAttention of onnxruntime: prompts, tokens, buffers, and every option."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contrib_cases import check, check_values, contrib, contrib_model
from onnx import TensorProto
from onnx_cases import random, theirs
from test_contrib_rotary import _tables

from mnn_core import ConversionError

N, K, D = 4, 2, 16
NAMES = ["q", "k", "v", "pk", "pv", "n", "t", "c", "s", "p", "e", "h"]


def _feeds(batch: int, length: int, past: int, buffer: int = 0, packed: bool = False,
           width: int = D) -> dict[str, Any]:
    """A call with `past` cached positions, in a buffer of that length or a longer one."""
    q, k, v = (random(batch, length, n * width, seed=i) for i, n in enumerate((N, K, K)))
    total = past + length
    feeds = {"q": np.concatenate([q, k, v], -1)} if packed else {"q": q, "k": k, "v": v}
    caches = {n: random(batch, K, max(buffer, past), width, seed=4 + i) for i, n in enumerate(("pk", "pv"))}
    return {**feeds, **caches, "n": np.full(batch, total - 1, np.int32), "t": np.array(total, np.int32)}


def _check(feeds: list[dict[str, Any]], outputs: str = "y nk nv", types: Any = None, **attrs: Any) -> None:
    names = [n if n in feeds[0] else "_" for n in NAMES]
    while names[-1] == "_":
        names.pop()
    tables = {n: feeds[0][n] for n in ("c", "s", "h") if n in feeds[0]}
    nodes = contrib("GroupQueryAttention", " ".join(names), outputs, num_heads=N, kv_num_heads=K, **attrs)
    check(nodes, [{n: v for n, v in feed.items() if n not in tables} for feed in feeds], outputs.split(), constants=tables,
          types=types)


CALLS = [(1, 5, 0), (2, 6, 0), (2, 1, 4), (1, 3, 4)]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("attrs", [{}, {"scale": 0.3}, {"softcap": 0.5}, {"local_window_size": 3}, {"smooth_softmax": 1},
                                   {"local_window_size": 2, "softcap": 1.5, "scale": 2.0}])
def test_calls(packed, attrs) -> None:
    _check([_feeds(*call, packed=packed) for call in CALLS], **attrs)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("packed", [False, True])
def test_rotary(interleaved, width, packed) -> None:
    feeds = [{**_feeds(*call, packed=packed, width=width), **_tables(16)} for call in CALLS]
    _check(feeds, do_rotary=1, rotary_interleaved=interleaved)


def test_given_positions() -> None:
    for batch, length, past in CALLS:
        feeds = {**_feeds(batch, length, past), **_tables(16)}
        feeds["p"] = np.arange(past, past + length)[None] + np.arange(batch)[:, None] * (past > 0)
        _check([feeds], do_rotary=1)


@pytest.mark.parametrize(("length", "past"), [(1, 4), (3, 2)])
def test_buffers_of_a_fixed_size(length, past) -> None:
    """onnxruntime leaves rows that nobody attends to as they are in the buffer that it shares; so do we."""
    feeds = _feeds(1, length, past, buffer=9)
    nodes = contrib("GroupQueryAttention", "q k v pk pv n t", "y nk nv", num_heads=N, kv_num_heads=K)
    grown = {**feeds, "pk": feeds["pk"][:, :, :past], "pv": feeds["pv"][:, :, :past]}
    y, key, value = theirs(contrib_model(nodes, grown, ("y", "nk", "nv")), grown)
    end = past + length
    want = [y, *(np.concatenate([new, feeds[old][:, :, end:]], 2) for new, old in ((key, "pk"), (value, "pv")))]
    check_values(nodes, feeds, want, ("y", "nk", "nv"))


def test_batch_entries_of_different_lengths() -> None:
    """Each entry alone gives what it gives in the batch."""
    past = [2, 5, 3]
    calls = [_feeds(1, 1, p) for p in past]
    nodes = contrib("GroupQueryAttention", "q k v pk pv n t", "y nk nv", num_heads=N, kv_num_heads=K)
    rows = []
    for i, call in enumerate(calls):
        call["q"] = random(1, 1, N * D, seed=20 + i)
        rows.append(theirs(contrib_model(nodes, call, ("y", "nk", "nv")), call)[0])
    batch = {n: np.concatenate([call[n] for call in calls]) for n in ("q", "k", "v", "n")}
    for n in ("pk", "pv"):
        batch[n] = np.concatenate([np.pad(call[n], ((0, 0), (0, 0), (0, 5 - p), (0, 0))) for call, p in zip(calls, past)])
    batch["t"] = np.array(6, np.int32)
    nodes = contrib("GroupQueryAttention", "q k v pk pv n t", num_heads=N, kv_num_heads=K)
    check_values(nodes, batch, [np.concatenate(rows)])


@pytest.mark.parametrize("shape", [(2, 4), (1, 1)])
def test_attention_bias_and_sinks(shape) -> None:
    feeds = []
    for batch, length, past in ((2, 5, 0), (2, 1, 4)):
        feeds.append({**_feeds(batch, length, past), "e": random(*shape, length, past + length, seed=8)})
    _check(feeds, softcap=0.7)
    _check([{**feed, "h": random(N, seed=9)} for feed in feeds])


@pytest.mark.parametrize("kind", [1, 2])
def test_scores(kind) -> None:
    _check([_feeds(2, 1, 4)], "y nk nv qk", {"qk": TensorProto.FLOAT}, qk_output=kind, softcap=0.6)


def test_all_positions() -> None:
    _check([_feeds(2, 5, 0)], causal=0)


def test_normalised_heads() -> None:
    """Queries and keys by their root mean square first: as onnxruntime without it, given such queries and keys."""
    feeds, weights = _feeds(2, 3, 0), [random(D, seed=11), random(D, seed=12)]
    plain = dict(feeds)
    for name, heads, weight, epsilon in zip("qk", (N, K), weights, (0.1, 1e-3)):
        x = feeds[name].reshape(2, 3, heads, D)
        x = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + epsilon) * weight
        plain[name] = x.reshape(2, 3, -1).astype(np.float32)
    nodes = contrib("GroupQueryAttention", "q k v pk pv n t", num_heads=N, kv_num_heads=K)
    want = theirs(contrib_model(nodes, plain), plain)
    names = "q k v pk pv n t _ _ _ _ _ _ _ qn kn"
    nodes = contrib("GroupQueryAttention", names, num_heads=N, kv_num_heads=K, q_norm_epsilon=0.1, qk_norm_epsilon=1e-3)
    check_values(nodes, feeds, want, constants={"qn": weights[0], "kn": weights[1]})


def test_what_is_refused() -> None:
    feeds = _feeds(1, 1, 4)
    for attrs, reason in (({"k_quant_type": "PER_TENSOR"}, "quantised cache"), ({"sliding_window_cache": 1}, "sliding_window")):
        nodes = contrib("GroupQueryAttention", "q k v pk pv n t", num_heads=N, kv_num_heads=K, **attrs)
        with pytest.raises(ConversionError, match=reason):
            check_values(nodes, feeds, [])
