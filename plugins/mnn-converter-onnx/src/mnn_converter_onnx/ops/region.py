"""Operators that sample images at given places: GridSample, AffineGrid, RoiAlign, MaxRoiPool, MaxUnpool."""

from __future__ import annotations

import numpy as np

from ..builder import Builder
from ..node import Node
from ..rules import rule, wrong


@rule("GridSample", "GridSampler")
def grid_sample(node: Node, b: Builder) -> None:
    modes = {"bilinear": "BILINEAR", "linear": "BILINEAR", "nearest": "NEAREST", "bicubic": "BILINEAR", "cubic": "BILINEAR"}
    paddings = {"zeros": "ZEROS", "border": "CLAMP", "reflection": "REFLECTION"}
    mode, padding = node.get("mode", "bilinear"), node.get("padding_mode", "zeros")
    if mode not in modes or padding not in paddings:
        raise wrong("mode and padding_mode", (mode, padding), f"one of {', '.join(modes)} and one of {', '.join(paddings)}")
    b.op("GridSample", node.inputs[:2], node.outputs, mode=modes[mode], paddingMode=paddings[padding],
         alignCorners=bool(node.get("align_corners", 0)), **({"cubic": True} if "cubic" in mode else {}))


@rule("AffineGrid")
def affine_grid(node: Node, b: Builder) -> None:
    """As an op of its own: the standard's function squeezes away the only image of a batch of one."""
    b.op("onnx.AffineGrid", node.inputs[:2], node.outputs, align_corners=bool(node.get("align_corners", 0)))


@rule("RoiAlign")
def roi_align(node: Node, b: Builder) -> None:
    """Pixel centres are at halves ("half_pixel", the only way to place them from opset 16 on by default)."""
    kinds = {"avg": "AVEPOOL", "max": "MAXPOOL"}
    kind = node.get("mode", "avg")
    if kind not in kinds:
        raise wrong("mode", kind, "'avg' or 'max'")
    half = node.get("coordinate_transformation_mode", "half_pixel" if node.version >= 16 else "output_half_pixel")
    b.op("ROIAlign", node.inputs[:3], node.outputs, pooledWidth=node.get("output_width", 1),
         pooledHeight=node.get("output_height", 1), spatialScale=node.get("spatial_scale", 1.0),
         samplingRatio=node.get("sampling_ratio", 0), aligned=half == "half_pixel", poolType=kinds[kind],
         **({"greatestCorner": True} if kind == "max" else {}))


@rule("MaxRoiPool")
def max_roi_pool(node: Node, b: Builder) -> None:
    height, width = node["pooled_shape"]
    b.op("ROIPooling", node.inputs[:2], node.outputs, pooledHeight=height, pooledWidth=width,
         spatialScale=node.get("spatial_scale", 1.0))


@rule("MaxUnpool")
def max_unpool(node: Node, b: Builder) -> None:
    """Puts each value at its index in a flat tensor of zeros.

    The indices are those of the shape that the pooling is undone to; a given larger output is padded with zeros.
    """
    x, indices = node.inputs[0], node.inputs[1]
    kernel = tuple(node["kernel_shape"])
    rank = len(kernel)
    strides, pads = tuple(node.get("strides", (1,) * rank)), tuple(node.get("pads", (0,) * (2 * rank)))
    old = b.op("StridedSlice", [b.shape_of(x), b.ints(2), b.ints(2**31 - 1)], dtype=np.int64, fromType=1)
    grown = b.binary("MUL", b.binary("SUB", old, b.ints(1)), b.ints(*strides))
    grown = b.binary("ADD", grown, b.ints(*(k - p - q for k, p, q in zip(kernel, pads[:rank], pads[rank:]))))
    lead = b.op("StridedSlice", [b.shape_of(x), b.ints(0), b.ints(2)], dtype=np.int64, fromType=1)
    shape = b.op("Concat", [lead, grown], axis=0)
    if node.input(2):
        wanted = node.input(2)
        # Indices count in the inferred shape, so the values are placed there and zeros are added behind.
        extra = b.binary("SUB", wanted, shape)
        pairs = b.reshape(b.op("Pack", [b.binary("MUL", extra, b.ints(0)), extra], axis=1), (-1,))
        b.op("Padding", [_scattered(b, x, indices, shape), pairs], node.outputs, dtype=b.dtype(x), mode="CONSTANT")
        return
    b.op("Identity", [_scattered(b, x, indices, shape)], node.outputs)


def _scattered(b: Builder, x: str, indices: str, shape: str) -> str:
    count = b.op("Reduction", [shape], dtype=np.int64, operation="PROD", dim=(0,), keepDims=True)
    zeros = b.op("Fill", [count, b.number(0, x)], dtype=b.dtype(x))
    flat = b.op("ScatterElements", [zeros, b.reshape(indices, (-1,)), b.reshape(x, (-1,)), b.const(np.int32(0))], opType=-1)
    return b.op("Reshape", [flat, shape], dtype=b.dtype(x))

