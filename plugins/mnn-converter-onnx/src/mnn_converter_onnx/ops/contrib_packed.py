"""onnxruntime's attention of batches whose padding is left out: rows are put in their places, attended to, and picked out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..builder import Builder
from ..heads import part, split_heads, unsqueeze
from ..node import Node
from ..reuse import MICROSOFT
from ..rules import Unsupported, rule
from .contrib_activation import biased
from .contrib_attention import Heads, attend


@rule("PackedAttention", domain=MICROSOFT)
def packed_attention(node: Node, b: Builder) -> None:
    """Attention of tokens (T, H)."""
    x, weight, bias, offsets, ends = node.inputs[:5]
    sizes = node.get("qkv_hidden_sizes", ())
    names = [b.context.fresh(f"{b.node_name}/{n}") for n in ("query", "key", "value")]
    points = tuple(int(v) for v in np.cumsum(sizes)[:-1]) if len(sizes) else (3,)
    b.op("Slice", [biased(b, b.op("MatMul", [x, weight]), bias)], names, axis=1, slicePoints=points,
         sourceType="CAFFE" if len(sizes) else "TENSORFLOW")
    _attend(node, b, names, offsets, ends, node.input(5))


@rule("PackedMultiHeadAttention", domain=MICROSOFT)
def packed_multi_head_attention(node: Node, b: Builder) -> None:
    """MultiHeadAttention of tokens: queries (T, H), keys and values, or all of them as (T, N, 3, D)."""
    query, key, value, bias, offsets, ends, extra = (node.input(i) for i in range(7))
    rank = b.rank(query)
    if not key:
        if rank != 4:
            raise Unsupported(f"packed queries of rank {'unknown' if rank is None else rank}; expected 4")
        parts = [b.reshape(b.gather(query, b.const(np.int32(i)), 2), (0, -1)) for i in range(3)]
    else:
        parts = [query, key, value]
    if bias:
        width, full = b.size(parts[0], 1), b.size(bias, 0)
        middle = b.binary("ADD", width, width)
        cuts = [(0, width), (width, middle), (middle, full)]
        parts = [b.binary("ADD", x, part(b, bias, 0, *cut)) for x, cut in zip(parts, cuts)]
    _attend(node, b, parts, offsets, ends, extra)


def _attend(node: Node, b: Builder, parts: list[str], offsets: str, ends: str, extra: str) -> None:
    """parts: queries, keys and values (T, width). offsets (B, S): first the places of tokens in the padded batch, then of
    padding; ends (B + 1): how many tokens come before each sequence."""
    flat = b.reshape(offsets, (-1,))
    places = part(b, flat, 0, 0, b.size(parts[0], 0))
    shape, total = b.shape_of(offsets), b.reshape(b.size(flat, 0), (1,))
    heads = []
    for x in parts:
        width = b.reshape(b.size(x, 1), (1,))
        padded = b.op("Concat", [total, width], axis=0)
        spread = b.op("ScatterNd", [unsqueeze(b, places, 1), x, padded], dtype=b.dtype(x))
        spread = b.op("Reshape", [spread, b.op("Concat", [shape, width], axis=0)], dtype=b.dtype(x))
        heads.append(split_heads(b, spread, node["num_heads"]))
    lengths = b.binary("SUB", part(b, ends, 0, 1, 2**31 - 1), part(b, ends, 0, 0, -1))
    b.declare(lengths, np.dtype(np.int32), 1)
    made = b.context.fresh(f"{b.node_name}/padded")
    attend(replace(node, outputs=[made]), b, Heads(*heads), lengths, extra)
    width = b.reshape(b.size(made, 2), (1,))
    rows = b.op("Reshape", [made, b.op("Concat", [b.ints(-1), width], axis=0)], dtype=b.dtype(parts[0]))
    b.gather(rows, places, 0, node.outputs)
