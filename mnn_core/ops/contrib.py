"""Operators of onnxruntime's domain com.microsoft that no other op says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._rules import FLOAT32, INT32, as_array, present, require_float
from .registry import Example, register


def _matrices(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    require_float(op, x)
    if x.rank < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{op}: {x} holds no square matrices")
    return [x.without_value()]


_MATRICES = np.linspace(-1, 1, 18, dtype=np.float32).reshape(2, 3, 3) ** 2 + np.eye(3, dtype=np.float32)


@register("com.microsoft.Inverse", infer=_matrices, examples=[
    Example({}, [_MATRICES]), Example({}, [_MATRICES[0]], name="one"), Example({}, [Spec((0, 2, 2), FLOAT32)], name="none"),
])
def inverse(op: Op, x: np.ndarray) -> np.ndarray:
    """The inverse of each matrix (.., n, n); of a singular one NaN."""
    flat = x.astype(np.float64).reshape(-1, *x.shape[-2:])
    out = np.full(flat.shape, np.nan)
    for matrix, target in zip(flat, out):
        try:
            target[...] = np.linalg.inv(matrix)
        except np.linalg.LinAlgError:
            continue
    return as_array(out.reshape(x.shape), x.dtype)


def _blocked(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    ids, scores = present(op, inputs), present(op, inputs, 1)
    if ids.rank != 2 or scores.rank != 2 or ids.shape[0] != scores.shape[0] or op["ngram_size"] < 1:
        raise ShapeError(f"{op}: expected tokens (batch, length), scores (batch, words) and an ngram_size of 1 or more; found "
                         f"{ids}, {scores} and {op['ngram_size']}")
    return [scores.without_value()]


@register("com.microsoft.NGramRepeatBlock", attrs={"ngram_size": 1}, infer=_blocked, examples=[
    Example({"ngram_size": 3}, [np.array([[0, 1, 2, 3, 1, 2], [0, 1, 0, 1, 0, 1]], np.int32), Spec((2, 5), FLOAT32)]),
    Example({"ngram_size": 1}, [np.array([[3, 1]], np.int32), Spec((1, 5), FLOAT32)], name="words"),
    Example({"ngram_size": 9}, [np.array([[3, 1]], np.int32), Spec((1, 5), FLOAT32)], name="short"),
])
def ngram_repeat_block(op: Op, ids: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Scores (batch, words), -inf for each word that would repeat a sequence of ngram_size tokens that ids hold already."""
    size, out = op["ngram_size"], scores.copy()
    for tokens, row in zip(ids, out):
        if len(tokens) < size:
            continue
        windows = np.lib.stride_tricks.sliding_window_view(tokens, size)
        same = (windows[:, : size - 1] == tokens[len(tokens) - size + 1:]).all(1)
        words = windows[same, -1]
        if words.size and not 0 <= words.min() <= words.max() < row.size:
            raise ShapeError(f"{op}: token {words.max()} of {row.size} words")
        row[words] = -np.inf
    return out


def _rotated(x: np.ndarray, bits: int) -> np.ndarray:
    return (x << np.uint32(bits)) | (x >> np.uint32(32 - bits))


def _hash(blocks: np.ndarray, seed: int) -> np.ndarray:
    """MurmurHash3_x86_32 of each row of 32-bit words."""
    with np.errstate(over="ignore"):
        h = np.full(len(blocks), seed, np.uint32)
        for k in blocks.T:
            h = h ^ (_rotated(k * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593))
            h = _rotated(h, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        h = h ^ np.uint32(4 * blocks.shape[1])
        h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    hashed: np.ndarray = h ^ (h >> np.uint32(16))
    return hashed


@register("com.microsoft.MurmurHash3", attrs={"seed": 0, "positive": 1, "width": 4},
          infer=lambda op, inputs: [Spec(present(op, inputs).shape, INT32)], examples=[
    Example({}, [np.array([[3, 4], [-5, 0]], np.int32)]), Example({"width": 8, "seed": 7}, [np.array([3, -4], np.int32)]),
])
def murmur_hash(op: Op, x: np.ndarray) -> np.ndarray:
    """The 32-bit hash of each number, as that of 8 bytes with width 8; as int32, which keeps the bits of unsigned ones."""
    if op["width"] == 8:
        words = np.ascontiguousarray(x.reshape(-1), np.int64).view(np.uint32).reshape(-1, 2)
    else:
        words = np.ascontiguousarray(x.reshape(-1)).view(np.uint32).reshape(-1, 1)
    return _hash(words, op["seed"]).view(np.int32).reshape(x.shape)
