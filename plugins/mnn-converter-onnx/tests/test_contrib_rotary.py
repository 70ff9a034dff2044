"""Rotary position embedding of onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from contrib_cases import check, check_values, contrib
from onnx_cases import random

from mnn_core import ConversionError


def _tables(width: int) -> dict[str, np.ndarray]:
    angles = np.arange(20)[:, None] / 100.0 ** (np.arange(width // 2) / (width // 2))
    return {"c": np.cos(angles).astype(np.float32), "s": np.sin(angles).astype(np.float32)}


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize(("rank", "heads", "width"), [(3, 0, 0), (3, 2, 0), (3, 2, 4), (4, 0, 0), (4, 2, 4)])
@pytest.mark.parametrize("each", [True, False])
def test_rotary_embedding(interleaved, rank, heads, width, each) -> None:
    feeds = []
    for batch, length in ((2, 5), (3, 1), (1, 7)):
        x = random(batch, length, 16) if rank == 3 else random(batch, 2, length, 8)
        rng = np.random.default_rng(1)
        feeds.append({"x": x, "p": rng.integers(0, 20, (batch, length)) if each else np.array([3])})
    attrs = {"num_heads": heads, "rotary_embedding_dim": width} if width else {}
    check(contrib("RotaryEmbedding", "x p c s", interleaved=interleaved, **attrs), feeds, constants=_tables(width or 8))


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize(("rank", "attrs"), [(3, {"num_heads": 2, "rotary_embedding_dim": 12}), (3, {"num_heads": 2}), (4, {})])
def test_multimodal_rotary_embedding(layout, interleaved, rank, attrs) -> None:
    head = 16 if attrs.get("rotary_embedding_dim") else 12
    x = random(2, 5, 2 * head) if rank == 3 else random(2, 2, 5, head)
    positions = np.random.default_rng(1).integers(0, 20, (3, 2, 5))
    nodes = contrib("MRotaryEmbedding", "x p c s", mrope_section=[2, 3, 1] if not layout else [2, 2, 2], mrope_layout=layout,
                    interleaved=interleaved, **attrs)
    check(nodes, {"x": x, "p": positions}, constants=_tables(12))


def test_what_cannot_be_told_is_refused() -> None:
    feeds = {"x": random(2, 5, 16), "p": np.array([3]), **_tables(8)}
    with pytest.raises(ConversionError, match="neither num_heads nor the width"):
        check_values(contrib("RotaryEmbedding", "x p c s"), feeds, [])
    with pytest.raises(ConversionError, match="scale 2.0"):
        check_values(contrib("RotaryEmbedding", "x p c s", scale=2.0, num_heads=2), feeds, [])


def test_gemma_rotary_embedding() -> None:
    angles, q, k = random(2, 5, 4), random(2, 3, 5, 4, seed=1), random(2, 1, 5, 4, seed=2)
    turned = [np.concatenate([-x[..., 2:], x[..., :2]], -1) for x in (q, k)]
    cosine, sine = np.cos(angles)[:, None], np.sin(angles)[:, None]
    want = [x * cosine + t * sine for x, t in zip((q, k), turned)]
    check_values(contrib("GemmaRotaryEmbedding", "e q qr k kr", "a b"),
                 {"e": angles, "q": q, "qr": turned[0], "k": k, "kr": turned[1]}, want, ("a", "b"))
