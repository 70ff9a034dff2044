"""Scaled dot-product attention of heads, as onnxruntime's attention operators share it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .builder import Builder

#: What onnxruntime adds to the scores of keys that come later than the query.
LOWEST = float(np.finfo(np.float32).min)


def split_heads(b: Builder, x: str, heads: int) -> str:
    """(B, S, heads * D) as (B, heads, S, D)."""
    return b.op("Permute", [b.reshape(x, (0, 0, heads, -1))], dims=(0, 2, 1, 3))


def join_heads(b: Builder, x: str, outputs: Sequence[str] | int = 1) -> str:
    """(B, heads, S, D) as (B, S, heads * D)."""
    return b.reshape(b.op("Permute", [x], dims=(0, 2, 1, 3)), (0, 0, -1), outputs)


def part(b: Builder, x: str, axis: int, begin: int | str, end: int | str) -> str:
    """x from begin to end along an axis; bounds are numbers or names of rank-0 integers."""
    bounds = [b.ints(v) if isinstance(v, int) else b.reshape(v, (1,)) for v in (begin, end)]
    cut = b.op("StridedSlice", [x, *bounds, b.ints(axis)], dtype=b.dtype(x), fromType=1)
    b.declare(cut, b.dtype(x), b.rank(x))
    return cut


def arange(b: Builder, count: str) -> str:
    """0 to count - 1; count is a rank-0 integer."""
    return b.op("Range", [b.const(np.int32(0)), count, b.const(np.int32(1))], dtype=np.int64)


def unsqueeze(b: Builder, x: str, *axes: int) -> str:
    """x with dimensions of size 1 at some axes of the result."""
    return b.op("Unsqueeze", [x], dtype=b.dtype(x), squeezeDims=axes)


def scores(b: Builder, query: str, key: str, scale: float, size: int | None, softcap: float = 0.0) -> str:
    """scale * query @ key' of (B, N, S, D) and (B, N, T, D); within softcap * (-1..1) if it is not 0.

    scale: 0 for 1 / sqrt(D). size: D, if it is known before the model runs.
    """
    if not scale and size:
        scale = size**-0.5
    if not scale:
        width = b.cast(b.size(query, 3), np.float32)
        query = b.binary("REALDIV", query, b.unary("SQRT", width))
    elif scale != 1:
        query = b.binary("MUL", query, b.number(scale, query))
    product = b.op("MatMul", [query, key], transposeB=True)
    if softcap:
        capped = b.unary("TANH", b.binary("MUL", product, b.number(1 / softcap, product)))
        product = b.binary("MUL", capped, b.number(softcap, product))
    return product


def masked(b: Builder, score: str, kept: str, value: float = LOWEST) -> str:
    """The scores where a mask holds, elsewhere a value that makes their probability 0."""
    return b.op("Select", [kept, score, b.number(value, score)], dtype=b.dtype(score))

