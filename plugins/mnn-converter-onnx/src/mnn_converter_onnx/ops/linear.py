"""Matrix products."""

from __future__ import annotations

import numpy as np

from ..builder import Builder
from ..node import Node
from ..rules import Unsupported, rule


@rule("MatMul")
def matmul(node: Node, b: Builder) -> None:
    y, turned = unturned(b, node.inputs[1])
    b.op("MatMul", [node.inputs[0], y], node.outputs, **({"transposeB": True} if turned else {}))


def unturned(b: Builder, name: str) -> tuple[str, bool]:
    """A factor, and whether it is to be transposed: a constant that was made by a Transpose is taken from before it."""
    value = b.graph.constants.get(name)
    if isinstance(value, np.ndarray) and value.ndim == 2 and not value.flags.c_contiguous and value.T.flags.c_contiguous:
        return b.const(value.T, dtype=b.dtype(name)), True
    return name, False


@rule("Gemm")
def gemm(node: Node, b: Builder) -> None:
    """alpha * A' * B' + beta * C."""
    x, y, c = node.inputs[0], node.inputs[1], node.input(2)
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    add = bool(c) and beta != 0
    if alpha != 1:
        y = b.binary("MUL", y, b.number(alpha, y))
    y, turned = unturned(b, y)
    product = b.op("MatMul", [x, y], 1 if add else node.outputs, transposeA=bool(node.get("transA", 0)),
                   transposeB=bool(node.get("transB", 0)) != turned)
    if add:
        if beta != 1:
            c = b.binary("MUL", c, b.number(beta, c))
        b.binary("ADD", product, c, node.outputs)


@rule("Einsum")
def einsum(node: Node, b: Builder) -> None:
    """Up to any number of operands, two at a time: permute to (batch, kept, summed), MatMul, and permute back."""
    terms, _, result = node["equation"].replace(" ", "").partition("->")
    parts = terms.split(",")
    if len(parts) != len(node.inputs):
        raise Unsupported(f"equation {node['equation']!r} has {len(parts)} operands; {len(node.inputs)} are given")
    if "." in node["equation"] or any(len(set(p)) != len(p) for p in parts) or len(set(result)) != len(result):
        b.op("onnx.Einsum", node.inputs, node.outputs, equation=node["equation"].replace(" ", ""))
        return
    if "->" not in node["equation"]:
        letters = sorted(set("".join(parts)))
        result = "".join(ch for ch in letters if sum(p.count(ch) for p in parts) == 1)
    x, labels = node.inputs[0], parts[0]
    for i, (y, other) in enumerate(zip(node.inputs[1:], parts[1:])):
        later = set("".join(parts[i + 2:])) | set(result)
        x, labels = _contract(b, x, labels, y, other, later)
    x, labels = _sum_out(b, x, labels, set(result))
    order = tuple(labels.index(ch) for ch in result)
    if order == tuple(range(len(order))):
        b.op("Identity", [x], node.outputs)
    else:
        b.op("Permute", [x], node.outputs, dims=order)


def _sum_out(b: Builder, x: str, labels: str, keep: set[str]) -> tuple[str, str]:
    """Sums over the dimensions that nothing needs any more."""
    gone = tuple(i for i, ch in enumerate(labels) if ch not in keep)
    if gone:
        x = b.op("Reduction", [x], operation="SUM", dim=gone, keepDims=False)
    return x, "".join(ch for ch in labels if ch in keep)


def _contract(b: Builder, x: str, lx: str, y: str, ly: str, later: set[str]) -> tuple[str, str]:
    """One product: dimensions of both are batches or are summed, the others make rows and columns."""
    x, lx = _sum_out(b, x, lx, later | set(ly))
    y, ly = _sum_out(b, y, ly, later | set(lx))
    batch = [ch for ch in lx if ch in ly and ch in later]
    summed = [ch for ch in lx if ch in ly and ch not in later]
    rows, columns = [ch for ch in lx if ch not in ly], [ch for ch in ly if ch not in lx]
    x_shape, y_shape = b.shape_of(x), b.shape_of(y)
    x = _arranged(b, x, lx, [batch, rows, summed], x_shape)
    y = _arranged(b, y, ly, [batch, summed, columns], y_shape)
    product = b.op("MatMul", [x, y])
    dims = [_dims(b, x_shape, lx, batch + rows), _dims(b, y_shape, ly, columns)]
    shape = b.op("Concat", [d for d in dims if d], axis=0) if any(dims) else b.const(np.zeros(0, np.int64))
    return b.op("Reshape", [product, shape], dtype=b.dtype(x)), "".join(batch + rows + columns)


def _dims(b: Builder, shape: str, labels: str, wanted: list[str]) -> str:
    """The sizes of some dimensions, as a vector; "" for none."""
    if not wanted:
        return ""
    return b.op("GatherV2", [shape, b.ints(*(labels.index(ch) for ch in wanted)), b.const(np.int32(0))], dtype=np.int64)


def _arranged(b: Builder, x: str, labels: str, groups: list[list[str]], shape: str) -> str:
    """x with its dimensions in the order of the groups: those of the first as they are, each other group as one."""
    order = tuple(labels.index(ch) for group in groups for ch in group)
    if order != tuple(range(len(order))):
        x = b.op("Permute", [x], dims=order)
    sizes = [_dims(b, shape, labels, groups[0])]
    for group in groups[1:]:
        size = _dims(b, shape, labels, group)
        product = b.op("Reduction", [size], dtype=np.int64, operation="PROD", dim=(0,), keepDims=True) if size else b.ints(1)
        sizes.append(product)
    return b.op("Reshape", [x, b.op("Concat", [s for s in sizes if s], axis=0)], dtype=b.dtype(x))


@rule("Det")
def det(node: Node, b: Builder) -> None:
    b.op("Det", node.inputs, node.outputs)
