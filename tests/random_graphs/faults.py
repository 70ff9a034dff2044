"""Nodes that are not drawn: where onnxruntime 1.32 is wrong or ends the process, or the standard leaves the result open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

#: The inputs' values (None where absent), the attributes, the operator set.
Test = Callable[[Sequence[Any], Mapping[str, Any], int], bool]


def _empty(inputs: Sequence[Any], attrs: Mapping[str, Any], opset: int) -> bool:
    return any(isinstance(v, np.ndarray) and v.size == 0 for v in inputs)


def _reduces_nothing(inputs: Sequence[Any], attrs: Mapping[str, Any], opset: int) -> bool:
    return inputs[0].size == 0


def _constant_groups(inputs: Sequence[Any], attrs: Mapping[str, Any], opset: int) -> bool:
    axes = tuple(attrs.get("axes", (0, 2, 3)))
    if inputs[0].size == 0:
        return True
    return bool((np.ptp(inputs[0].astype(np.float64), axis=axes) < 1e-3).any())


def _no_classes(inputs: Sequence[Any], attrs: Mapping[str, Any], opset: int) -> bool:
    return inputs[0].size == 0


def _same_wide_strides(inputs: Sequence[Any], attrs: Mapping[str, Any], opset: int) -> bool:
    strides = attrs.get("strides", [1])
    return attrs.get("auto_pad") in ("SAME_UPPER", "SAME_LOWER") and max(strides) > min(attrs.get("kernel_shape", [1]))


def _odd_window(inputs: Sequence[Any], attrs: Mapping[str, Any], opset: int) -> bool:
    kernel, size = attrs["kernel_shape"], inputs[0].shape[2:]
    strides, dilations = attrs.get("strides", [1] * len(size)), attrs.get("dilations", [1] * len(size))
    pads = attrs.get("pads", [0] * 2 * len(size))
    if attrs.get("auto_pad") in ("SAME_UPPER", "SAME_LOWER"):
        return max(dilations) > 1 or any(s > k for s, k in zip(strides, kernel))
    if attrs.get("auto_pad") == "VALID" and attrs.get("ceil_mode"):
        return True
    return any(d * (k - 1) + 1 > n + b + e for d, k, n, b, e in zip(dilations, kernel, size, pads, pads[len(size):]))


def _open_resize(inputs: Sequence[Any], attrs: Mapping[str, Any], opset: int) -> bool:
    scales, sizes = (inputs[i] if len(inputs) > i else None for i in ((2, 3) if opset >= 11 else (1, 9)))
    whole = attrs.get("mode", "nearest") == "nearest" or inputs[0].dtype.kind == "f"
    if opset < 11:
        return not whole or (attrs.get("mode", "nearest") == "nearest" and bool((scales < 1).any()))
    given = scales if scales is not None and scales.size else sizes
    shape = inputs[0].shape if "axes" not in attrs else [inputs[0].shape[a] for a in attrs["axes"]]
    same = bool((given == 1).all()) if given is scales else list(given) == list(shape)
    return not whole or (same and attrs.get("coordinate_transformation_mode") == "tf_crop_and_resize")


_OPEN = "the standard leaves open what a reduction of nothing gives"

_POOL = [(_odd_window, "SAME with dilations is another size in onnxruntime; the standard says nothing of strides beyond the "
                       "kernel, where its formula gives negative padding, and of windows that do not fit; and by its "
                       "formula all windows of VALID are whole, whatever ceil_mode says")]

#: Operator -> what it must not be, and why.
FAULTS: dict[str, list[tuple[Test, str]]] = {
    "MaxPool": _POOL, "AveragePool": _POOL, "LpPool": _POOL,
    "InstanceNormalization": [(_empty, "onnxruntime ends the process on an empty image")],
    "MeanVarianceNormalization": [(_constant_groups, "the standard adds 1e-9 to the deviation, onnxruntime divides by zero")],
    "ReduceMean": [(_reduces_nothing, _OPEN)],
    "ReduceMax": [(_reduces_nothing, _OPEN)],
    "ReduceMin": [(_reduces_nothing, _OPEN)],
    "ReduceLogSumExp": [(lambda i, a, o: i[0].dtype.kind != "f", "onnxruntime rounds integers in the middle")],
    "Hardmax": [(_no_classes, "the place of the maximum of nothing")],
    "DynamicQuantizeLinear": [(lambda i, a, o: not i[0].any(), "the scale of zeros is 0 by the formula, 1 in onnxruntime")],
    "Scan": [(_empty, "onnxruntime ends the process, for it divides by the size of a slice")],
    "QLinearMatMul": [(_empty, "onnxruntime gives memory as it finds it for a sum of nothing")],
    "Resize": [(_open_resize, "the standard tells neither how integers are rounded nor, for opset 10, which neighbour is "
                              "nearest; onnxruntime does not crop if the size stays")],
    "Upsample": [(lambda i, a, o: a.get("mode") == "linear" and i[0].dtype.kind != "f", "the rounding of integers is open")],
    "Col2Im": [(lambda i, a, o: i[2].size != 2, "onnxruntime mixes up elements unless there are two dimensions")],
    "SplitToSequence": [(lambda i, a, o: len(i) > 1 and i[1] is not None and a.get("keepdims") == 0,
                         "keepdims counts only without a split, which onnxruntime does not heed")],
    "AffineGrid": [(lambda i, a, o: a.get("align_corners") == 1 and 1 in i[1][2:], "the standard divides by the size - 1")],
    "Attention": [(lambda i, a, o: a.get("qk_matmul_output_mode") in (1, 2),
                   "what is masked is -infinity, in onnxruntime the least number")],
    "BitCast": [(lambda i, a, o: i[0].dtype.itemsize == 8, "types of 64 bits are computed with 32")],
    "RoiAlign": [(lambda i, a, o: a.get("mode") == "max", "onnxruntime says itself that its maximum is wrong")],
    "ConvTranspose": [(_same_wide_strides, "SAME makes input * stride, in onnxruntime less if the stride exceeds the kernel")],
}


def fault(op: str, inputs: Sequence[Any], attrs: Mapping[str, Any], opset: int) -> str:
    """Why this node is not to be tried with onnxruntime; "" if it is."""
    return next((why for test, why in FAULTS.get(op, ()) if test(inputs, attrs, opset)), "")
