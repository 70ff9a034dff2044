"""Axes backwards: Reverse, ReverseSequence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import KernelError, ShapeError
from ..ir import Op, Spec
from ._args import axes_of, axis_of, ints, need
from ._regions import FEW_REGIONS, View, raster
from .registry import Example, Lowered, register

_F32 = np.dtype(np.float32)


def _lower_reverse(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered | None:
    x, axes = need(op, inputs, 0), need(op, inputs, 1)
    if axes.value is None:
        return None
    src = View.of(x.shape)
    for axis in axes_of(op, ints(op, axes, "the axes (input 1)"), x.rank):
        src = src.cut(axis, max(0, x.shape[axis] - 1), x.shape[axis], -1)
    return raster(op, {op.inputs[0]: [(src, View.of(x.shape))]}, x.shape)


@register("Reverse", lower=_lower_reverse, geometry=True, examples=[
    Example({}, [Spec((2, 3, 4), _F32), np.array([1], np.int32)]),
    Example({}, [Spec((2, 3, 4), _F32), np.array([0, -1], np.int32)], name="two_axes"),
    Example({}, [Spec((0, 3), _F32), np.array(0, np.int32)], name="empty"),
])
def reverse(op: Op, x: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """x backwards along the axes that input 1 names."""
    return np.flip(x, axes_of(op, ints(op, axes, "the axes (input 1)"), x.ndim))


def _infer_sequence(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, lengths = need(op, inputs, 0), need(op, inputs, 1)
    batch, seq = axis_of(op, op["batchDim"], x.rank), axis_of(op, op["seqDim"], x.rank)
    if batch == seq or lengths.shape != (x.shape[batch],):
        raise ShapeError(f"{op}: expected a length for each of the {x.shape[batch]} batches on axis {batch} of {x}, and "
                         f"another axis than {seq} for the sequence; found lengths {lengths}")
    return [x.without_value()]


def _lengths(op: Op, x: Spec, lengths: np.ndarray) -> list[int]:
    steps = x.shape[axis_of(op, op["seqDim"], x.rank)]
    found = [int(n) for n in lengths]
    if any(not 0 <= n <= steps for n in found):
        raise KernelError(f"{op}: lengths {found} are not within 0..{steps}, the steps of {x}")
    return found


def _lower_sequence(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered | None:
    x, lengths = need(op, inputs, 0), need(op, inputs, 1).value
    if lengths is None or 2 * lengths.size > FEW_REGIONS:
        return None
    batch, seq = axis_of(op, op["batchDim"], x.rank), axis_of(op, op["seqDim"], x.rank)
    steps, copies = x.shape[seq], []
    for i, n in enumerate(_lengths(op, x, lengths)):
        row = View.of(x.shape).cut(batch, i, 1)
        copies += [(row.cut(seq, max(0, n - 1), n, -1), row.cut(seq, 0, n)), (row.cut(seq, n, steps - n),) * 2]
    return raster(op, {op.inputs[0]: copies}, x.shape)


@register("ReverseSequence", param="ReverseSequenceParam", infer=_infer_sequence, lower=_lower_sequence,
          geometry=True, examples=[
    Example({"batchDim": 1, "seqDim": 0}, [Spec((4, 3, 2), _F32), np.array([1, 4, 0], np.int32)]),
    Example({"batchDim": 0, "seqDim": -1}, [Spec((2, 3, 4), _F32), np.array([2, 3], np.int32)], name="last_axis"),
])
def reverse_sequence(op: Op, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Each batch's first lengths[i] steps backwards, the others as they are."""
    batch, seq = axis_of(op, op["batchDim"], x.ndim), axis_of(op, op["seqDim"], x.ndim)
    y = np.moveaxis(x.copy(), (batch, seq), (0, 1))
    for i, n in enumerate(_lengths(op, Spec.of(x), lengths)):
        y[i, :n] = y[i, :n][::-1].copy()
    return np.moveaxis(y, (0, 1), (batch, seq))


