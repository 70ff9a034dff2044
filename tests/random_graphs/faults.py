"""Nodes that are not drawn: where onnxruntime 1.32 is wrong or ends the process, and where the standard leaves the result open."""

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
    return bool((np.ptp(inputs[0].astype(np.float64), axis=axes) < 1e-3).any())


def _no_classes(inputs: Sequence[Any], attrs: Mapping[str, Any], opset: int) -> bool:
    return inputs[0].size == 0


def _same_wide_strides(inputs: Sequence[Any], attrs: Mapping[str, Any], opset: int) -> bool:
    strides = attrs.get("strides", [1])
    return attrs.get("auto_pad") in ("SAME_UPPER", "SAME_LOWER") and max(strides) > min(attrs.get("kernel_shape", [1]))


_OPEN = "the standard leaves open what a reduction of nothing gives"

#: Operator -> what it must not be, and why.
FAULTS: dict[str, list[tuple[Test, str]]] = {
    "InstanceNormalization": [(_empty, "onnxruntime ends the process on an empty image")],
    "MeanVarianceNormalization": [(_constant_groups, "the standard adds 1e-9 to the deviation, onnxruntime divides by zero")],
    "ReduceMean": [(_reduces_nothing, _OPEN)],
    "ReduceMax": [(_reduces_nothing, _OPEN)],
    "ReduceMin": [(_reduces_nothing, _OPEN)],
    "Hardmax": [(_no_classes, "the place of the maximum of nothing")],
    "DynamicQuantizeLinear": [(lambda i, a, o: not i[0].any(), "the scale of zeros is 0 by the formula, 1 in onnxruntime")],
    "RoiAlign": [(lambda i, a, o: a.get("mode") == "max", "onnxruntime says itself that its maximum is wrong")],
    "ConvTranspose": [(_same_wide_strides, "SAME makes input * stride of it, in onnxruntime less if the stride exceeds the kernel")],
}


def fault(op: str, inputs: Sequence[Any], attrs: Mapping[str, Any], opset: int) -> str:
    """Why this node is not to be tried with onnxruntime; "" if it is."""
    return next((why for test, why in FAULTS.get(op, ()) if test(inputs, attrs, opset)), "")
