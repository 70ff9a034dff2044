"""Pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..builder import Builder
from ..node import Node
from ..rules import rule
from ..spatial import Window, narrow, settle_same, widen, window


@rule("MaxPool")
def max_pool(node: Node, b: Builder) -> None:
    w = window(node, tuple(node["kernel_shape"]))
    plain = _plain(node, b, w) and b.is_float(node.inputs[0])
    if plain and node.output(1) and not node.get("storage_order", 0) and w.rank < 3:
        _with_indices(node, b, w)
    elif plain and not node.output(1):
        _pool(node, b, w, "MAXPOOL")
    else:
        outputs = [node.output(0) or b.context.fresh(f"{node.name}/unused"), *node.outputs[1:2]]
        _general(node, b, w, outputs, storage_order=node.get("storage_order", 0))
        if node.output(1):
            b.declare(node.outputs[1], np.dtype(np.int64))


def _plain(node: Node, b: Builder, w: Window) -> bool:
    """Whether MNN's Pooling, or in three dimensions its Pooling3D, can say it."""
    if any(d != 1 for d in w.dilations):
        return False
    if w.mode != "CAFFE":
        settled, w = settle_same(b, node.inputs[0], w, None)
        if settled != node.inputs[0]:
            return False
    return w.rank < 3 or (w.mode == "CAFFE" and not _ceil(node) and w.pads[:3] == w.pads[3:])


def _ceil(node: Node) -> bool:
    """Whether windows may be partial; those of SAME and VALID, by their formulas, are not affected by ceil_mode."""
    return bool(node.get("ceil_mode", 0)) and node.get("auto_pad", "NOTSET") in ("NOTSET", "")


def _general(node: Node, b: Builder, w: Window, outputs: list[str], **attrs: Any) -> None:
    """The operator as an op of its own, which real MNN lacks."""
    b.op(f"onnx.{node.op_type}", node.inputs[:1], outputs, dtype=b.dtype(node.inputs[0]), **{
        "kernel_shape": w.kernel, "strides": w.strides, "dilations": w.dilations, "pads": w.pads,
        "auto_pad": node.get("auto_pad", "NOTSET") or "NOTSET", "ceil_mode": _ceil(node), **attrs})


def _with_indices(node: Node, b: Builder, w: Window) -> None:
    """MNN's indices count in one image of one channel, ONNX's in the whole tensor."""
    x, w = settle_same(b, node.inputs[0], w, None)
    names = [node.output(0) or b.context.fresh(f"{node.name}/unused"), b.context.fresh(f"{node.name}/places")]
    wide = [b.context.fresh(f"{n}/wide") for n in names] if w.rank == 1 else names
    b.op("Pooling", [widen(b, x) if w.rank == 1 else x], wide, **w.widened().plane(), type="MAXPOOL", padType=w.mode,
         ceilModel=_ceil(node))
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
    include = bool(node.get("count_include_pad", 0))
    if _plain(node, b, w) and not (include and w.rank == 3 and (any(w.pads) or w.mode != "CAFFE")):
        _pool(node, b, w, "AVEPOOL")
    else:
        _general(node, b, w, node.outputs[:1], count_include_pad=include)


def _pool(node: Node, b: Builder, w: Window, kind: str) -> None:
    x, average = node.inputs[0], kind == "AVEPOOL"
    include, ceil = bool(node.get("count_include_pad", 0)) and average, _ceil(node)
    _, w = settle_same(b, x, w, None)
    if w.rank == 3:
        b.op("Pooling3D", [x], node.outputs[:1], type=kind, kernels=w.kernel, strides=w.strides, padType="CAFFE",
             pads=w.pads[:3])
    else:
        _plane(b, x, w, node.outputs[:1], {"type": kind, "ceilModel": ceil, "countType": _count(average, include)})


def _count(average: bool, include: bool) -> str:
    return ("INCLUDE_PADDING" if include else "EXCLUDE_PADDING") if average else "DEFAULT"


def _plane(b: Builder, x: str, w: Window, outputs: list[str] | int, attrs: dict[str, Any]) -> str:
    """Pooling in one or two dimensions."""
    attrs = {**attrs, **w.widened().plane(), "padType": w.mode}
    if w.rank == 2:
        return b.op("Pooling", [x], outputs, **attrs)
    return narrow(b, b.op("Pooling", [widen(b, x)], **attrs), outputs)


@rule("LpPool")
def lp_pool(node: Node, b: Builder) -> None:
    """(sum |x|^p)^(1/p): the mean over a padded window times its size."""
    x, p = node.inputs[0], node.get("p", 2)
    w = window(node, tuple(node["kernel_shape"]))
    if _ceil(node) or any(d != 1 for d in w.dilations) or w.rank == 3 or w.mode != "CAFFE":
        _general(node, b, w, node.outputs[:1], p=p)
        return
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
