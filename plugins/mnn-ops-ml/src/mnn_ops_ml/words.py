"""TfIdfVectorizer: counts of n-grams, weighted."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from mnn_core import Op, ShapeError, register_op

F32 = np.dtype(np.float32)


def _grams(pool: list[Any], starts: list[int]) -> dict[tuple[Any, ...], int]:
    """n-gram -> its number; those of length n lie in the pool from starts[n - 1] to starts[n]."""
    found: dict[tuple[Any, ...], int] = {}
    for n, (first, last) in enumerate(zip(starts, [*starts[1:], len(pool)]), 1):
        for at in range(first, last - n + 1, n):
            found.setdefault(tuple(pool[at:at + n]), len(found))
    return found


@register_op("onnx.TfIdfVectorizer", dynamic=True, attrs={
    "mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": (), "ngram_indexes": (),
    "weights": ()})
def tf_idf(op: Op, x: np.ndarray, pool: np.ndarray) -> np.ndarray:
    """How often each n-gram of the pool occurs in x [C] or [N, C]: [width] or [N, width], float32.

    n-grams skip up to `max_skip_count` items between theirs. mode TF: counts; IDF: 1 or 0, times the weight; TFIDF: counts
    times the weight. ngram_counts: where the n-grams of each length begin in the pool; ngram_indexes: their columns.
    """
    if x.ndim not in (1, 2) or op["mode"] not in ("TF", "IDF", "TFIDF"):
        raise ShapeError(f"{op}: x of shape {list(x.shape)}, mode {op['mode']!r}; expected [C] or [N, C], and TF, IDF or TFIDF")
    columns = [int(i) for i in op["ngram_indexes"]]
    grams = _grams(pool.reshape(-1).tolist(), [int(n) for n in op["ngram_counts"]])
    weights = np.asarray(op["weights"] or [1.0] * len(columns), np.float64)
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    out = np.zeros((len(rows), max(columns, default=-1) + 1))
    for row, items in enumerate(rows.tolist()):
        for gram, times in _counted(items, op).items():
            number = grams.get(gram)
            if number is not None:
                out[row, columns[number]] += {"TF": times, "IDF": weights[number], "TFIDF": times * weights[number]}[op["mode"]]
    return out.astype(F32).reshape(-1) if x.ndim == 1 else out.astype(F32)


def _counted(items: list[Any], op: Op) -> Counter[tuple[Any, ...]]:
    """Every n-gram of the lengths asked for, at every distance that is allowed. Single items have no distance."""
    found: Counter[tuple[Any, ...]] = Counter()
    for n in range(op["min_gram_length"], op["max_gram_length"] + 1):
        for step in range(1, (op["max_skip_count"] if n > 1 else 0) + 2):
            for start in range(len(items) - (n - 1) * step):
                found[tuple(items[start:start + (n - 1) * step + 1:step])] += 1
    return found
