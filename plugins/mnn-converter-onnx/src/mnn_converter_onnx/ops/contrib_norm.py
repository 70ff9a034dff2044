"""onnxruntime's normalisations: with a sum in front, of embeddings, and by root mean square."""

from __future__ import annotations

import numpy as np

from ..builder import Builder
from ..node import Node
from ..reuse import MICROSOFT, standard
from ..rules import Unsupported, rule
from .contrib_activation import biased

_EPSILON = 1e-12


@rule("SimplifiedLayerNormalization")
@rule("SimplifiedLayerNormalization", domain=MICROSOFT)
def simplified(node: Node, b: Builder) -> None:
    """RMSNormalization; its second output is the inverse root mean square."""
    _root_mean_square(node, b, node.inputs[0], node.inputs[1], [node.output(0), node.output(1)], node.get("epsilon", 1e-5),
                      node.get("axis", -1))


@rule("LayerNormalization", domain=MICROSOFT)
def layer_normalization(node: Node, b: Builder) -> None:
    standard(b, "LayerNormalization", node.inputs, node.outputs, 17, **node.attrs)


def _root_mean_square(node: Node, b: Builder, x: str, scale: str, outputs: list[str], epsilon: float, axis: int) -> None:
    if not outputs[1]:
        standard(b, "RMSNormalization", [x, scale], outputs[:1], 23, axis=axis, epsilon=epsilon)
        return
    rank = b.rank(x)
    if axis >= 0 and rank is None:
        raise Unsupported(f"the inverse root mean square over the axes from {axis} on, of a tensor of unknown rank")
    axes = tuple(range(axis if axis < 0 else axis - (rank or 0), 0))
    mean = b.op("Reduction", [b.unary("SQUARE", x)], operation="MEAN", dim=axes, keepDims=True)
    inverse = b.unary("RSQRT", b.binary("ADD", mean, b.number(epsilon, x)), [outputs[1]])
    b.binary("MUL", b.binary("MUL", x, inverse), scale, outputs[:1])


@rule("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(node: Node, b: Builder) -> None:
    """Normalises input + skip + bias; outputs are y, mean, inverse deviation and that sum."""
    total = _sum(node, b, node.input(4))
    outputs = [node.output(i) for i in range(3)]
    while not outputs[-1] and len(outputs) > 1:
        outputs.pop()
    standard(b, "LayerNormalization", [total, node.inputs[2], node.input(3)], outputs, 17, axis=-1,
             epsilon=node.get("epsilon", _EPSILON))


@rule("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified(node: Node, b: Builder) -> None:
    """The same by root mean square, which has no beta and no mean."""
    if node.output(1):
        raise Unsupported("the mean of SkipSimplifiedLayerNormalization, which does not calculate one")
    total = _sum(node, b, node.input(3))
    _root_mean_square(node, b, total, node.inputs[2], [node.output(0), node.output(2)], node.get("epsilon", _EPSILON), -1)


def _sum(node: Node, b: Builder, bias: str) -> str:
    """input + skip + bias, which is the fourth output."""
    x, target = node.inputs[0], [node.output(3)] if node.output(3) else 1
    total = b.binary("ADD", x, node.inputs[1], 1 if bias else target)
    total = b.binary("ADD", total, bias, target) if bias else total
    b.declare(total, b.dtype(x), b.rank(x))
    return total


@rule("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_normalization(node: Node, b: Builder) -> None:
    """Normalises the sum of the embeddings of words, positions and segments.

    Outputs are y, the number of words that the mask keeps (0 without a mask) and the sum.
    """
    ids, segments, words, positions, kinds, gamma, beta, mask, places = (node.input(i) for i in range(9))
    total = b.gather(words, ids)
    if not places:
        length = b.size(ids, 1)
        places = b.op("Range", [b.const(np.int32(0)), length, b.const(np.int32(1))], dtype=np.int64)
    more = kinds and segments
    target = [node.output(2)] if node.output(2) else 1
    total = b.binary("ADD", total, b.gather(positions, places), 1 if more else target)
    if more:
        total = b.binary("ADD", total, b.gather(kinds, segments), target)
    b.declare(total, b.dtype(words), 3)
    standard(b, "LayerNormalization", [total, gamma, beta], node.outputs[:1], 17, axis=-1,
             epsilon=node.get("epsilon", _EPSILON))
    if node.output(1) and mask:
        kept = b.binary("EQUAL", mask, b.const(np.int32(1)), dtype=np.int32)
        b.op("Reduction", [kept], [node.output(1)], dtype=np.int32, operation="SUM", dim=(1,), keepDims=False)
    elif node.output(1):
        b.op("Fill", [b.reshape(b.size(ids, 0), (1,)), b.const(np.int32(0))], [node.output(1)], dtype=np.int32)
    if node.output(1):
        b.declare(node.output(1), None, 1)


@rule("GroupNorm", domain=MICROSOFT)
def group_norm(node: Node, b: Builder) -> None:
    """Images are channels last unless told otherwise; an optional SiLU follows."""
    x = _to_planes(node, b, node.inputs[0])
    _group_norm(node, b, x, node.outputs[:1])


@rule("SkipGroupNorm", domain=MICROSOFT)
def skip_group_norm(node: Node, b: Builder) -> None:
    """GroupNorm of x + skip + bias; skip may be one number for each channel. The second output is that sum."""
    x, skip, bias = _to_planes(node, b, node.inputs[0]), node.inputs[3], node.input(4)
    rank = b.rank(skip)
    if rank not in (2, 4):
        raise Unsupported(f"skip of rank {'unknown' if rank is None else rank}; expected 2 or 4")
    skip = _to_planes(node, b, skip) if rank == 4 else b.reshape(skip, (0, -1, 1, 1))
    total = biased(b, b.binary("ADD", x, skip), b.reshape(bias, (-1, 1, 1)) if bias else "")
    b.declare(total, b.dtype(x), 4)
    if node.output(1):
        _from_planes(node, b, total, [node.output(1)])
    _group_norm(node, b, total, node.outputs[:1])


def _group_norm(node: Node, b: Builder, x: str, outputs: list[str]) -> None:
    kind = node.get("activation", 0)
    if kind not in (0, 1):
        raise Unsupported(f"activation {kind}; expected 0 for none or 1 for SiLU")
    b.declare(x, None, 4)
    y = standard(b, "GroupNormalization", [x, *node.inputs[1:3]], 1, 21, num_groups=node["groups"],
                 epsilon=node.get("epsilon", 1e-5))
    _from_planes(node, b, b.unary("SILU", y) if kind else y, outputs)


def _to_planes(node: Node, b: Builder, x: str) -> str:
    return b.op("Permute", [x], dims=(0, 3, 1, 2)) if node.get("channels_last", 1) else x


def _from_planes(node: Node, b: Builder, x: str, outputs: list[str]) -> None:
    if node.get("channels_last", 1):
        b.op("Permute", [x], outputs, dims=(0, 2, 3, 1))
    else:
        b.op("Identity", [x], outputs)
