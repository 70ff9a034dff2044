"""onnxruntime's GroupQueryAttention: heads of queries share keys, which are kept in a cache; positions may be rotary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..builder import Builder
from ..heads import arange, join_heads, masked, part, scores, unsqueeze
from ..node import Node
from ..reuse import MICROSOFT
from ..rules import Unsupported, rule
from .contrib_rotary import rotate


@dataclass
class _Step:
    """What the parts of one call share. Names of tensors: the numbers of new and of all positions (rank 0), and of positions
    that were cached before, of each batch entry (B)."""

    length: str
    total: str
    cached: str


@rule("GroupQueryAttention", domain=MICROSOFT)
def group_query_attention(node: Node, b: Builder) -> None:
    """Outputs are y (B, S, N * D), the caches with the new keys and values in their places, and the scores if asked for."""
    _check(node)
    query, key, value = _projections(node, b)
    length = b.size(node.inputs[0], 1)
    ends = b.binary("ADD", b.cast(node.inputs[5], np.int32), b.const(np.int32(1)))
    cached = b.binary("MAXIMUM", b.binary("SUB", ends, length), b.const(np.int32(0)))
    step = _Step(length, b.reshape(node.inputs[6], ()), cached)
    query, key = (_normalised(node, b, x, i) for x, i in ((query, 14), (key, 15)))
    if node.get("do_rotary", 0):
        query, key = _rotated(node, b, step, query, key)
    query, key, value = (b.op("Permute", [x], dims=(0, 2, 1, 3)) for x in (query, key, value))
    if node.input(3):
        rows = _rows(node, b, step, node.inputs[3])
        key, value = (_cache(b, step, x, node.inputs[3 + i], node.output(1 + i), rows) for i, x in enumerate((key, value)))
    else:
        for x, present in ((key, node.output(1)), (value, node.output(2))):
            if present:
                b.op("Identity", [x], [present])
    _attend(node, b, step, query, key, value)


def _check(node: Node) -> None:
    """Raises Unsupported for what only other processors have."""
    if node.input(12) or node.input(13) or any(node.get(f"{n}_quant_type", "NONE") != "NONE" for n in "kv"):
        raise Unsupported("a quantised cache (k_quant_type, v_quant_type); export with a float one")
    if node.get("sliding_window_cache", 0) or node.input(16):
        raise Unsupported("sliding_window_cache and query_seqlens; export with a cache that holds all positions")


def _projections(node: Node, b: Builder) -> list[str]:
    """Queries, keys and values as (B, S, heads, D)."""
    heads, shared = node["num_heads"], node["kv_num_heads"]
    if heads % shared:
        raise Unsupported(f"{heads} heads of queries for {shared} of keys; expected a multiple")
    if node.input(1):
        return [b.reshape(x, (0, 0, n, -1)) for x, n in zip(node.inputs[:3], (heads, shared, shared))]
    names = [b.context.fresh(f"{b.node_name}/{n}") for n in ("query", "key", "value")]
    packed = b.reshape(node.inputs[0], (0, 0, heads + 2 * shared, -1))
    b.op("Slice", [packed], names, axis=2, slicePoints=(heads, heads + shared), sourceType="CAFFE")
    for name in names:
        b.declare(name, b.dtype(node.inputs[0]), 4)
    return names


def _head_size(node: Node, b: Builder) -> int | None:
    """The size of a head, if it is known before the model runs."""
    width = (b.shape(node.inputs[0]) or (None,))[-1]
    rows = node["num_heads"] + (0 if node.input(1) else 2 * node["kv_num_heads"])
    return None if width is None else width // rows


def _normalised(node: Node, b: Builder, x: str, index: int) -> str:
    """x by its root mean square, times a weight, if the node has one."""
    weight = node.input(index)
    if not weight:
        return x
    own = "q_norm_epsilon" if index == 14 else "k_norm_epsilon"
    epsilon = node.get(own, 0.0) or node.get("qk_norm_epsilon", 1e-6)
    y = b.op("LayerNorm", [x], axis=(-1,), epsilon=epsilon, useRMSNorm=True)
    return b.binary("MUL", y, weight)


def _rotated(node: Node, b: Builder, step: _Step, query: str, key: str) -> tuple[str, str]:
    """Positions follow those in the cache; given ones count as they are, of a prompt only the first."""
    tables, given = node.inputs[7:9], node.input(9)
    steps = unsqueeze(b, arange(b, step.length), 0)
    positions = b.binary("ADD", unsqueeze(b, step.cached, 1), steps)
    if given:
        first = b.gather(b.reshape(given, (-1,)), b.const(np.int32(0)))
        prompt = b.binary("EQUAL", step.length, step.total, dtype=np.bool_)
        positions = b.op("Select", [prompt, b.binary("ADD", first, steps), given], dtype=np.int64)
    else:  # those of padding may lie behind the end of the tables
        last = b.binary("SUB", b.size(tables[0], 0), b.const(np.int32(1)))
        positions = b.binary("MINIMUM", positions, last)
    angles = [unsqueeze(b, b.gather(table, positions), 2) for table in tables]
    table, interleaved = b.shape(tables[0]), bool(node.get("rotary_interleaved", 0))
    if table is None or table[-1] is None:
        raise Unsupported("cos_cache of unknown width")
    width = None if _head_size(node, b) == 2 * table[-1] else 2 * table[-1]
    for x in (query, key):
        b.declare(x, None, 4)
    return rotate(b, query, *angles, width, interleaved), rotate(b, key, *angles, width, interleaved)


def _rows(node: Node, b: Builder, step: _Step, past: str) -> str:
    """Which rows of [past, new], those of all heads of all batch entries one after the other, make the cache (B, K, length).

    New rows come behind those in the cache of each batch entry. The cache is as long as it was if it has room for them.
    """
    old = b.size(past, 2)
    size = b.binary("ADD", old, step.length)
    places = unsqueeze(b, arange(b, b.binary("MAXIMUM", step.total, old)), 0)
    cached = unsqueeze(b, step.cached, 1)
    newer = b.binary("SUB", places, cached)
    inside = b.binary("MUL", b.binary("GREATER_EQUAL", newer, b.const(np.int32(0)), dtype=np.int32),
                      b.binary("LESS", newer, step.length, dtype=np.int32), dtype=np.int32)
    last = b.binary("SUB", size, b.const(np.int32(1)))
    kept = b.binary("MINIMUM", b.binary("ADD", newer, cached), last)  # places again, but for each entry: MNN repeats no branch
    picked = b.op("Select", [inside, b.binary("ADD", newer, old), kept], dtype=np.int64)
    heads = node["kv_num_heads"]
    starts = arange(b, b.binary("MUL", b.size(past, 0), b.const(np.int32(heads))))
    starts = b.binary("MUL", b.reshape(starts, (-1, heads, 1)), size)
    return b.binary("ADD", starts, unsqueeze(b, picked, 1))


def _cache(b: Builder, step: _Step, new: str, past: str, present: str, rows: str) -> str:
    """The keys or values (B, K, total, D) to attend to; the cache that is written out may be longer."""
    both = b.op("Concat", [past, new], axis=2)
    flat = b.op("Reshape", [both, b.op("Concat", [b.ints(-1), b.reshape(b.size(both, 3), (1,))], axis=0)])
    whole = b.gather(flat, rows, 0, [present] if present else 1)
    b.declare(whole, b.dtype(new), 4)
    return part(b, whole, 2, 0, step.total)


def _attend(node: Node, b: Builder, step: _Step, query: str, key: str, value: str) -> None:
    heads, shared, sink = node["num_heads"], node["kv_num_heads"], node.input(11)
    grouped = heads != shared

    def split(x: str) -> str:
        return b.reshape(x, (0, heads, -1, 0)) if grouped else x

    def joined(x: str) -> str:
        return b.reshape(x, (0, shared, -1, 0)) if grouped else x

    score = split(scores(b, joined(query), key, node.get("scale", 0.0), _head_size(node, b), node.get("softcap", 0.0)))
    if node.input(10):
        score = b.binary("ADD", score, node.input(10))
    score = masked(b, score, _seen(node, b, step, key))
    b.declare(score, b.dtype(query), 4)
    shown = node.get("qk_output", 0) if node.output(3) else 0
    if shown == 1:
        b.op("Identity", [score], [node.output(3)])
    if sink or node.get("smooth_softmax", -1) == 1:
        column = b.binary("MUL", part(b, score, 3, 0, 1), b.number(0, score))
        if sink:
            column = b.binary("ADD", column, b.reshape(sink, (-1, 1, 1)))
        weights = b.op("Softmax", [b.op("Concat", [score, column], axis=3)], axis=-1)
        weights = part(b, weights, 3, 0, b.size(score, 3))
    else:
        weights = b.op("Softmax", [score], axis=-1)
    if shown == 2:
        b.op("Identity", [weights], [node.output(3)])
    join_heads(b, split(b.op("MatMul", [joined(weights), value])), node.outputs[:1])


def _seen(node: Node, b: Builder, step: _Step, key: str) -> str:
    """(B, 1, S, T): keys up to the query's own position, within the window; without `causal` all that are there."""
    columns, window = arange(b, b.size(key, 2)), node.get("local_window_size", -1)
    if not node.get("causal", 1):
        ends = b.binary("ADD", step.cached, step.length)
        return b.binary("LESS", columns, b.reshape(ends, (-1, 1, 1, 1)), dtype=np.bool_)
    rows = b.binary("ADD", unsqueeze(b, step.cached, 1), unsqueeze(b, arange(b, step.length), 0))
    rows = unsqueeze(b, rows, 1, 3)
    seen = b.binary("LESS_EQUAL", columns, rows, dtype=np.bool_)
    if window < 0:
        return seen
    near = b.binary("GREATER", columns, b.binary("SUB", rows, b.const(np.int32(window))), dtype=np.int32)
    return b.binary("MUL", seen, near, dtype=np.bool_)
