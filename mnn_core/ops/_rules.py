"""Small helpers that shape rules and NumPy kernels of several families share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import need

FLOAT32 = np.dtype(np.float32)
INT32 = np.dtype(np.int32)


def present(op: Op, inputs: Sequence[Spec | None], index: int = 0) -> Spec:
    """An input that must be there, the first unless told otherwise. Raises GraphError if it is absent."""
    return need(op, inputs, index)


def optional(inputs: Sequence[Any], index: int) -> Any:
    """An input (Spec or array), or None if it is absent."""
    return inputs[index] if index < len(inputs) else None


def known(op: Op, inputs: Sequence[Spec | None], index: int) -> np.ndarray:
    """The value of a content input. Raises ShapeError if the input is absent or its value is not known yet."""
    spec = present(op, inputs, index)
    if spec.value is None:
        raise ShapeError(f"{op}: the value of input {index} ({spec}) must be known to tell the output shape")
    return spec.value


def known_int(op: Op, inputs: Sequence[Spec | None], index: int) -> int:
    """A content input that holds one number. Raises ShapeError if it holds another count."""
    return scalar(op, known(op, inputs, index), f"input {index}")


def scalar(op: Op, array: np.ndarray, what: str) -> int:
    """The one integer in an array of any rank. Raises ShapeError for other sizes."""
    if array.size != 1:
        raise ShapeError(f"{op}: {what} must hold one number, not shape {list(array.shape)}")
    return int(array.reshape(-1)[0])


def broadcast(op: Op, *specs: Spec) -> tuple[int, ...]:
    """The NumPy broadcast of some shapes. Raises ShapeError naming them."""
    try:
        return np.broadcast_shapes(*(s.shape for s in specs))
    except ValueError:
        shown = " and ".join(str(list(s.shape)) for s in specs)
        raise ShapeError(f"{op}: shapes {shown} do not broadcast; each dimension must be equal, or 1") from None


def same_dtype(op: Op, *specs: Spec) -> np.dtype:
    """The one dtype of several inputs. Integers of different widths meet at the wider one, as do floats.

    Raises ShapeError if integers meet floats.
    """
    if len({s.dtype.kind in "fc" for s in specs}) > 1:
        raise ShapeError(f"{op}: dtypes {' and '.join(s.dtype.name for s in specs)} do not mix; insert a Cast")
    dtype = specs[0].dtype
    for s in specs[1:]:
        dtype = np.promote_types(dtype, s.dtype)
    return dtype


def number_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype to calculate in: bools are int32 numbers here."""
    return INT32 if dtype.kind == "b" else dtype


def require_float(op: Op, spec: Spec, index: int = 0) -> None:
    """Raises ShapeError unless an input is of a float type."""
    if spec.dtype.kind != "f":
        raise ShapeError(f"{op}: input {index} is {spec}; expected a float type: insert a Cast")


def require_matrix(op: Op, spec: Spec, index: int = 0) -> None:
    """Raises ShapeError unless an input has two dimensions at least."""
    if spec.rank < 2:
        raise ShapeError(f"{op}: input {index} is {spec}; expected a rank of 2 or more")


def as_array(value: Any, dtype: np.dtype) -> np.ndarray:
    """A result as an array (NumPy gives scalars for rank 0) of a dtype; wraps integers silently."""
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype, copy=False)


def first_outputs(op: Op, results: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """The results that an op was asked for: trailing optional outputs may be left out of its list."""
    return results[: len(op.outputs)] if op.outputs else results


def stage(op: Op, name: str) -> str:
    """The name of a tensor between the ops that an op is lowered to."""
    return f"{op.outputs[0]}/{name}"
