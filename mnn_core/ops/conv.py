"""Convolution, ConvolutionDepthwise, Convolution3D, Dilation2D."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import given, need
from ._rules import FLOAT32, require_float
from ._windows import convolution, finished, padded, windows
from .conv_geometry import Geometry, convolution_window, convolve
from .registry import Example, register


def infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    """(N, O, *output) of x (N, C, *size), weight (O, C / group, *kernel) and an optional bias (O,)."""
    x, weight = need(op, inputs, 0), need(op, inputs, 1)
    require_float(op, x)
    if x.rank == 3 and weight.rank == 4:  # one column, as MNN allows
        (wide,) = infer(op, [x.with_shape((*x.shape, 1)), *inputs[1:]])
        if wide.shape[3] != 1:
            raise ShapeError(f"{op}: an input of rank 3 is one column; its output would have {wide.shape[3]}")
        return [wide.with_shape(wide.shape[:3])]
    rank = 5 if op.type == "Convolution3D" else 4
    check_ranks(op, x, weight, rank)
    group = group_of(op, x)
    channels, outputs = x.shape[1], weight.shape[0]
    if weight.shape[1] * group != channels or outputs % group:
        raise ShapeError(f"{op}: {x} has {channels} channels; weight {list(weight.shape)} in {group} groups takes "
                         f"{weight.shape[1] * group} and makes {outputs}, which must be a multiple of the groups")
    if op.type == "ConvolutionDepthwise" and outputs != channels:
        raise ShapeError(f"{op}: weight {list(weight.shape)} makes {outputs} channels of {channels}; a depthwise convolution "
                         "keeps their number: use a Convolution with groups")
    check_bias(op, given(inputs, 2), outputs)
    return [x.with_shape((x.shape[0], outputs, *geometry(op, x.shape, weight.shape).output))]


def check_ranks(op: Op, x: Spec, weight: Spec, rank: int) -> None:
    """Raises ShapeError unless x and weight both have a rank."""
    if x.rank != rank or weight.rank != rank:
        raise ShapeError(f"{op}: expected an input and a weight of rank {rank}, found {x} and {weight}")


def check_bias(op: Op, bias: Spec | None, outputs: int) -> None:
    """Raises ShapeError unless a bias has one number for each output channel."""
    if bias is not None and bias.size != outputs:
        raise ShapeError(f"{op}: bias {bias} for {outputs} output channels")


def group_of(op: Op, x: Spec | np.ndarray) -> int:
    """The number of groups: each channel is one in depthwise convolutions."""
    group = x.shape[1] if "Depthwise" in op.type else op["group"]
    if group < 1:
        raise ShapeError(f"{op}: {group} groups; expected 1 or more")
    return group


def geometry(op: Op, x: Sequence[int], weight: Sequence[int]) -> Geometry:
    """Where the windows lie, given the shapes of input and weight. Raises ShapeError if none fits."""
    return convolve(op, convolution_window(op, weight[2:]), x[2:])


def _f(*shape: int) -> Spec:
    return Spec(shape, FLOAT32)


def plane(kernel: tuple[int, int], **more: Any) -> dict[str, Any]:
    """Attributes of a 2-D kernel."""
    return {"kernelY": kernel[0], "kernelX": kernel[1], **more}


@register("Convolution", param="Convolution2D", infer=infer, examples=[
    Example(plane((1, 1)), [_f(2, 5, 6, 7), _f(4, 5, 1, 1), _f(4)], name="1x1"),
    Example(plane((1, 1), relu=True), [_f(1, 32, 14, 15), _f(40, 32, 1, 1), _f(40)], name="1x1_wide"),
    Example(plane((1, 1), strideX=2, strideY=2), [_f(1, 8, 7, 9), _f(16, 8, 1, 1), _f(16)], name="1x1_stride2"),
    Example(plane((3, 1), pads=(1, 0, 1, 0), strideY=2), [_f(2, 5, 9), _f(4, 5, 3, 1), _f(4)], name="one_column"),
    Example(plane((3, 3), pads=(1, 1, 1, 1)), [_f(1, 3, 8, 9), _f(8, 3, 3, 3), _f(8)], name="3x3"),
    Example(plane((3, 3), padX=1, padY=1, relu=True), [_f(2, 16, 12, 11), _f(24, 16, 3, 3), _f(24)], name="3x3_relu"),
    Example(plane((3, 3), padX=1, padY=1, relu6=True), [_f(1, 17, 5, 5), _f(19, 17, 3, 3), _f(19)], name="3x3_relu6_odd"),
    Example(plane((3, 3), strideX=2, strideY=2, padX=1, padY=1), [_f(1, 3, 32, 31), _f(16, 3, 3, 3), _f(16)], name="stem"),
    Example(plane((7, 7), strideX=2, strideY=2, padX=3, padY=3), [_f(1, 3, 20, 22), _f(10, 3, 7, 7), _f(10)], name="7x7"),
    Example(plane((5, 3), strideY=2, dilateX=2, pads=(2, 0, 1, 3)), [_f(2, 6, 11, 13), _f(7, 6, 5, 3), _f(7)], name="odd_all"),
    Example(plane((3, 3), strideX=2, strideY=2, padMode="SAME"), [_f(1, 4, 8, 9), _f(5, 4, 3, 3), _f(5)], name="same"),
    Example(plane((3, 2), strideX=3, padMode="VALID"), [_f(1, 4, 8, 9), _f(5, 4, 3, 2), _f(5)], name="valid"),
    Example(plane((3, 3), group=4, padX=1, padY=1), [_f(1, 16, 6, 7), _f(24, 4, 3, 3), _f(24)], name="groups"),
    Example(plane((3, 3), group=3), [_f(2, 3, 6, 7), _f(6, 1, 3, 3), _f(6)], name="groups_of_one"),
    Example(plane((1, 5), pads=(0, 2, 0, 2)), [_f(2, 4, 1, 33), _f(6, 4, 1, 5), _f(6)], name="1d"),
    Example(plane((2, 2)), [_f(1, 3, 4, 4), _f(2, 3, 2, 2)], name="no_bias"),
    Example(plane((3, 3), padX=1, padY=1), [_f(0, 3, 4, 4), _f(2, 3, 3, 3), _f(2)], name="no_images"),
])
@register("ConvolutionDepthwise", param="Convolution2D", infer=infer, examples=[
    Example(plane((3, 3), padX=1, padY=1), [_f(2, 5, 8, 9), _f(5, 1, 3, 3), _f(5)], name="3x3"),
    Example(plane((3, 3), strideX=2, strideY=2, padX=1, padY=1, relu6=True), [_f(1, 32, 13, 14), _f(32, 1, 3, 3), _f(32)],
            name="3x3_stride2_relu6"),
    Example(plane((5, 5), padX=2, padY=2, relu=True), [_f(1, 19, 7, 6), _f(19, 1, 5, 5), _f(19)], name="5x5_relu"),
    Example(plane((3, 1), dilateY=2, pads=(3, 0, 1, 0)), [_f(1, 4, 9, 5), _f(4, 1, 3, 1), _f(4)], name="dilated"),
    Example(plane((3, 3), strideX=2, strideY=2, padMode="SAME"), [_f(1, 16, 10, 11), _f(16, 1, 3, 3), _f(16)], name="same"),
    Example(plane((3, 3)), [_f(1, 3, 5, 5), _f(3, 1, 3, 3)], name="no_bias"),
])
@register("Convolution3D", param="Convolution3D", infer=infer, examples=[
    Example({"kernels": (3, 3, 3), "pads": (1, 1, 1)}, [_f(1, 3, 5, 6, 7), _f(4, 3, 3, 3, 3), _f(4)], name="3x3x3"),
    Example({"kernels": (2, 3, 1), "strides": (2, 1, 3), "dilates": (1, 2, 1), "pads": (0, 1, 0, 1, 2, 0), "group": 2,
             "relu": True}, [_f(2, 4, 5, 7, 6), _f(6, 2, 2, 3, 1), _f(6)], name="odd_all"),
    Example({"kernels": (3, 3, 3), "strides": (2, 2, 2), "padMode": "SAME"}, [_f(1, 2, 5, 6, 7), _f(3, 2, 3, 3, 3), _f(3)],
            name="same"),
])
def convolution_op(op: Op, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    """Sums of windows of x (N, C, *size) times weight (O, C / group, *kernel), plus bias (O,), then `relu` or `relu6`.

    Depthwise: weight (C, 1, *kernel), each channel by itself. Padding counts as 0.
    """
    if x.ndim == 3 and weight.ndim == 4:
        return convolution_op(op, x[..., None], weight, bias)[..., 0]
    out = convolution(x, weight, geometry(op, x.shape, weight.shape), group_of(op, x))
    return finished(op, out, bias, x.dtype)


def _dilation_weight(op: Op, weight: np.ndarray | None, channels: int) -> np.ndarray:
    """(C, kernelY, kernelX), from the second input or, as files have it, from the table."""
    values = op.attrs.get("weight") if weight is None else weight
    shape = (channels, op["kernelY"], op["kernelX"])
    if values is None or np.size(values) != math.prod(shape):
        found = "none" if values is None else f"{np.size(values)} numbers"
        raise ShapeError(f"{op}: expected a weight of {list(shape)}, found {found}")
    return np.asarray(values).reshape(shape)


def _infer_dilation(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, weight = need(op, inputs, 0), given(inputs, 1)
    require_float(op, x)
    if x.rank != 4:
        raise ShapeError(f"{op}: expected an input (N, C, H, W), found {x}")
    shape = (x.shape[1], 1, op["kernelY"], op["kernelX"])
    if weight is not None and weight.size != math.prod(shape):
        raise ShapeError(f"{op}: expected a weight of {math.prod(shape)} numbers, {list(shape)}, found {weight}")
    return [x.with_shape((*x.shape[:2], *geometry(op, x.shape, shape).output))]


@register("Dilation2D", param="Convolution2D", infer=_infer_dilation, examples=[
    Example(plane((3, 2), padMode="SAME", strideY=2), [_f(2, 3, 7, 8), _f(3, 3, 2)], name="same"),
    Example(plane((2, 3), padMode="VALID", dilateX=2), [_f(1, 4, 6, 9), _f(4, 2, 3)], name="valid"),
])
def dilation_2d(op: Op, x: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Morphological dilation: the greatest of window + weight (C, kernelY, kernelX); padding never is the greatest."""
    w = _dilation_weight(op, weight, x.shape[1])
    g = geometry(op, x.shape, (x.shape[1], 1, *w.shape[1:]))
    view = windows(padded(x, g, -np.inf), g)
    out = np.full((*x.shape[:2], *g.output), -np.inf, x.dtype)
    for row, column in np.ndindex(*g.kernel):
        np.maximum(out, view[:, :, row, column] + w[:, row, column].reshape(-1, 1, 1).astype(x.dtype), out=out)
    return out
