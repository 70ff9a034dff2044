"""onnxruntime's Attention, MultiHeadAttention and their packed and decoding forms, as matrix products and Softmax."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..builder import Builder
from ..heads import LOWEST, arange, join_heads, part, scores, split_heads, unsqueeze
from ..node import Node
from ..reuse import MICROSOFT
from ..rules import Unsupported, rule
from .contrib_activation import biased


@dataclass
class Heads:
    """Queries, keys and values as (B, N, length, D); past: how many keys precede the new ones, "" for none.

    size: D of queries, if it is known before the model runs.
    """

    query: str
    key: str
    value: str
    past: str = ""
    size: int | None = None


@rule("Attention", domain=MICROSOFT)
def attention(node: Node, b: Builder) -> None:
    """Projects x to queries, keys and values with one weight; past and present hold keys, then values."""
    x, weight, bias, mask, past, extra = (node.input(i) for i in range(6))
    _refuse(node, "do_rotary", "past_present_share_buffer")
    heads, sizes = node["num_heads"], node.get("qkv_hidden_sizes", ())
    b.declare(x, None, 3)
    projected = biased(b, b.op("MatMul", [x, weight]), bias)
    b.declare(projected, None, 3)
    names = [b.context.fresh(f"{b.node_name}/{n}") for n in ("query", "key", "value")]
    points = tuple(int(v) for v in np.cumsum(sizes)[:-1]) if len(sizes) else (3,)
    b.op("Slice", [projected], names, axis=2, slicePoints=points, sourceType="CAFFE" if len(sizes) else "TENSORFLOW")
    shape = b.shape(weight)
    width = sizes[0] if len(sizes) else None if shape is None or shape[-1] is None else shape[-1] // 3
    parts = Heads(*(split_heads(b, name, heads) for name in names), size=None if width is None else width // heads)
    if past:
        old = [b.op("Squeeze", [part(b, past, 0, i, i + 1)], squeezeDims=(0,)) for i in (0, 1)]
        parts = _with_past(b, parts, *old)
    if node.output(1):
        b.op("Pack", [parts.key, parts.value], [node.output(1)], axis=0)
    attend(node, b, parts, mask, extra)


def _refuse(node: Node, *names: str) -> None:
    """Raises Unsupported if one of some flags is set."""
    for name in names:
        if node.get(name, 0):
            raise Unsupported(f"{name}={node[name]}, which no CPU kernel of onnxruntime has; expected 0")


def _with_past(b: Builder, parts: Heads, key: str, value: str) -> Heads:
    """Earlier keys and values in front of the new ones."""
    joined = [b.op("Concat", [old, new], axis=2) for old, new in ((key, parts.key), (value, parts.value))]
    return Heads(parts.query, *joined, b.size(key, 2), parts.size)


@rule("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(node: Node, b: Builder) -> None:
    """Of projected queries, keys and values, which may come packed; keys and values may be whole caches of another layer."""
    mask, extra, key, value = (node.input(i) for i in (4, 5, 6, 7))
    if node.input(8) or node.input(9):
        raise Unsupported("caches of a fixed size (past_sequence_length, cache_indirection); export with growing ones")
    parts = _projected(node, b, node.input(3))
    if key and value:
        parts = _with_past(b, parts, key, value)
    _present(node, b, parts)
    attend(node, b, parts, mask, extra, node.output(3))


@rule("DecoderMaskedMultiHeadAttention", domain=MICROSOFT)
def decoder_masked_multi_head_attention(node: Node, b: Builder) -> None:
    """MultiHeadAttention of one new token, with another order of inputs; the cache grows, or is a buffer of a fixed size."""
    query, key, value, mask, extra, old_key, old_value, length, _, origin, bias = (node.input(i) for i in range(11))
    if origin:
        raise Unsupported("beams that share a cache (cache_indirection); export for one beam")
    shared = bool(node.get("past_present_share_buffer", 0)) and bool(old_key)
    parts = _projected(node, b, bias, [query, key, value])
    if shared:
        if not length:
            raise Unsupported("a shared buffer without past_sequence_length")
        at = b.reshape(length, ())
        after = b.binary("ADD", at, b.const(np.int32(1)))
        written = [b.op("Concat", [part(b, old, 2, 0, at), new, part(b, old, 2, after, 2**31 - 1)], axis=2)
                   for old, new in ((old_key, parts.key), (old_value, parts.value))]
        _present(node, b, Heads("", *written))
        parts = Heads(parts.query, *(part(b, w, 2, 0, after) for w in written), at, parts.size)
    else:
        if old_key:
            parts = _with_past(b, parts, old_key, old_value)
        _present(node, b, parts)
    attend(node, b, parts, mask, extra, node.output(3))


def _present(node: Node, b: Builder, parts: Heads) -> None:
    for index, name in ((1, parts.key), (2, parts.value)):
        if node.output(index):
            b.op("Identity", [name], [node.output(index)])


def _projected(node: Node, b: Builder, bias: str, inputs: list[str] | None = None) -> Heads:
    """Queries, keys and values of a node by heads, each plus its part of the bias."""
    query, key, value = inputs or [node.input(i) for i in range(3)]
    heads = node["num_heads"]
    if not key:
        return _packed(node, b, query, bias)
    if b.rank(key) is None:
        raise Unsupported("keys of unknown rank, which may be packed with values")
    if b.rank(key) == 5:  # (B, L, N, 2, D)
        key, value = (b.reshape(b.gather(key, b.const(np.int32(i)), 3), (0, 0, -1)) for i in (0, 1))
    whole, shape = b.rank(key) == 4, b.shape(query)
    size = None if shape is None or shape[-1] is None else shape[-1] // heads
    if bias:
        width, full = b.size(query, 2), b.size(bias, 0)
        biases = [part(b, bias, 0, 0, width), part(b, bias, 0, width, b.binary("ADD", width, width)),
                  part(b, bias, 0, b.binary("ADD", width, width), full)]
        query = b.binary("ADD", query, biases[0])
        if not whole:
            key, value = b.binary("ADD", key, biases[1]), b.binary("ADD", value, biases[2])
    states = [key, value] if whole else [split_heads(b, n, heads) for n in (key, value)]
    return Heads(split_heads(b, query, heads), *states, size=size)


def _packed(node: Node, b: Builder, packed: str, bias: str) -> Heads:
    """From (B, S, N, 3, D), or (B, S, 3 * N * D)."""
    heads, rank = node["num_heads"], b.rank(packed)
    if rank not in (3, 5):
        raise Unsupported(f"packed queries, keys and values of rank {'unknown' if rank is None else rank}; expected 3 or 5")
    names = [b.context.fresh(f"{b.node_name}/{n}") for n in ("query", "key", "value")]
    if rank == 3:
        b.op("Slice", [biased(b, packed, bias)], names, axis=2, slicePoints=(3,), sourceType="TENSORFLOW")
        return Heads(*(split_heads(b, name, heads) for name in names))
    for i, name in enumerate(names):
        b.gather(packed, b.const(np.int32(i)), 3, [name])
        if bias:
            third = b.gather(b.reshape(bias, (3, heads, -1)), b.const(np.int32(i)))
            names[i] = b.binary("ADD", name, third)
    return Heads(*(b.op("Permute", [name], dims=(0, 2, 1, 3)) for name in names))


def attend(node: Node, b: Builder, parts: Heads, mask: str, extra: str, shown: str = "") -> None:
    """softmax(scale * Q @ K' + masks + bias) @ V. shown: a name for what Softmax is applied to."""
    score = scores(b, parts.query, parts.key, node.get("scale", 0.0), parts.size)
    added = _added(node, b, parts, mask)
    for more in (added, extra):
        score = b.binary("ADD", score, more) if more else score
    if shown:
        b.op("Identity", [score], [shown])
    weights = b.op("Softmax", [score], axis=-1)
    join_heads(b, b.op("MatMul", [weights, parts.value]), node.outputs[:1])


def _added(node: Node, b: Builder, parts: Heads, mask: str) -> str:
    """What is added to the scores, so that it broadcasts to (B, N, S, T): mask_filter_value for padding, the lowest number for
    later keys, which wins."""
    hidden = b.number(node.get("mask_filter_value", -10000.0), parts.query)
    zero, added = b.number(0, parts.query), ""
    if mask:
        rank = b.rank(mask)
        if rank == 1:
            mask = _within(b, mask, b.size(parts.query, 0), b.size(parts.key, 2))
        elif rank not in (2, 3):
            raise Unsupported(f"a mask of rank {'unknown' if rank is None else rank}; expected 1, 2 or 3")
        seen = b.binary("GREATER", mask, b.const(np.int32(0)), dtype=np.bool_)
        added = b.op("Select", [seen, zero, hidden], dtype=b.dtype(parts.query))
        added = unsqueeze(b, added, 1) if rank == 3 else unsqueeze(b, added, 1, 2)
    if node.get("unidirectional", 0):
        rows, columns = arange(b, b.size(parts.query, 2)), arange(b, b.size(parts.key, 2))
        rows = b.binary("ADD", rows, parts.past) if parts.past else rows
        later = b.binary("GREATER", unsqueeze(b, columns, 0), unsqueeze(b, rows, 1), dtype=np.bool_)
        added = b.op("Select", [later, b.number(LOWEST, parts.query), added or zero], dtype=b.dtype(parts.query))
    return added


def _within(b: Builder, mask: str, batch: str, total: str) -> str:
    """The mask (B, T) of the keys before the ends (B), and not before the starts if they follow, as (2 * B)."""
    zeros = b.op("Fill", [b.reshape(batch, (1,)), b.const(np.int32(0))], dtype=np.int32)
    both = b.op("Concat", [mask, zeros], axis=0)
    ends, starts = part(b, both, 0, 0, batch), part(b, both, 0, batch, b.binary("ADD", batch, batch))
    places = unsqueeze(b, arange(b, total), 0)
    before = b.binary("LESS", places, unsqueeze(b, ends, 1), dtype=np.int32)
    behind = b.binary("GREATER_EQUAL", places, unsqueeze(b, starts, 1), dtype=np.int32)
    return b.binary("MUL", before, behind, dtype=np.int32)
