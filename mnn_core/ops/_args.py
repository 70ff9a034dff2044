"""Reading the arguments of ops: axes, integer lists, inputs that must be there. Errors name the op."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import GraphError, ShapeError
from ..ir import Op, Spec


def axis_of(op: Op, axis: int, rank: int) -> int:
    """A possibly negative axis as 0 <= axis < rank. Raises ShapeError."""
    if not -rank <= axis < rank:
        raise ShapeError(f"{op}: axis {axis} is not an axis of a tensor of rank {rank}; expected {-rank}..{rank - 1}")
    return int(axis) % rank


def axes_of(op: Op, axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Several axes, each once. Raises ShapeError."""
    found = tuple(axis_of(op, a, rank) for a in axes)
    if len(set(found)) != len(found):
        raise ShapeError(f"{op}: axes {list(axes)} name an axis twice (rank {rank})")
    return found


def need(op: Op, inputs: Sequence[Spec | None], index: int) -> Spec:
    """An input's spec. Raises GraphError if it is absent."""
    found = inputs[index] if index < len(inputs) else None
    if found is None:
        raise GraphError(f"{op}: input {index} is missing; it has {len(inputs)} inputs")
    return found


def given(inputs: Sequence[Spec | None], index: int) -> Spec | None:
    """An optional input's spec; None if it is absent."""
    return inputs[index] if index < len(inputs) else None


def ints(op: Op, value: Spec | np.ndarray | None, what: str) -> tuple[int, ...]:
    """An integer input as a tuple; a scalar counts as one. Raises ShapeError if its value is unknown."""
    array = value.value if isinstance(value, Spec) else value
    if array is None:
        raise ShapeError(f"{op}: {what} must be known when shapes are planned")
    if array.ndim > 1 and array.size != max(array.shape):
        raise ShapeError(f"{op}: {what} must be a list of integers, found shape {list(array.shape)}")
    return tuple(int(v) for v in array.reshape(-1))
