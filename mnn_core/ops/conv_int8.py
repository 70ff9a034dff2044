"""ConvInt8 and DepthwiseConvInt8: convolutions of int8 with int8 weights, which lie in the attribute symmetricQuan."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import need
from ._rules import FLOAT32
from ._windows import convolution
from .conv import geometry, group_of, plane
from .quant import INT8
from .registry import Example, register


def _table(op: Op) -> Mapping[str, Any]:
    found = op["symmetricQuan"]
    if not isinstance(found, Mapping) or not np.size(found.get("weight", ())):
        raise ShapeError(f"{op}: its attribute symmetricQuan holds no weight")
    return found


def _weight_shape(op: Op, channels: int) -> tuple[int, int, int, int]:
    outputs = op["outputCount"]
    shape = (outputs, channels // group_of(op, Spec((1, channels), INT8)), op["kernelY"], op["kernelX"])
    if math.prod(shape) != np.size(_table(op)["weight"]) or outputs % group_of(op, Spec((1, channels), INT8)):
        raise ShapeError(f"{op}: {np.size(_table(op)['weight'])} weights; {channels} channels need {list(shape)}")
    return shape


def _infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, table = need(op, inputs, 0), _table(op)
    if x.rank != 4 or x.dtype != INT8:
        raise ShapeError(f"{op}: expected int8 (N, C, H, W), found {x}")
    shape = _weight_shape(op, x.shape[1])
    for name in ("bias", "scale"):
        if np.size(table.get(name, ())) not in (0, 1, shape[0]):
            raise ShapeError(f"{op}: {np.size(table[name])} numbers of {name} for {shape[0]} output channels")
    dtype = FLOAT32 if table.get("outputDataType", "DT_INT8") == "DT_FLOAT" else INT8
    return [Spec((x.shape[0], shape[0], *geometry(op, x.shape, shape).output), dtype)]


def _quan(weights: int, outputs: int, **more: Any) -> dict[str, Any]:
    rng = np.random.default_rng(weights)
    return {"weight": rng.integers(-127, 128, weights).astype(np.int8),
            "bias": rng.integers(-500, 500, outputs).astype(np.int32),
            "scale": (0.001 + 0.004 * rng.random(outputs)).astype(np.float32), **more}


_X = Spec((2, 3, 6, 7), INT8)


@register("ConvInt8", param="Convolution2D", infer=_infer, examples=[
    Example(plane((3, 3), pads=(1, 1, 1, 1), outputCount=4, symmetricQuan=_quan(108, 4, clampMin=-127)), [_X]),
    Example(plane((3, 2), strideX=2, outputCount=5, relu=True, padX=1,
                  symmetricQuan=_quan(90, 5, zeroPoint=3, outputZeroPoint=-5)), [_X], name="zero_points"),
    Example(plane((1, 1), outputCount=2, symmetricQuan=_quan(6, 2, outputDataType="DT_FLOAT")), [_X], name="to_float"),
])
@register("DepthwiseConvInt8", param="Convolution2D", infer=_infer, examples=[
    Example(plane((3, 3), pads=(1, 1, 1, 1), outputCount=3, symmetricQuan=_quan(27, 3, zeroPoint=-2)), [_X]),
])
def conv_int8(op: Op, x: np.ndarray) -> np.ndarray:
    """(sum of x * weight + bias) * scale, with scale and bias per output channel; padding is zeroPoint.

    What the zero points add is in the bias, as real files have it: -zeroPoint * sum of weights + outputZeroPoint / scale.
    outputDataType DT_INT8: rounded half to even and clipped to clampMin..clampMax, and with `relu` to outputZeroPoint at
    least. DT_FLOAT: as it is, with `relu` 0 at least.
    """
    table = _table(op)
    shape = _weight_shape(op, x.shape[1])
    weight = np.asarray(table["weight"], np.int8).reshape(shape)
    g = geometry(op, x.shape, shape)
    total = convolution(x, weight, g, group_of(op, x), table.get("zeroPoint", 0))
    bias, scale = (np.asarray(table.get(n, ()), np.float64).reshape(-1, 1, 1) for n in ("bias", "scale"))
    total = total + bias if bias.size else total
    total = total * scale if scale.size else total
    if table.get("outputDataType", "DT_INT8") == "DT_FLOAT":
        return (np.maximum(total, 0) if op["relu"] or op["relu6"] else total).astype(np.float32)
    low, high = table.get("clampMin", -128), table.get("clampMax", 127)
    low = max(low, table.get("outputZeroPoint", 0)) if op["relu"] or op["relu6"] else low
    return np.clip(np.rint(total), low, high).astype(np.int8)
