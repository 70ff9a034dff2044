"""Ops about order along an axis: ArgMax, ArgMin, TopKV2, CumSum, CumProd."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import axis_of
from ._rules import FLOAT32, INT32, as_array, first_outputs, known_int, number_dtype, optional, present, scalar
from .registry import Example, register


def descending(x: np.ndarray, axis: int, largest: bool = True) -> np.ndarray:
    """Indices that sort x along an axis, the largest (or smallest) first; among equals the first comes first."""
    if not largest:
        return np.argsort(x, axis=axis, kind="stable")
    backwards = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(backwards, axis)


_WHOLE = 10000  # the axis that stands for "everything but the batch" in files from Caffe


def _caffe(op: Op) -> bool:
    """Whether Caffe's form is meant: the best topK along the axis, which stays, as floats."""
    return bool(op["outMaxVal"] or op["topK"] > 1 or op["axis"] == _WHOLE)


def _arg_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    if _caffe(op):
        count = max(op["topK"], 1)
        if op["axis"] == _WHOLE:
            return [Spec((x.shape[0], 2 if op["outMaxVal"] else 1, count, *[1] * max(x.rank - 3, 0)), FLOAT32)]
        axis = axis_of(op, op["axis"], x.rank)
        return [Spec((*x.shape[:axis], count * (2 if op["outMaxVal"] else 1), *x.shape[axis + 1:]), FLOAT32)]
    axis = axis_of(op, op["axis"], x.rank)
    if x.shape[axis] == 0 and all(d for i, d in enumerate(x.shape) if i != axis):
        raise ShapeError(f"{op}: axis {axis} of {x} holds nothing to choose from")
    return [Spec((*x.shape[:axis], *x.shape[axis + 1:]), INT32)]


def _best(op: Op, x: np.ndarray, largest: bool) -> np.ndarray:
    if not _caffe(op):
        choose = np.argmax if largest else np.argmin
        if x.size == 0:
            return np.zeros(tuple(np.delete(x.shape, op["axis"])), np.int32)
        return as_array(choose(x, axis=op["axis"]), INT32)
    whole = op["axis"] == _WHOLE
    source = x.reshape(x.shape[0], -1) if whole else x
    axis = 1 if whole else op["axis"] % x.ndim
    index = np.take(descending(source, axis, largest), np.arange(max(op["topK"], 1)), axis=axis)
    parts = [index, np.take_along_axis(source, index, axis)] if op["outMaxVal"] else [index]
    if whole:
        return as_array(np.stack(parts, 1), FLOAT32).reshape(_arg_infer(op, [Spec(x.shape, x.dtype)])[0].shape)
    return as_array(np.concatenate(parts, axis), FLOAT32)


_ARG_EXAMPLES = [
    Example({"axis": 1}, [Spec((2, 5, 3), FLOAT32)]),
    Example({"axis": -1}, [Spec((4, 7), FLOAT32)], name="last"),
    Example({"axis": 0}, [Spec((9,), FLOAT32)], name="vector"),
    Example({"axis": 1}, [Spec((3, 6), INT32)], name="ties"),
    Example({"axis": 1, "topK": 2, "outMaxVal": 1}, [Spec((2, 5, 3, 1), FLOAT32)], name="caffe"),
]


@register("ArgMax", param="ArgMax", infer=_arg_infer, examples=_ARG_EXAMPLES)
def arg_max(op: Op, x: np.ndarray) -> np.ndarray:
    """Index of the first maximum along `axis`, which vanishes; int32.

    If topK > 1 or outMaxVal: Caffe's form, floats; the axis holds the topK indices (then their values).
    """
    return _best(op, x, True)


@register("ArgMin", param="ArgMax", infer=_arg_infer, examples=_ARG_EXAMPLES)
def arg_min(op: Op, x: np.ndarray) -> np.ndarray:
    """Index of the first minimum along `axis`; otherwise as ArgMax."""
    return _best(op, x, False)


def _top_axis(op: Op, inputs: Sequence[Spec | None], rank: int) -> int:
    return axis_of(op, -1 if optional(inputs, 2) is None else known_int(op, inputs, 2), rank)


def _top_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    axis, count = _top_axis(op, inputs, x.rank), known_int(op, inputs, 1)
    if not 0 <= count <= x.shape[axis]:
        raise ShapeError(f"{op}: asks for the top {count} of the {x.shape[axis]} along axis {axis} of {x}")
    shape = (*x.shape[:axis], count, *x.shape[axis + 1:])
    return [Spec(shape, x.dtype), Spec(shape, INT32)]


@register("TopKV2", param="TopKV2", infer=_top_infer, content=(1, 2), examples=[
    Example({}, [Spec((3, 8), FLOAT32), np.array(3, np.int32)]),
    Example({"largest": False}, [Spec((3, 8, 2), FLOAT32), np.array([2], np.int32), np.array(1, np.int32)], name="smallest"),
    Example({}, [Spec((3, 8), INT32), np.array([8], np.int32)], name="ties"),
    Example({}, [Spec((3, 8), FLOAT32), np.array(0, np.int32)], name="none"),
])
def top_k(op: Op, x: np.ndarray, k: np.ndarray, axis: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """The k (input 1) largest, or smallest, along an axis (input 2; the last), sorted; and their int32 indices."""
    along = -1 if axis is None else scalar(op, axis, "input 2")
    index = np.take(descending(x, along, op["largest"]), np.arange(scalar(op, k, "input 1")), axis=along)
    return first_outputs(op, (np.take_along_axis(x, index, along), as_array(index, INT32)))


def _running(op: Op, x: np.ndarray, axis: int, add: bool, exclusive: bool, reverse: bool) -> np.ndarray:
    dtype = number_dtype(x.dtype)
    axis = axis_of(op, axis, x.ndim)
    wide = x.astype(np.float64 if dtype.kind == "f" else np.int64)
    wide = np.flip(wide, axis) if reverse else wide
    if exclusive:
        first = np.full_like(np.take(wide, [0] if wide.shape[axis] else [], axis), 0 if add else 1)
        wide = np.concatenate([first, np.take(wide, np.arange(max(wide.shape[axis] - 1, 0)), axis)], axis)
    with np.errstate(all="ignore"):
        y = np.cumsum(wide, axis) if add else np.cumprod(wide, axis)
        return as_array(np.flip(y, axis) if reverse else y, dtype)


def _cumulative_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    if op.type == "CumProd":
        axis_of(op, op["axis"], x.rank)
    return [Spec(x.shape, number_dtype(x.dtype))]


@register("CumSum", param="CumSum", infer=_cumulative_infer, examples=[
    *(Example({"exclusive": e, "reverse": r}, [Spec((3, 5), FLOAT32), np.array(1, np.int32)], name=f"{e}-{r}")
      for e in (False, True) for r in (False, True)),
    Example({}, [Spec((3, 5, 2), INT32), np.array([-3], np.int32)], name="int"),
])
def cum_sum(op: Op, x: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Running sums along an axis (input 1); `exclusive` leaves the element itself out, `reverse` runs from the end."""
    return _running(op, x, scalar(op, axis, "input 1"), True, op["exclusive"], op["reverse"])


@register("CumProd", param="Axis", infer=_cumulative_infer, examples=[Example({"axis": 1}, [Spec((3, 5), FLOAT32)])])
def cum_prod(op: Op, x: np.ndarray) -> np.ndarray:
    """Running products along `axis`."""
    return _running(op, x, op["axis"], False, False, False)


@register("onnx.CumProd", attrs={"exclusive": False, "reverse": False}, infer=_cumulative_infer, examples=[
    *(Example({"exclusive": e, "reverse": r}, [Spec((3, 5), FLOAT32), np.array(1, np.int32)], name=f"{e}-{r}")
      for e in (False, True) for r in (False, True)),
])
def onnx_cum_prod(op: Op, x: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Running products along an axis (input 1); `exclusive` leaves the element itself out, `reverse` runs from the end."""
    return _running(op, x, scalar(op, axis, "input 1"), False, op["exclusive"], op["reverse"])
