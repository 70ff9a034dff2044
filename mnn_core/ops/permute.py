"""Axes in another order: Permute, Transpose, ConvertTensor, Im2Seq."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import axes_of, ints, need
from ._regions import View, alias, raster
from .registry import Example, Lowered, register

_F32 = np.dtype(np.float32)


def _order(op: Op, dims: Sequence[int], rank: int) -> tuple[int, ...]:
    if not len(dims):
        return tuple(reversed(range(rank)))
    order = axes_of(op, dims, rank)
    if len(order) != rank:
        raise ShapeError(f"{op}: order {list(dims)} has {len(order)} axes, its input has {rank}")
    return order


def _permuted(op: Op, x: Spec, order: Sequence[int]) -> Lowered:
    src = View.of(x.shape).permute(order)
    return raster(op, {op.inputs[0]: [(src, View.of(src.shape))]}, src.shape)


def _infer_permute(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = need(op, inputs, 0)
    return [x.with_shape([x.shape[a] for a in _order(op, op["dims"], x.rank)])]


def _lower_permute(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    x = need(op, inputs, 0)
    return _permuted(op, x, _order(op, op["dims"], x.rank))


@register("Permute", param="Permute", infer=_infer_permute, lower=_lower_permute, geometry=True, examples=[
    Example({"dims": (0, 3, 1, 2)}, [Spec((2, 5, 6, 3), _F32)], name="nhwc_to_nchw"),
    Example({}, [Spec((2, 3, 4), np.dtype(np.int32))], name="reversed"),
    Example({"dims": (1, 0)}, [Spec((0, 3), _F32)], name="empty"),
])
def permute(op: Op, x: np.ndarray) -> np.ndarray:
    """Output axis i is axis dims[i] of x; no `dims`: all axes reversed."""
    return x.transpose(_order(op, op["dims"], x.ndim))


def _perm(op: Op, inputs: Sequence[Spec | None]) -> tuple[int, ...]:
    x, perm = need(op, inputs, 0), ints(op, need(op, inputs, 1), "the order (input 1)")
    if len(perm) != x.rank:
        raise ShapeError(f"{op}: order {list(perm)} has {len(perm)} axes, its input {x} has {x.rank}")
    return axes_of(op, perm, x.rank)


def _infer_transpose(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = need(op, inputs, 0)
    return [x.with_shape([x.shape[a] for a in _perm(op, inputs)])]


def _lower_transpose(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    return _permuted(op, need(op, inputs, 0), _perm(op, inputs))


@register("Transpose", param="Transpose", infer=_infer_transpose, lower=_lower_transpose, content=(1,), geometry=True,
          examples=[
    Example({}, [Spec((2, 3, 4), _F32), np.array([2, 0, 1], np.int32)]),
    Example({}, [Spec((), _F32), np.array([], np.int32)], name="scalar"),
])
def transpose(op: Op, x: np.ndarray, perm: np.ndarray) -> np.ndarray:
    """Output axis i is axis perm[i] of x."""
    return x.transpose(_perm(op, [Spec.of(x), Spec.of(perm)]))


def _format_order(op: Op, rank: int) -> tuple[int, ...]:
    last = ("NHWC", "NHWC4")
    source, dest = op["source"] in last, op["dest"] in last
    if rank <= 2 or source == dest:
        return tuple(range(rank))
    return (0, *range(2, rank), 1) if dest else (0, rank - 1, *range(1, rank - 1))


def _infer_convert(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = need(op, inputs, 0)
    return [x.with_shape([x.shape[a] for a in _format_order(op, x.rank)])]


def _lower_convert(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    x = need(op, inputs, 0)
    return _permuted(op, x, _format_order(op, x.rank))


@register("ConvertTensor", param="TensorConvertInfo", infer=_infer_convert, lower=_lower_convert, geometry=True, examples=[
    Example({"source": "NHWC", "dest": "NCHW"}, [Spec((2, 5, 6, 3), _F32)], name="nhwc_to_nchw"),
    Example({"source": "NCHW", "dest": "NHWC"}, [Spec((2, 3, 7), _F32)], name="nchw_to_nhwc"),
    Example({"source": "NCHW", "dest": "NC4HW4"}, [Spec((2, 3, 7), _F32)], name="nothing"),
    Example({"source": "NHWC", "dest": "NCHW"}, [Spec((2, 3), _F32)], name="rank_2"),
])
def convert_tensor(op: Op, x: np.ndarray) -> np.ndarray:
    """Moves the channel axis between second (NCHW, NC4HW4) and last (NHWC) place; rank 2 and less stay as they are."""
    return x.transpose(_format_order(op, x.ndim))


def _infer_im2seq(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = need(op, inputs, 0)
    if x.rank != 4:
        raise ShapeError(f"{op}: expected an input (N, C, H, W), found {x}")
    n, c, h, w = x.shape
    return [x.with_shape((w, n, c * h))]


def _lower_im2seq(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    n, c, h, w = need(op, inputs, 0).shape
    if 0 in (n, c, h, w):
        return alias(op, outputs[0].shape)
    src = View.of((n, c, h, w)).permute((3, 0, 1, 2))
    return raster(op, {op.inputs[0]: [(src, View.of((w, n, c, h)))]}, outputs[0].shape)


@register("Im2Seq", infer=_infer_im2seq, lower=_lower_im2seq, geometry=True, examples=[
    Example({}, [Spec((2, 3, 1, 5), _F32)]),
])
def im2seq(op: Op, x: np.ndarray) -> np.ndarray:
    """Columns of an image as steps of a sequence, as Caffe's text readers have it: (N, C, H, W) -> (W, N, C * H)."""
    n, c, h, w = x.shape
    return x.transpose(3, 0, 1, 2).reshape(w, n, c * h)
