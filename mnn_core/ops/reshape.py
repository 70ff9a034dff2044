"""Ops that only change the shape: Reshape, Flatten, Squeeze, Unsqueeze, ExpandDims. None of them copies anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import axes_of, axis_of, given, ints, need
from ._regions import alias
from .registry import Example, Infer, Lowered, register

_F32 = np.dtype(np.float32)
#: (op, input shape, value of input 1 or None) -> output shape
Rule = Callable[[Op, tuple[int, ...], "Spec | np.ndarray | None"], tuple[int, ...]]


def _rule(shape_of: Rule) -> Infer:
    def infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
        x = need(op, inputs, 0)
        return [x.with_shape(shape_of(op, x.shape, given(inputs, 1)))]

    return infer


def _lower(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    return alias(op, outputs[0].shape)


def _i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def _reshape_shape(op: Op, shape: tuple[int, ...], wanted: Spec | np.ndarray | None) -> tuple[int, ...]:
    dims = list(op["dims"] if wanted is None else ints(op, wanted, "the shape (input 1)"))
    empty = 0 in shape and -1 not in dims and (len(dims) > len(shape) or prod(d or n for d, n in zip(dims, shape)) != 0)
    if op["dimType"] != "NHWC" and not empty:
        for i, d in enumerate(dims):
            if d == 0 and i >= len(shape):
                raise ShapeError(f"{op}: shape {dims} copies dimension {i} of an input of shape {list(shape)}")
            dims[i] = shape[i] if d == 0 else d
    total, known = prod(shape), prod(d for d in dims if d != -1)
    if dims.count(-1) == 1 and known > 0 and total % known == 0:
        dims[dims.index(-1)] = total // known
    if min(dims, default=0) < 0 or prod(dims) != total:
        raise ShapeError(f"{op}: shape {list(shape)} ({total} elements) cannot be reshaped to {dims}"
                         + " (at most one dimension may be -1)" * (dims.count(-1) > 1))
    return tuple(dims)


@register("Reshape", param="Reshape", infer=_rule(_reshape_shape), lower=_lower, content=(1,), geometry=True, examples=[
    Example({"dims": (4, 6)}, [Spec((2, 3, 4), _F32)], name="attribute"),
    Example({}, [Spec((2, 3, 4), _F32), _i32(0, -1)], name="zero_and_minus_one"),
    Example({"dimType": "NHWC"}, [Spec((0, 3), _F32), _i32(3, 0)], name="allowzero"),
    Example({}, [Spec((1, 1), np.dtype(np.int32)), _i32()], name="to_scalar"),
    Example({}, [Spec((1, 0), _F32), _i32(0, 3, 4, 0)], name="of-nothing"),
])
def reshape(op: Op, x: np.ndarray, shape: np.ndarray | None = None) -> np.ndarray:
    """x in another shape: input 1, or `dims`. -1 is worked out; 0 copies the input's dimension.

    With `dimType` "NHWC" (TensorFlow's Reshape, and ONNX's with allowzero=1) a 0 means 0; so it does for an input of no
    elements that copied dimensions would not fit, as shapes that were computed have it.
    """
    return x.reshape(_reshape_shape(op, x.shape, shape))


def _flatten_shape(op: Op, shape: tuple[int, ...], _: Spec | np.ndarray | None) -> tuple[int, ...]:
    rank, axis, end = len(shape), op["axis"], op["endAxis"]
    if end == 0:
        if not -rank <= axis <= rank:
            raise ShapeError(f"{op}: axis {axis} is outside {-rank}..{rank} for a tensor of rank {rank}")
        axis = axis + rank if axis < 0 else axis
        return prod(shape[:axis]), prod(shape[axis:])
    axis, end = axis_of(op, axis, rank), axis_of(op, end, rank)
    if end < axis:
        raise ShapeError(f"{op}: endAxis {op['endAxis']} comes before axis {op['axis']} (shape {list(shape)})")
    return (*shape[:axis], prod(shape[axis:end + 1]), *shape[end + 1:])


@register("Flatten", param="Flatten", infer=_rule(_flatten_shape), lower=_lower, geometry=True, examples=[
    Example({"axis": 1}, [Spec((2, 3, 4), _F32)], name="matrix"),
    Example({"axis": -1}, [Spec((2, 3, 4), _F32)], name="negative_axis"),
    Example({"axis": 1, "endAxis": -1}, [Spec((2, 3, 4, 5), _F32)], name="range"),
    Example({"axis": 0}, [Spec((), _F32)], name="scalar"),
])
def flatten(op: Op, x: np.ndarray) -> np.ndarray:
    """x as a matrix cut at `axis` (ONNX); with `endAxis` other than 0, its axes axis..endAxis merged into one."""
    return x.reshape(_flatten_shape(op, x.shape, None))


def _squeeze_shape(op: Op, shape: tuple[int, ...], axes: Spec | np.ndarray | None) -> tuple[int, ...]:
    named = op["squeezeDims"] if axes is None else ints(op, axes, "the axes (input 1)")
    if axes is None and not len(named):
        return tuple(d for d in shape if d != 1)
    gone = axes_of(op, named, len(shape))
    if any(shape[a] != 1 for a in gone):
        raise ShapeError(f"{op}: cannot squeeze axes {list(named)} of shape {list(shape)}; they must have size 1")
    return tuple(d for a, d in enumerate(shape) if a not in gone)


@register("Squeeze", param="SqueezeParam", infer=_rule(_squeeze_shape), lower=_lower, content=(1,), geometry=True, examples=[
    Example({"squeezeDims": (1, -1)}, [Spec((2, 1, 3, 1), _F32)]),
    Example({}, [Spec((1, 1, 1), _F32)], name="to_scalar"),
    Example({}, [Spec((1, 2, 1), _F32), _i32(-1)], name="axes_input"),
])
def squeeze(op: Op, x: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
    """x without the axes of size 1 that input 1 or `squeezeDims` name; without all of them if neither is there."""
    return x.reshape(_squeeze_shape(op, x.shape, axes))


def _with_axes(op: Op, shape: tuple[int, ...], axes: Sequence[int]) -> tuple[int, ...]:
    rank = len(shape) + len(axes)
    new = axes_of(op, axes, rank)
    rest = iter(shape)
    return tuple(1 if a in new else next(rest) for a in range(rank))


def _unsqueeze_shape(op: Op, shape: tuple[int, ...], axes: Spec | np.ndarray | None) -> tuple[int, ...]:
    return _with_axes(op, shape, op["squeezeDims"] if axes is None else ints(op, axes, "the axes (input 1)"))


@register("Unsqueeze", param="SqueezeParam", infer=_rule(_unsqueeze_shape), lower=_lower, content=(1,), geometry=True,
          examples=[
    Example({"squeezeDims": (0, -1)}, [Spec((2, 3), _F32)]),
    Example({}, [Spec((), _F32), _i32(0)], name="scalar"),
])
def unsqueeze(op: Op, x: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
    """x with axes of size 1 where input 1 or `squeezeDims` say; they count in the output's rank."""
    return x.reshape(_unsqueeze_shape(op, x.shape, axes))


def _expand_shape(op: Op, shape: tuple[int, ...], axis: Spec | np.ndarray | None) -> tuple[int, ...]:
    return _with_axes(op, shape, (op["axis"],) if axis is None else ints(op, axis, "the axis (input 1)"))


@register("ExpandDims", param="ExpandDims", infer=_rule(_expand_shape), lower=_lower, content=(1,), geometry=True, examples=[
    Example({"axis": -1}, [Spec((2, 3), _F32)]),
    Example({}, [Spec((2, 3), _F32), np.array(1, np.int32)], name="axis_input"),
])
def expand_dims(op: Op, x: np.ndarray, axis: np.ndarray | None = None) -> np.ndarray:
    """x with a new axis of size 1, where input 1 or `axis` says."""
    return x.reshape(_expand_shape(op, x.shape, axis))
