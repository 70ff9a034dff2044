"""Softmax."""

from collections.abc import Sequence

import numpy as np

from ..ir import Op, Spec
from ._args import axis_of
from ._rules import as_array, present, require_float
from .registry import Example, register

_F = np.dtype(np.float32)


def _infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    """As the input, which must be of a float type; `axis` must exist (in rank 0: 0 or -1)."""
    x = present(op, inputs)
    require_float(op, x)
    axis_of(op, op["axis"], max(x.rank, 1))
    return [x.without_value()]


@register("Softmax", param="Axis", infer=_infer, examples=[
    Example({"axis": -1}, [Spec((2, 5), _F)]),
    Example({"axis": 1}, [Spec((2, 3, 4, 5), _F)]),
    Example({"axis": 0}, [Spec((7,), _F)]),
    Example({"axis": -2}, [Spec((2, 3, 33, 4), _F)]),
    Example({"axis": -1}, [Spec((3, 1000), _F)]),
    Example({"axis": 1}, [Spec((2, 0, 3), _F)], name="empty"),
])
def softmax(op: Op, x: np.ndarray) -> np.ndarray:
    """exp(x - max) / sum along `axis`. A row that holds NaN or inf, or only -inf, is NaN."""
    if x.size == 0:
        return x.copy()
    wide = np.atleast_1d(x).astype(np.float64)
    with np.errstate(all="ignore"):
        e = np.exp(wide - wide.max(axis=op["axis"], keepdims=True))
        return as_array(e / e.sum(axis=op["axis"], keepdims=True), x.dtype).reshape(x.shape)
