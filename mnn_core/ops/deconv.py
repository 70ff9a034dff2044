"""Deconvolution, DeconvolutionDepthwise, ConvTranspose3D: transposed convolutions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import given, ints, need
from ._rules import FLOAT32, require_float
from ._windows import finished, transposed
from .conv import check_bias, check_ranks, group_of, plane
from .conv_geometry import Geometry, convolution_window, transpose
from .registry import Example, register


def infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    """(N, O, *output) of x (N, I, *size), weight (I, O / group, *kernel), an optional bias and an optional output size."""
    x, weight = need(op, inputs, 0), need(op, inputs, 1)
    require_float(op, x)
    if x.rank == 3 and weight.rank == 4:  # one column, as MNN allows
        (wide,) = infer(op, [x.with_shape((*x.shape, 1)), *inputs[1:]])
        if wide.shape[3] != 1:
            raise ShapeError(f"{op}: an input of rank 3 is one column; its output would have {wide.shape[3]}")
        return [wide.with_shape(wide.shape[:3])]
    check_ranks(op, x, weight, 5 if op.type == "ConvTranspose3D" else 4)
    group = group_of(op, x)
    if weight.shape[0] != x.shape[1] or x.shape[1] % group or (op.type.endswith("Depthwise") and weight.shape[1] != 1):
        raise ShapeError(f"{op}: weight {list(weight.shape)} in {group} groups does not fit {x}; expected "
                         f"({x.shape[1]}, outputs / group, *kernel), and one output per channel if depthwise")
    outputs = weight.shape[1] * group
    check_bias(op, given(inputs, 2), outputs)
    wanted = given(inputs, 3)
    size = None if wanted is None else ints(op, wanted, "the output size (input 3)")
    return [x.with_shape((x.shape[0], outputs, *geometry(op, x.shape, weight.shape, size).output))]


def geometry(op: Op, x: Sequence[int], weight: Sequence[int], wanted: Sequence[int] | None = None) -> Geometry:
    """Where the windows lie, given the shapes of input and weight, and the shape of the result if an input tells it.

    wanted: as MNN has it, (N, H, W, C); or the spatial size alone.
    """
    w = convolution_window(op, weight[2:])
    n = len(w.kernel)
    if wanted is None:
        return transpose(op, w, x[2:])
    if len(wanted) not in (n, n + 2):
        raise ShapeError(f"{op}: output size {list(wanted)}; expected {n} numbers, or {n + 2} with the channels last")
    return transpose(op, w, x[2:], wanted if len(wanted) == n else wanted[1:-1])


def _f(*shape: int) -> Spec:
    return Spec(shape, FLOAT32)


@register("Deconvolution", param="Convolution2D", infer=infer, content=(3,), examples=[
    Example(plane((2, 2), strideX=2, strideY=2), [_f(1, 6, 5, 7), _f(6, 4, 2, 2), _f(4)], name="2x2_stride2"),
    Example(plane((3, 3), strideX=2, strideY=2, pads=(1, 1, 1, 1), outPads=(1, 1), relu=True),
            [_f(2, 16, 4, 5), _f(16, 17, 3, 3), _f(17)], name="3x3_stride2_out_pads"),
    Example(plane((4, 4), strideX=2, strideY=2, padX=1, padY=1), [_f(1, 3, 4, 6), _f(3, 8, 4, 4), _f(8)], name="4x4"),
    Example(plane((5, 1), strideY=3, pads=(1, 0, 2, 0)), [_f(2, 3, 6), _f(3, 4, 5, 1), _f(4)], name="one_column"),
    Example(plane((3, 2), strideY=3, dilateX=2, pads=(1, 0, 0, 2), outPads=(2, 0)), [_f(1, 3, 4, 5), _f(3, 2, 3, 2), _f(2)],
            name="odd_all"),
    Example(plane((3, 3), padX=1, padY=1, group=2), [_f(1, 4, 5, 5), _f(4, 3, 3, 3), _f(6)], name="groups"),
    Example(plane((3, 3), strideX=2, strideY=2, padMode="SAME"), [_f(1, 4, 5, 6), _f(4, 3, 3, 3), _f(3)], name="same"),
    Example(plane((2, 2), strideX=3, strideY=3, padMode="SAME"), [_f(1, 4, 3, 3), _f(4, 3, 2, 2), _f(3)], name="same_gaps"),
    Example(plane((3, 3), strideX=2, strideY=2, padMode="SAME", hasOutputShape=True),
            [_f(1, 4, 4, 5), _f(4, 3, 3, 3), _f(3), np.array([1, 7, 10, 3], np.int32)], name="output_shape"),
    Example(plane((2, 2)), [_f(1, 3, 4, 4), _f(3, 2, 2, 2)], name="no_bias"),
    Example(plane((2, 2)), [_f(0, 3, 4, 4), _f(3, 2, 2, 2), _f(2)], name="no_images"),
])
@register("DeconvolutionDepthwise", param="Convolution2D", infer=infer, content=(3,), examples=[
    Example(plane((4, 4), strideX=2, strideY=2, padX=1, padY=1), [_f(1, 20, 5, 6), _f(20, 1, 4, 4), _f(20)], name="4x4"),
    Example(plane((3, 3), strideX=2, padX=1, padY=1, outPads=(0, 1), relu6=True), [_f(2, 3, 5, 6), _f(3, 1, 3, 3), _f(3)],
            name="3x3_relu6"),
])
@register("ConvTranspose3D", param="Convolution3D", infer=infer, content=(3,), examples=[
    Example({"kernels": (3, 3, 3), "strides": (2, 2, 2), "pads": (1, 1, 1), "outPads": (1, 0, 1)},
            [_f(1, 3, 3, 4, 5), _f(3, 2, 3, 3, 3), _f(2)], name="3x3x3"),
    Example({"kernels": (2, 1, 3), "strides": (1, 3, 1), "dilates": (2, 1, 1), "pads": (1, 0, 1, 0, 0, 2), "group": 2},
            [_f(2, 4, 4, 3, 5), _f(4, 3, 2, 1, 3), _f(6)], name="odd_all"),
])
def deconvolution(op: Op, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None,
                  wanted: np.ndarray | None = None) -> np.ndarray:
    """Each element of x (N, I, *size) times the kernel weight (I, O / group, *kernel), added up where the kernels overlap.

    outPads lengthen the end; what no kernel reaches is the bias alone. Then `relu` or `relu6`.
    """
    if x.ndim == 3 and weight.ndim == 4:
        return deconvolution(op, x[..., None], weight, bias, wanted)[..., 0]
    size = None if wanted is None else [int(v) for v in wanted.reshape(-1)]
    out = transposed(x, weight, geometry(op, x.shape, weight.shape, size), group_of(op, x))
    return finished(op, out, bias, x.dtype)
