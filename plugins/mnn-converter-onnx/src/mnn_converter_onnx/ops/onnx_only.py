"""Operators that MNN has no op for: our engine alone runs them, by ops of the same name and meaning."""

from __future__ import annotations

import numpy as np

from mnn_core.ir.dtypes import dtype_name

from ..builder import Builder
from ..node import Node
from ..rules import Unsupported, rule
from ..tensors import declared_dtype


@rule("BitCast")
def bit_cast(node: Node, b: Builder) -> None:
    """Not of 64-bit types, which are computed with 32 bits here."""
    source, target = b.dtype(node.inputs[0]), declared_dtype(node["to"], str(node))
    if 8 in (source.itemsize, target.itemsize) or target.kind not in "biuf":
        raise Unsupported(f"the bits of {source} as {target}: types of 64 bits are computed with 32")
    b.op("onnx.BitCast", node.inputs, node.outputs, dtype=target, to=dtype_name(target), **{"from": dtype_name(source)})


@rule("DeformConv")
def deform_conv(node: Node, b: Builder) -> None:
    attrs = {name: tuple(node.get(name, ())) for name in ("kernel_shape", "strides", "pads", "dilations")}
    b.op("onnx.DeformConv", node.inputs, node.outputs, group=node.get("group", 1),
         offset_group=node.get("offset_group", 1), **attrs)


@rule("Col2Im")
def col2im(node: Node, b: Builder) -> None:
    """MNN's op takes images of two dimensions, and blocks whose size is fixed."""
    x, image, block = node.inputs
    strides, dilations, pads = (tuple(node.get(name, ())) for name in ("strides", "dilations", "pads"))
    size = b.vector(block, f"{node}: block_shape")
    if size is not None and len(size) == 2:
        (stride_y, stride_x), (dilate_y, dilate_x) = strides or (1, 1), dilations or (1, 1)
        b.op("Col2Im", [x, image], node.outputs, kernelY=size[0], kernelX=size[1], strideY=stride_y, strideX=stride_x,
             dilateY=dilate_y, dilateX=dilate_x, pads=pads or (0, 0, 0, 0))
    else:
        b.op("onnx.Col2Im", node.inputs, node.outputs, strides=strides, dilations=dilations, pads=pads)


@rule("TensorScatter")
def tensor_scatter(node: Node, b: Builder) -> None:
    b.op("onnx.TensorScatter", node.inputs, node.outputs, axis=node.get("axis", -2), mode=node.get("mode", "linear"))


@rule("ImageDecoder")
def image_decoder(node: Node, b: Builder) -> None:
    b.op("onnx.ImageDecoder", node.inputs, node.outputs, dtype=np.uint8, pixel_format=node.get("pixel_format", "RGB"))
