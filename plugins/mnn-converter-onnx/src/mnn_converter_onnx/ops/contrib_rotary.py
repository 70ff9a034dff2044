"""Rotary position embedding, as onnxruntime's operators have it."""

from __future__ import annotations

import numpy as np

from ..builder import Builder
from ..node import Node
from ..reuse import MICROSOFT
from ..rules import Unsupported, rule


def rotate(b: Builder, x: str, cosine: str, sine: str, width: int | None, interleaved: bool,
           outputs: list[str] | int = 1) -> str:
    """x turned by angles. x is (..., D), cosine and sine broadcast to (..., width / 2).

    width: how many of the D numbers are turned, None for all. interleaved: pairs are neighbours, not half the width apart.
    """
    rest = ""
    if width is not None:
        x, rest = _cut(b, x, width), _cut(b, x, width, after=True)
    if interleaved:
        rank = b.rank(x)
        if rank is None:
            raise Unsupported("interleaved rotation of a tensor of unknown rank")
        pairs = b.reshape(x, (*[0] * (rank - 1), -1, 2))
        first, second = (b.gather(pairs, b.const(np.int32(i)), rank) for i in (0, 1))
    else:
        first, second = (b.context.fresh(f"{b.node_name}/half") for _ in range(2))
        b.op("Slice", [x], [first, second], axis=-1, slicePoints=(2,), sourceType="TENSORFLOW")
    real = b.binary("SUB", b.binary("MUL", first, cosine), b.binary("MUL", second, sine))
    imaginary = b.binary("ADD", b.binary("MUL", first, sine), b.binary("MUL", second, cosine))
    if interleaved:
        turned = b.reshape(b.op("Pack", [real, imaginary], axis=-1), (*[0] * (rank - 1), -1), 1 if rest else outputs)
    else:
        turned = b.op("Concat", [real, imaginary], 1 if rest else outputs, axis=-1)
    return b.op("Concat", [turned, rest], outputs, axis=-1) if rest else turned


def _cut(b: Builder, x: str, at: int, after: bool = False) -> str:
    """The numbers before (or from) a place in the last dimension."""
    bounds = (at, 2**31 - 1) if after else (0, at)
    cut = b.op("StridedSlice", [x, b.ints(bounds[0]), b.ints(bounds[1]), b.ints(-1)], fromType=1)
    b.declare(cut, b.dtype(x), b.rank(x))
    return cut


@rule("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(node: Node, b: Builder) -> None:
    """x is (B, S, N * D) or (B, N, S, D); positions are (B, S), or the first one of consecutive ones."""
    four = b.rank(node.inputs[0]) == 4
    _embed(node, b, at_positions(b, node.inputs[0], node.inputs[1], tuple(node.inputs[2:4]), four))


@rule("MRotaryEmbedding", domain=MICROSOFT)
def multimodal_rotary_embedding(node: Node, b: Builder) -> None:
    """Three positions (3, B, S) of each token, for time, height and width: each turns its own columns of the tables."""
    sections, layout, axis = node["mrope_section"], node.get("mrope_layout", 0), 1 if b.rank(node.inputs[0]) == 4 else 2
    if len(sections) != 3 or min(sections) < 0 or layout not in (0, 1):
        raise Unsupported(f"mrope_section {list(sections)} with mrope_layout {layout}; expected 3 lengths, and 0 or 1")
    columns = np.repeat(np.arange(3), sections)
    if layout == 1:
        columns = np.zeros(sum(sections), np.int64)
        for stream in (1, 2):
            columns[stream : sections[stream] * 3 : 3] = stream
    picks = b.const((columns == np.arange(3)[:, None]).astype(np.float32).reshape(3, 1, 1, -1))
    angles = []
    for table in node.inputs[2:4]:
        own = b.binary("MUL", b.gather(table, node.inputs[1]), picks)
        total = b.op("Reduction", [own], operation="SUM", dim=(0,), keepDims=False)
        angles.append(b.op("Unsqueeze", [total], squeezeDims=(axis,)))
    _embed(node, b, angles)


def _embed(node: Node, b: Builder, angles: list[str]) -> None:
    """Turns x, whose heads are split first if need be, by the cosines and sines."""
    x, cosines = node.inputs[0], node.inputs[2]
    heads, width = node.get("num_heads", 0), node.get("rotary_embedding_dim", 0)
    rank, factor = b.rank(x), node.get("scale", 1.0)
    table = b.shape(cosines)
    if rank not in (3, 4):
        raise Unsupported(f"an input of rank {'unknown' if rank is None else rank}; expected 3 or 4")
    if rank == 3 and not heads:  # the tables are as wide as half a head
        if table is None or table[-1] is None:
            raise Unsupported("neither num_heads nor the width of cos_cache is known")
        x = b.reshape(x, (0, 0, -1, 2 * table[-1]))
    elif rank == 3:
        x = b.reshape(x, (0, 0, heads, -1))
    b.declare(x, None, 4)
    if factor != 1:
        raise Unsupported(f"scale {factor}; onnxruntime does not apply it either: export with 1")
    turned = rotate(b, x, *angles, width or None, bool(node.get("interleaved", 0)), 1 if rank == 3 else node.outputs)
    if rank == 3:
        b.op("Reshape", [turned, b.shape_of(node.inputs[0])], node.outputs, dtype=b.dtype(x))


def at_positions(b: Builder, x: str, positions: str, tables: tuple[str, ...], heads_first: bool) -> list[str]:
    """Rows of tables for positions (B, S), as (B, S, 1, width) or (B, 1, S, width) if heads come first.

    A vector of one position stands for the first of S consecutive ones; x is (B, S, ..), or (B, N, S, ..).
    """
    rank = b.rank(positions)
    if rank is None:
        raise Unsupported("positions of unknown rank")
    if rank == 1:
        count = b.op("Range", [b.const(np.int32(0)), b.size(x, 2 if heads_first else 1), b.const(np.int32(1))], dtype=np.int64)
        positions = b.op("Unsqueeze", [b.binary("ADD", count, positions)], squeezeDims=(0,))
    axis = 1 if heads_first else 2
    return [b.op("Unsqueeze", [b.gather(table, positions)], squeezeDims=(axis,)) for table in tables]


@rule("GemmaRotaryEmbedding", domain=MICROSOFT)
def gemma_rotary_embedding(node: Node, b: Builder) -> None:
    """x * cos(angle) + turned x * sin(angle), of queries and of keys, for angles (B, S, D)."""
    angles, *states = node.inputs[:5]
    cosine, sine = (b.op("Unsqueeze", [b.unary(kind, angles)], squeezeDims=(1,)) for kind in ("COS", "SIN"))
    for output, x, turned in zip(node.outputs, states[::2], states[1::2]):
        if output:
            b.binary("ADD", b.binary("MUL", x, cosine), b.binary("MUL", turned, sine), [output])
