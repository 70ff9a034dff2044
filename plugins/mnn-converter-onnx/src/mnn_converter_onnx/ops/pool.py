"""Pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..builder import Builder
from ..node import Node
from ..rules import Unsupported, rule
from ..spatial import Window, narrow, settle_same, widen, window


@rule("MaxPool")
def max_pool(node: Node, b: Builder) -> None:
    if node.output(1):
        raise Unsupported("MaxPool with a second output (Indices)")
    w = window(node, tuple(node["kernel_shape"]))
    if any(d != 1 for d in w.dilations):
        _dilated(node, b, w)
        return
    _pool(node, b, w, "MAXPOOL", float("-inf"))


@rule("AveragePool")
def average_pool(node: Node, b: Builder) -> None:
    w = window(node, tuple(node["kernel_shape"]))
    if any(d != 1 for d in w.dilations):
        raise Unsupported("AveragePool with dilations")
    _pool(node, b, w, "AVEPOOL", 0.0)


def _pool(node: Node, b: Builder, w: Window, kind: str, fill: float) -> None:
    x, average = node.inputs[0], kind == "AVEPOOL"
    include = bool(node.get("count_include_pad", 0)) and average
    if average and w.mode == "SAME_LOWER" and not include:
        settled, explicit = settle_same(b, x, w, fill)
        if settled != x:
            raise Unsupported("AveragePool with SAME_LOWER and an input of unknown size")
        w = explicit
    x, w = settle_same(b, x, w, fill)
    ceil = bool(node.get("ceil_mode", 0))
    attrs: dict[str, Any] = {"type": kind, "ceilModel": ceil, "padType": w.mode,
             "countType": ("INCLUDE_PADDING" if include else "EXCLUDE_PADDING") if average else "DEFAULT"}
    if w.rank == 3:
        _pool_3d(node, b, x, w, kind, ceil, include)
        return
    plane = w.widened().plane()
    if w.rank == 2:
        b.op("Pooling", [x], node.outputs[:1], **plane, **attrs)
    else:
        narrow(b, b.op("Pooling", [widen(b, x)], **plane, **attrs), node.outputs[:1])


def _pool_3d(node: Node, b: Builder, x: str, w: Window, kind: str, ceil: bool, include: bool) -> None:
    """Pooling3D has equal pads at both ends and averages over what is inside; other forms pad with an op of their own."""
    if ceil:
        raise Unsupported("ceil_mode with three spatial dimensions")
    attrs = {"type": kind, "kernels": w.kernel, "strides": w.strides, "padType": "CAFFE"}
    begins, ends = w.pads[:3], w.pads[3:]
    if begins == ends and not (kind == "AVEPOOL" and include):
        b.op("Pooling3D", [x], node.outputs[:1], pads=begins, **attrs)
        return
    pairs = b.ints(0, 0, 0, 0, *(p for both in zip(begins, ends) for p in both))

    def padded(x: str, fill: float, outputs: list[str] | int = 1) -> str:
        y = b.op("Padding", [x, pairs, b.number(fill, x)], mode="CONSTANT")
        return b.op("Pooling3D", [y], outputs, pads=(0, 0, 0), **attrs)

    if kind == "MAXPOOL":
        padded(x, float("-inf"), node.outputs[:1])
    elif include:
        padded(x, 0, node.outputs[:1])
    else:
        ones = b.op("Fill", [b.shape_of(x), b.number(1, x)], dtype=b.dtype(x))
        b.binary("REALDIV", padded(x, 0), padded(ones, 0), node.outputs[:1])


def _dilated(node: Node, b: Builder, w: Window) -> None:
    """The greatest of strided slices, one for each element of the window."""
    if node.get("ceil_mode", 0) or w.mode != "CAFFE":
        raise Unsupported("MaxPool with dilations and ceil_mode or SAME padding")
    x = node.inputs[0]
    if any(w.pads):
        pairs = b.ints(0, 0, 0, 0, *(p for both in zip(w.pads[:w.rank], w.pads[w.rank:]) for p in both))
        x = b.op("Padding", [x, pairs, b.number(float("-inf"), x)], mode="CONSTANT")
    size = b.op("StridedSlice", [b.shape_of(x), b.ints(2), b.ints(2**31 - 1)], dtype=np.int64, fromType=1)
    room = b.binary("SUB", size, b.ints(*(e - 1 for e in w.extents())))  # starts of windows lie below this
    best = ""
    axes, steps = b.ints(*range(2, 2 + w.rank)), b.ints(*w.strides)
    offsets = list(np.ndindex(*w.kernel))
    for i, offset in enumerate(offsets):
        start = b.ints(*(o * d for o, d in zip(offset, w.dilations)))
        part = b.op("StridedSlice", [x, start, b.binary("ADD", room, start), axes, steps], dtype=b.dtype(x), fromType=1)
        best = part if not best else b.binary("MAXIMUM", best, part, node.outputs[:1] if i == len(offsets) - 1 else 1)
    if len(offsets) == 1:
        b.op("Identity", [best], node.outputs[:1])


@rule("LpPool")
def lp_pool(node: Node, b: Builder) -> None:
    """(sum |x|^p)^(1/p): the mean over a padded window times its size."""
    x, p = node.inputs[0], node.get("p", 2)
    w = window(node, tuple(node["kernel_shape"]))
    if node.get("ceil_mode", 0) or any(d != 1 for d in w.dilations) or w.rank == 3 or w.mode != "CAFFE":
        raise Unsupported("LpPool with ceil_mode, dilations, SAME padding or three spatial dimensions")
    powers = b.binary("POW", b.unary("ABS", x), b.number(p, x))
    plane = w.widened().plane()
    powers = widen(b, powers) if w.rank == 1 else powers
    mean = b.op("Pooling", [powers], type="AVEPOOL", ceilModel=False, countType="INCLUDE_PADDING", **plane)
    total = b.binary("MUL", mean, b.number(float(np.prod(w.kernel)), x))
    root = b.binary("POW", total, b.number(1 / p, x), 1 if w.rank == 1 else node.outputs)
    if w.rank == 1:
        narrow(b, root, node.outputs)


@rule("GlobalAveragePool", "GlobalMaxPool")
def global_pool(node: Node, b: Builder) -> None:
    x, average = node.inputs[0], node.op_type == "GlobalAveragePool"
    if b.rank(x) == 4:
        b.op("Pooling", [x], node.outputs, isGlobal=True, type="AVEPOOL" if average else "MAXPOOL", ceilModel=False,
             kernelX=1, kernelY=1, strideX=1, strideY=1)
        return
    _over_space(b, x, "MEAN" if average else "MAXIMUM", node.outputs)


def _over_space(b: Builder, x: str, kind: str, outputs: list[str] | int = 1) -> str:
    """A reduction over all dimensions from the third on, which stay with size 1."""
    rank = b.rank(x)
    if rank is not None:
        return b.op("Reduction", [x], outputs, operation=kind, dim=tuple(range(2, rank)), keepDims=True)
    axes = b.op("Range", [b.const(np.int32(2)), b.op("Rank", [x], dtype=np.int32), b.const(np.int32(1))], dtype=np.int32)
    return b.op("Reduction", [x, axes], outputs, dtype=b.dtype(x), operation=kind, keepDims=True)


@rule("GlobalLpPool")
def global_lp_pool(node: Node, b: Builder) -> None:
    x, p = node.inputs[0], node.get("p", 2)
    total = _over_space(b, b.binary("POW", b.unary("ABS", x), b.number(p, x)), "SUM")
    b.binary("POW", total, b.number(1 / p, x), node.outputs)
