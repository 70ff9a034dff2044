"""Where onnxruntime 1.32 is wrong or ends the process: nodes that are not drawn, with the standard's word for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

#: The inputs' values (None where absent), the attributes, the operator set.
Test = Callable[[Sequence[Any], Mapping[str, Any], int], bool]


def _empty(inputs: Sequence[Any], attrs: Mapping[str, Any], opset: int) -> bool:
    return any(isinstance(v, np.ndarray) and v.size == 0 for v in inputs)


#: Operator -> what it must not be, and why.
FAULTS: dict[str, list[tuple[Test, str]]] = {
    "InstanceNormalization": [(_empty, "ends the process on an empty image")],
}


def fault(op: str, inputs: Sequence[Any], attrs: Mapping[str, Any], opset: int) -> str:
    """Why this node is not to be tried with onnxruntime; "" if it is."""
    return next((why for test, why in FAULTS.get(op, ()) if test(inputs, attrs, opset)), "")
