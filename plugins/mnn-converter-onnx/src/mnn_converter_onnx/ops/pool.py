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
    w = window(node, tuple(node["kernel_shape"]))
    if node.output(1):
        _with_indices(node, b, w)
        return
    if any(d != 1 for d in w.dilations):
        _dilated(node, b, w)
        return
    _pool(node, b, w, "MAXPOOL", float("-inf"))


def _with_indices(node: Node, b: Builder, w: Window) -> None:
    """MNN's indices count in one image of one channel, ONNX's in the whole tensor."""
    if w.rank == 3 or any(d != 1 for d in w.dilations) or node.get("storage_order", 0):
        raise Unsupported("MaxPool with Indices in three dimensions, with dilations or with storage_order")
    x, w = settle_same(b, node.inputs[0], w, float("-inf"))
    if x != node.inputs[0]:
        raise Unsupported("MaxPool with Indices, SAME_LOWER and an input of unknown size")
    names = [node.output(0) or b.context.fresh(f"{node.name}/unused"), b.context.fresh(f"{node.name}/places")]
    wide = [b.context.fresh(f"{n}/wide") for n in names] if w.rank == 1 else names
    b.op("Pooling", [widen(b, x) if w.rank == 1 else x], wide, **w.widened().plane(), type="MAXPOOL", padType=w.mode,
         ceilModel=bool(node.get("ceil_mode", 0)))
    if w.rank == 1:
        for source, target in zip(wide, names):
            narrow(b, source, [target])
    b.declare(names[1], np.dtype(np.int64))
    shape = b.shape_of(x)
    image = b.op("StridedSlice", [shape, b.ints(2), b.ints(2**31 - 1)], dtype=np.int64, fromType=1)
    area = b.op("Reduction", [image], dtype=np.int64, operation="PROD", dim=(0,), keepDims=False)
    n, c = b.size(x, 0), b.size(x, 1)
    planes = b.op("Range", [b.const(np.int32(0)), b.binary("MUL", n, c), b.const(np.int32(1))], dtype=np.int64)
    ones = b.op("Concat", [b.reshape(n, (1,)), b.reshape(c, (1,)), b.ints(*[1] * w.rank)], axis=0)
    starts = b.op("Reshape", [b.binary("MUL", planes, area), ones], dtype=np.int64)
    b.binary("ADD", names[1], starts, [node.outputs[1]], dtype=np.int64)


@rule("AveragePool")
def average_pool(node: Node, b: Builder) -> None:
    w = window(node, tuple(node["kernel_shape"]))
    if any(d != 1 for d in w.dilations):
        raise Unsupported("AveragePool with dilations")
    _pool(node, b, w, "AVEPOOL", 0.0)


def _pool(node: Node, b: Builder, w: Window, kind: str, fill: float) -> None:
    x, average = node.inputs[0], kind == "AVEPOOL"
    include, ceil = bool(node.get("count_include_pad", 0)) and average, bool(node.get("ceil_mode", 0))
    if w.rank == 3 and ceil:
        raise Unsupported("ceil_mode with three spatial dimensions")
    settled, w = settle_same(b, x, w, fill)
    if settled == x and w.rank < 3:
        _plane(b, x, w, node.outputs[:1], {"type": kind, "ceilModel": ceil, "countType": _count(average, include)})
    elif settled == x and w.pads[:3] == w.pads[3:] and not include:
        _volume(b, x, w, kind, node.outputs[:1])
    elif average and not include:  # the mean over padding, too, divided by the mean of ones that are padded likewise
        ones = b.op("Fill", [b.shape_of(x), b.number(1, x)], dtype=b.dtype(x))
        parts = [_padded(b, settled, w, kind, 0),
                 _padded(b, settle_same(b, ones, window(node, w.kernel), 0)[0], w, kind, 0)]
        b.binary("REALDIV", parts[0], parts[1], node.outputs[:1])
    else:
        _padded(b, settled, w, kind, fill, node.outputs[:1])


def _count(average: bool, include: bool) -> str:
    return ("INCLUDE_PADDING" if include else "EXCLUDE_PADDING") if average else "DEFAULT"


def _plane(b: Builder, x: str, w: Window, outputs: list[str] | int, attrs: dict[str, Any]) -> str:
    """Pooling in one or two dimensions."""
    attrs = {**attrs, **w.widened().plane(), "padType": w.mode}
    if w.rank == 2:
        return b.op("Pooling", [x], outputs, **attrs)
    return narrow(b, b.op("Pooling", [widen(b, x)], **attrs), outputs)


def _volume(b: Builder, x: str, w: Window, kind: str, outputs: list[str] | int) -> str:
    """Pooling in three dimensions, where MNN pads both ends alike and counts what is inside."""
    return b.op("Pooling3D", [x], outputs, type=kind, kernels=w.kernel, strides=w.strides, padType="CAFFE", pads=w.pads[:3])


def _padded(b: Builder, x: str, w: Window, kind: str, fill: float, outputs: list[str] | int = 1) -> str:
    """Padding as an op of its own, then a pooling of whole windows."""
    if any(w.pads):
        pairs = b.ints(0, 0, 0, 0, *(p for both in zip(w.pads[:w.rank], w.pads[w.rank:]) for p in both))
        x = b.op("Padding", [x, pairs, b.number(fill, x)], mode="CONSTANT")
    whole = Window(w.kernel, w.strides, w.dilations, (0,) * (2 * w.rank))
    if w.rank == 3:
        return _volume(b, x, whole, kind, outputs)
    return _plane(b, x, whole, outputs, {"type": kind, "ceilModel": False, "countType": _count(kind == "AVEPOOL", True)})


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
    mean = _plane(b, powers, w, 1, {"type": "AVEPOOL", "ceilModel": False, "countType": "INCLUDE_PADDING"})
    total = b.binary("MUL", mean, b.number(float(np.prod(w.kernel)), x))
    b.binary("POW", total, b.number(1 / p, x), node.outputs)


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
