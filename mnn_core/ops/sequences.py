"""ONNX sequences and optionals: values that are no tensors, held in arrays of rank 0 (see ir/dtypes.py). Run by definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir import Op
from ..ir.dtypes import OBJECT
from ._args import axis_of
from ._rules import INT32, scalar
from .registry import register

Items = tuple[np.ndarray, ...]


def boxed(value: Any) -> np.ndarray:
    """A Python value as an array of rank 0."""
    box = np.empty((), object)
    box[()] = value
    return box


def _items(op: Op, sequence: np.ndarray | None) -> Items:
    if sequence is None or sequence.dtype != OBJECT or sequence.ndim or not isinstance(sequence[()], tuple):
        shown = "nothing" if sequence is None else f"{sequence.dtype}{list(sequence.shape)}"
        raise ShapeError(f"{op}: its first input is {shown}; expected a sequence")
    return sequence[()]


def _place(op: Op, items: Items, position: np.ndarray, end: int) -> int:
    """A position, counted from the end if it is negative; `end` is the largest that is allowed."""
    index = scalar(op, position, "the position")
    if not -len(items) <= index <= end:
        raise ShapeError(f"{op}: position {index} is outside of a sequence of {len(items)}")
    return index + len(items) if index < 0 else index


@register("onnx.SequenceEmpty", dynamic=True)
def sequence_empty(op: Op) -> np.ndarray:
    """A sequence of nothing."""
    return boxed(())


@register("onnx.SequenceConstruct", dynamic=True)
def sequence_construct(op: Op, *tensors: np.ndarray) -> np.ndarray:
    """A sequence of the inputs."""
    return boxed(tuple(tensors))


@register("onnx.SequenceInsert", dynamic=True)
def sequence_insert(op: Op, sequence: np.ndarray, tensor: np.ndarray, position: np.ndarray | None = None) -> np.ndarray:
    """The sequence with a tensor put before a position, at its end if none is given."""
    items = _items(op, sequence)
    at = len(items) if position is None else _place(op, items, position, len(items))
    return boxed((*items[:at], tensor, *items[at:]))


@register("onnx.SequenceErase", dynamic=True)
def sequence_erase(op: Op, sequence: np.ndarray, position: np.ndarray | None = None) -> np.ndarray:
    """The sequence without the tensor at a position, the last one if none is given."""
    items = _items(op, sequence)
    at = _place(op, items, np.array(-1) if position is None else position, len(items) - 1)
    return boxed((*items[:at], *items[at + 1:]))


@register("onnx.SequenceAt", dynamic=True)
def sequence_at(op: Op, sequence: np.ndarray, position: np.ndarray) -> np.ndarray:
    """The tensor at a position."""
    items = _items(op, sequence)
    return items[_place(op, items, position, len(items) - 1)]


@register("onnx.SequenceLength", dynamic=True)
def sequence_length(op: Op, sequence: np.ndarray) -> np.ndarray:
    """How many tensors a sequence holds, int32 of rank 0."""
    return np.array(len(_items(op, sequence)), INT32)


@register("onnx.ConcatFromSequence", attrs={"axis": 0, "new_axis": False}, dynamic=True)
def concat_from_sequence(op: Op, sequence: np.ndarray) -> np.ndarray:
    """The tensors of a sequence, joined along an axis, or stacked along a new one."""
    items = _items(op, sequence)
    if not items:
        raise ShapeError(f"{op}: an empty sequence cannot be joined")
    if op["new_axis"]:
        return np.stack(items, axis_of(op, op["axis"], items[0].ndim + 1))
    return np.concatenate(items, axis_of(op, op["axis"], items[0].ndim))


@register("onnx.SplitToSequence", attrs={"axis": 0, "keepdims": True}, dynamic=True)
def split_to_sequence(op: Op, x: np.ndarray, split: np.ndarray | None = None) -> np.ndarray:
    """Pieces of x along an axis: of the lengths given, of one length given as a scalar, or single slices.

    keepdims: whether single slices keep the axis; it does not count if lengths are given.
    """
    axis = axis_of(op, op["axis"], x.ndim)
    length = x.shape[axis]
    if split is not None and split.ndim == 0:
        step = int(split)
        if step < 1:
            raise ShapeError(f"{op}: pieces of length {step}; expected 1 or more")
        ends = list(range(step, length, step))
    elif split is not None:
        if (split < 0).any() or split.sum() != length:
            raise ShapeError(f"{op}: pieces of lengths {split.tolist()} do not make up {length}")
        ends = np.cumsum(split)[:-1].tolist()
    else:
        ends = list(range(1, length))
    pieces = np.split(x, ends, axis)
    if split is None and not op["keepdims"]:
        pieces = [p.squeeze(axis) for p in pieces]
    return boxed(tuple(np.ascontiguousarray(p).reshape(p.shape) for p in pieces))


def _is_none(value: np.ndarray | None) -> bool:
    return value is None or (value.dtype == OBJECT and value.ndim == 0 and value[()] is None)


@register("onnx.Optional", dynamic=True)
def optional(op: Op, value: np.ndarray | None = None) -> np.ndarray:
    """The value, or an optional without one."""
    return boxed(None) if value is None else value


@register("onnx.OptionalHasElement", dynamic=True)
def optional_has_element(op: Op, value: np.ndarray | None = None) -> np.ndarray:
    """1 if there is a value, else 0; int32 of rank 0."""
    return np.array(not _is_none(value), INT32)


@register("onnx.OptionalGetElement", dynamic=True)
def optional_get_element(op: Op, value: np.ndarray | None = None) -> np.ndarray:
    """The value. Raises ShapeError if there is none."""
    if value is None or _is_none(value):
        raise ShapeError(f"{op}: the optional holds no value")
    return value
