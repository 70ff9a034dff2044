"""Operators of com.microsoft that are standard ones in another version, and small ones that are a few ops."""

from __future__ import annotations

import numpy as np

from ..builder import Builder
from ..heads import arange, split_heads, unsqueeze
from ..node import Node
from ..reuse import MICROSOFT, standard
from ..rules import Unsupported, rule, wrong

#: Operators that mean what the standard one does, in a version of the operator set.
_STANDARD = {"Trilu": 14, "GridSample": 16, "Pad": 13, "GatherND": 12}


@rule(*_STANDARD, domain=MICROSOFT)
def as_standard(node: Node, b: Builder) -> None:
    """As the standard operator."""
    standard(b, node.op_type, node.inputs, node.outputs, _STANDARD[node.op_type], **node.attrs)


@rule("SampleOp", domain=MICROSOFT)
def sample(node: Node, b: Builder) -> None:
    """A copy."""
    b.op("Identity", node.inputs, node.outputs)


@rule("Range", domain=MICROSOFT)
def range_(node: Node, b: Builder) -> None:
    """Bounds may be vectors of one number; the step is 1 if absent."""
    start, limit = (b.reshape(n, ()) for n in node.inputs[:2])
    step = b.reshape(node.input(2), ()) if node.input(2) else b.number(1, start)
    b.declare(b.op("Range", [start, limit, step], node.outputs, dtype=b.dtype(node.inputs[0])), None, 1)


@rule("ExpandDims", domain=MICROSOFT)
def expand_dims(node: Node, b: Builder) -> None:
    axis = b.value(node.inputs[1])
    if axis is None or axis.size != 1:
        raise Unsupported("an axis that is not one constant number")
    b.op("Unsqueeze", node.inputs[:1], node.outputs, squeezeDims=(int(axis.reshape(-1)[0]),))


@rule("Unique", domain=MICROSOFT)
def unique(node: Node, b: Builder) -> None:
    """Values in the order of their first occurrence, the index of each element's value, and counts."""
    standard(b, "Unique", node.inputs[:1], [node.output(0), "", node.output(1), node.output(2)], 11, sorted=0)


@rule("TorchEmbedding", domain=MICROSOFT)
def torch_embedding(node: Node, b: Builder) -> None:
    """Rows of a table; what only matters for training is ignored."""
    standard(b, "Gather", node.inputs[:2], node.outputs, 13, axis=0)


@rule("Inverse", domain=MICROSOFT)
def inverse(node: Node, b: Builder) -> None:
    b.declare(b.op("com.microsoft.Inverse", node.inputs, node.outputs), None, b.rank(node.inputs[0]))


@rule("NGramRepeatBlock", domain=MICROSOFT)
def ngram_repeat_block(node: Node, b: Builder) -> None:
    b.op("com.microsoft.NGramRepeatBlock", node.inputs[:2], node.outputs, dtype=b.dtype(node.inputs[1]),
         ngram_size=node["ngram_size"])


@rule("MurmurHash3", domain=MICROSOFT)
def murmur_hash(node: Node, b: Builder) -> None:
    """Of numbers as they are declared; those that are kept in fewer bits than that cannot be hashed."""
    x, dtype = node.inputs[0], b.dtype(node.inputs[0])
    if dtype not in (np.int32, np.uint32, np.int64, np.uint64, np.float32):
        raise Unsupported(f"hashes of {dtype}, which are not kept in all their bits; expected int32, int64 or float32")
    positive = bool(node.get("positive", 1))
    b.op("com.microsoft.MurmurHash3", [x], node.outputs, dtype=np.uint32 if positive else np.int32, seed=node.get("seed", 0),
         positive=int(positive), width=dtype.itemsize)


@rule("CDist", domain=MICROSOFT)
def cdist(node: Node, b: Builder) -> None:
    """Distances of the rows (M, N) of A to those (K, N) of B."""
    metric = node.get("metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        raise wrong("metric", metric, "'euclidean' or 'sqeuclidean'")
    apart = b.binary("SUB", unsqueeze(b, node.inputs[0], 1), unsqueeze(b, node.inputs[1], 0))
    squares, root = b.unary("SQUARE", apart), metric == "euclidean"
    total = b.op("Reduction", [squares], 1 if root else node.outputs, operation="SUM", dim=(2,), keepDims=False)
    if root:
        b.unary("SQRT", total, node.outputs)


@rule("CropAndResize", domain=MICROSOFT)
def crop_and_resize(node: Node, b: Builder) -> None:
    """MNN's takes and gives channels last."""
    methods = {"bilinear": "BILINEAR", "nearest": "NEAREST"}
    mode = node.get("mode", "bilinear")
    if mode not in methods:
        raise wrong("mode", mode, "'bilinear' or 'nearest'")
    image = b.op("Permute", [node.inputs[0]], dims=(0, 2, 3, 1))
    crops = b.op("CropAndResize", [image, *node.inputs[1:4]], method=methods[mode],
                 extrapolationValue=float(node.get("extrapolation_value", 0.0)))
    b.op("Permute", [crops], node.outputs, dims=(0, 3, 1, 2))


@rule("ComplexMul", "ComplexMulConj", domain=MICROSOFT)
def complex_mul(node: Node, b: Builder) -> None:
    """Products of complex numbers, pairs in the last dimension; those of B are conjugated in the second form."""
    (ar, ai), (br, bi) = (_halves(b, x) for x in node.inputs[:2])
    signs = ("ADD", "SUB") if node.op_type.endswith("Conj") else ("SUB", "ADD")
    real = b.binary(signs[0], b.binary("MUL", ar, br), b.binary("MUL", ai, bi))
    imaginary = b.binary(signs[1], b.binary("MUL", ai, br), b.binary("MUL", ar, bi))
    b.op("Concat", [real, imaginary], node.outputs, axis=-1)


def _halves(b: Builder, x: str) -> list[str]:
    names = [b.context.fresh(f"{b.node_name}/part") for _ in range(2)]
    b.op("Slice", [x], names, axis=-1, slicePoints=(2,), sourceType="TENSORFLOW")
    return names


@rule("Rfft", "Irfft", domain=MICROSOFT)
def rfft(node: Node, b: Builder) -> None:
    """The transform of the last dimension of real numbers, to pairs, or back."""
    x, rank = node.inputs[0], b.rank(node.inputs[0])
    if rank is None or node.get("signal_ndim", 1) != 1 or node.get("normalized", 0) or not node.get("onesided", 1):
        raise Unsupported("another form than that of one known dimension, one-sided and not normalised")
    if node.op_type == "Rfft":
        column = unsqueeze(b, x, rank)
        b.declare(column, None, rank + 1)
        standard(b, "DFT", [column, "", b.const(np.int64(rank - 1))], node.outputs, 20, onesided=1)
        return
    y = standard(b, "DFT", [x, "", b.const(np.int64(rank - 2))], 1, 20, onesided=1, inverse=1)
    b.op("Squeeze", [y], node.outputs, squeezeDims=(rank - 1,))


@rule("UnfoldTensor", domain=MICROSOFT)
def unfold_tensor(node: Node, b: Builder) -> None:
    """All slices of a size along a dimension, some steps apart, which become the last dimension."""
    x, rank, size, step = node.inputs[0], b.rank(node.inputs[0]), node["size"], node.get("step", 1)
    if rank is None:
        raise Unsupported("a tensor of unknown rank")
    dim = node.get("dim", -1) % rank
    count = b.binary("ADD", b.binary("REALDIV", b.binary("SUB", b.size(x, dim), b.const(np.int32(size))),
                                     b.const(np.int32(step))), b.const(np.int32(1)))
    starts = b.binary("MUL", unsqueeze(b, arange(b, count), 1), b.const(np.int32(step)))
    places = b.binary("ADD", starts, b.const(np.arange(size)))
    picked = b.gather(x, places, dim)
    order = (*range(dim + 1), *range(dim + 2, rank + 1), dim + 1)
    b.op("Permute", [picked], node.outputs, dims=order)


@rule("RelativePositionBias", domain=MICROSOFT)
def relative_position_bias(node: Node, b: Builder) -> None:
    """(1, heads, Q, K): of each distance its bucket's number (T5). The table holds the buckets of a head in a row."""
    table, shape = node.inputs[0], b.shape(node.inputs[0])
    if shape is None or None in shape:
        raise Unsupported("a table of unknown shape")
    buckets, heads = (int(s or 0) for s in shape)
    queries, keys = (arange(b, b.reshape(n, ())) for n in node.inputs[1:3])
    distance = b.binary("SUB", keys, unsqueeze(b, queries, 1))
    count, zero = buckets, b.const(np.int32(0))
    if node.get("is_bidirectional", 0):
        count //= 2
        above = b.binary("MUL", b.binary("GREATER", distance, zero, dtype=np.int32), b.const(np.int32(count)))
        distance = b.unary("ABS", distance)
    else:
        above = ""
        distance = b.binary("SUB", zero, b.binary("MINIMUM", distance, zero))
    exact = count // 2
    apart = b.cast(b.binary("MAXIMUM", distance, b.const(np.int32(1))), np.float32)
    ratio = b.binary("REALDIV", apart, b.const(np.float32(exact)))
    factor = (count - exact) / np.log(node["max_distance"] / exact)
    far = b.cast(b.binary("MUL", b.unary("LOG", ratio), b.const(np.float32(factor))), np.int32)
    far = b.binary("MINIMUM", b.binary("ADD", far, b.const(np.int32(exact))), b.const(np.int32(count - 1)))
    near = b.binary("LESS", distance, b.const(np.int32(exact)), dtype=np.bool_)
    bucket = b.op("Select", [near, distance, far], dtype=np.int64)
    bucket = b.binary("ADD", bucket, above) if above else bucket
    rows = b.reshape(table, (heads, buckets))
    b.op("Unsqueeze", [b.gather(rows, bucket, 1)], node.outputs, dtype=b.dtype(table), squeezeDims=(0,))


@rule("GatedRelativePositionBias", domain=MICROSOFT)
def gated_relative_position_bias(node: Node, b: Builder) -> None:
    """rel_pos * (u * (r * eco_a - 1) + 2), with gates u and r of each query."""
    query, bias, relative, weight, shift, factor = node.inputs[:6]
    if node.input(6):
        raise Unsupported("packed queries (token_offset)")
    heads = split_heads(b, b.binary("ADD", query, bias), node["num_heads"])
    gates = b.binary("ADD", b.op("MatMul", [heads, weight]), shift)
    pairs = b.reshape(gates, (0, 0, 0, 2, -1))
    gates = b.unary("SIGMOID", b.op("Reduction", [pairs], operation="SUM", dim=(4,), keepDims=False))
    update, reset = _halves(b, gates)
    inner = b.binary("SUB", b.binary("MUL", reset, factor), b.number(1, query))
    gate = b.binary("ADD", b.binary("MUL", update, inner), b.number(2, query))
    b.binary("MUL", gate, relative, node.outputs)
