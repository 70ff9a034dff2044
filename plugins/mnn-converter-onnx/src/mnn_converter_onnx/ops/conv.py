"""Convolutions. Weights keep ONNX's order, which is MNN's: (O, I / group, ...), and (I, O / group, ...) transposed."""

from __future__ import annotations

import numpy as np

from mnn_core import ModelFormatError

from ..builder import Builder
from ..node import Node
from ..rules import Unsupported, rule
from ..spatial import Window, narrow, settle_same, widen, window


def _kernel(node: Node, b: Builder, weight: str) -> tuple[int, ...]:
    shape = b.shape(weight)
    kernel = node.get("kernel_shape")
    if kernel is None and shape is not None and None not in shape:
        kernel = tuple(d for d in shape[2:] if d is not None)
    if kernel is None:
        raise Unsupported("a weight of unknown shape, without kernel_shape")
    if b.value(weight) is not None and (shape is None or shape[2:] != tuple(kernel) or len(shape) < 3):
        raise ModelFormatError(f"{node}: kernel_shape {list(kernel)} does not fit its weight, of shape {list(shape or ())}")
    return tuple(kernel)


def _bias(node: Node, b: Builder, weight: str, axis: int, factor: int) -> str:
    """The bias; zeros if there is none, of which there are weight.shape[axis] * factor."""
    shape = b.shape(weight)
    size = shape[axis] if shape is not None and len(shape) > axis else None
    if node.input(2):
        value = b.value(node.input(2))
        if value is not None and size is not None and value.size != size * factor:
            raise ModelFormatError(f"{node}: a bias of {value.size} numbers for {size * factor} output channels")
        return node.input(2)
    if size is not None:
        return b.const(np.zeros(size * factor, np.float32))
    count = b.op("GatherV2", [b.shape_of(weight), b.ints(axis), b.const(np.int32(0))], dtype=np.int64)
    return b.op("Fill", [b.binary("MUL", count, b.ints(factor)), b.const(np.float32(0))], dtype=np.float32)


def _channels(b: Builder, weight: str) -> tuple[int | None, int | None]:
    shape = b.shape(weight)
    return (None, None) if shape is None or len(shape) < 2 else (shape[0], shape[1])


@rule("Conv")
def conv(node: Node, b: Builder) -> None:
    x, weight = node.inputs[0], node.inputs[1]
    w = window(node, _kernel(node, b, weight))
    group = node.get("group", 1)
    out, per_group = _channels(b, weight)
    if group < 1 or (out is not None and out % group):
        raise ModelFormatError(f"{node}: {out} output channels in {group} groups")
    depthwise = group > 1 and out == group and per_group == 1
    counts = {"group": group, "outputCount": out or 0, "inputCount": (per_group or 0) * group}
    _convolve(node, b, x, weight, _bias(node, b, weight, 0, 1), w,
              "Convolution3D" if w.rank == 3 else "ConvolutionDepthwise" if depthwise else "Convolution", counts)


def _convolve(node: Node, b: Builder, x: str, weight: str, bias: str, w: Window, op_type: str, attrs: dict) -> None:
    x, w = settle_same(b, x, w, 0)
    if w.rank == 3:
        b.op(op_type, [x, weight, bias], node.outputs, kernels=w.kernel, strides=w.strides, dilates=w.dilations, pads=w.pads,
             padMode=w.mode, **attrs)
        return
    plane = w.widened()
    inputs = [x, weight, bias] if w.rank == 2 else [widen(b, x), widen(b, weight), bias]
    attrs = {**attrs, **plane.plane(), "padMode": w.mode, "dilateY": plane.dilations[0], "dilateX": plane.dilations[1]}
    if w.rank == 2:
        b.op(op_type, inputs, node.outputs, **attrs)
    else:
        narrow(b, b.op(op_type, inputs, **attrs), node.outputs)


@rule("ConvTranspose")
def conv_transpose(node: Node, b: Builder) -> None:
    x, weight = node.inputs[0], node.inputs[1]
    w = window(node, _kernel(node, b, weight))
    group = node.get("group", 1)
    inner, per_group = _channels(b, weight)
    if group < 1 or (inner is not None and (inner % group or group > max(inner, 1))):
        raise ModelFormatError(f"{node}: {inner} input channels in {group} groups")
    out = None if per_group is None else per_group * group
    extra = tuple(node.get("output_padding", (0,) * w.rank))
    if len(extra) != w.rank:
        raise ModelFormatError(f"{node}: output_padding {list(extra)} for {w.rank} dimensions")
    w, extra = _transposed_pads(node, b, x, w, extra)
    depthwise = group > 1 and inner == group and per_group == 1
    attrs: dict = {"group": group, "outputCount": out or 0, "inputCount": inner or 0}
    if any(extra):
        attrs["outPads"] = extra if w.rank > 1 else (0, *extra)
    op_type = "ConvTranspose3D" if w.rank == 3 else "DeconvolutionDepthwise" if depthwise else "Deconvolution"
    _convolve(node, b, x, weight, _bias(node, b, weight, 1, group), w, op_type, attrs)


def _transposed_pads(node: Node, b: Builder, x: str, w: Window, extra: tuple[int, ...]) -> tuple[Window, tuple[int, ...]]:
    """Explicit pads for SAME and for a given output shape; what is missing on the output goes to output_padding."""
    wanted = node.get("output_shape")
    if wanted is None and w.mode == "CAFFE":
        return w, extra
    if wanted is not None:
        shape = b.shape(x)
        sizes = shape[2:] if shape is not None else (None,)
        if any(s is None for s in sizes):
            raise Unsupported("output_shape with an input of unknown size; give pads and output_padding instead")
        totals = [s * (i - 1) + e + k - o for s, i, e, k, o in
                  zip(w.strides, [s for s in sizes if s is not None], extra, w.extents(), tuple(wanted)[-w.rank:])]
    else:
        totals = [k - s + e for k, s, e in zip(w.extents(), w.strides, extra)]
    extra = tuple(e + max(-t, 0) for e, t in zip(extra, totals))
    totals = [max(t, 0) for t in totals]
    upper = node.get("auto_pad", "NOTSET") == "SAME_UPPER"
    begins = tuple(t // 2 if upper else t - t // 2 for t in totals)
    return Window(w.kernel, w.strides, w.dilations, (*begins, *(t - g for t, g in zip(totals, begins)))), extra
