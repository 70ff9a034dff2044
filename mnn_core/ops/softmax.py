"""Softmax."""

import numpy as np

from ..ir import Op, Spec
from .registry import Example, register


@register("Softmax", param="Axis", examples=[
    Example({"axis": -1}, [Spec((2, 5), np.dtype(np.float32))]),
    Example({"axis": 1}, [Spec((2, 3, 4, 5), np.dtype(np.float32))]),
])
def softmax(op: Op, x: np.ndarray) -> np.ndarray:
    """exp(x - max) / sum along `axis`."""
    e = np.exp(x - x.max(axis=op["axis"], keepdims=True))
    return e / e.sum(axis=op["axis"], keepdims=True)
