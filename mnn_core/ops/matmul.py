"""Matrix products: MatMul, BatchMatMul, InnerProduct, CosineSimilarity."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import axis_of
from ._rules import FLOAT32, as_array, known_int, optional, present, require_float, same_dtype, scalar, stage
from .registry import Example, Lowered, register


def _transposed(shape: tuple[int, ...], flag: bool) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2]) if flag and len(shape) > 1 else shape


def product_shape(op: Op, a: Spec, b: Spec, transpose_a: bool, transpose_b: bool) -> tuple[int, ...]:
    """Shape of a matrix product as NumPy has it. Raises ShapeError if the operands do not fit."""
    left, right = _transposed(a.shape, transpose_a), _transposed(b.shape, transpose_b)
    wanted = f"{op}: cannot multiply {a}{' transposed' if transpose_a else ''} by {b}{' transposed' if transpose_b else ''}"
    if not left or not right:
        raise ShapeError(f"{wanted}; expected a rank of 1 or more")
    if left[-1] != right[-2 if len(right) > 1 else -1]:
        raise ShapeError(f"{wanted}: inner sizes {left[-1]} and {right[-2 if len(right) > 1 else -1]} differ")
    try:
        batch = np.broadcast_shapes(left[:-2], right[:-2])
    except ValueError:
        raise ShapeError(f"{wanted}: batch shapes do not broadcast") from None
    return (*batch, *left[-2:-1], *(right[-1:] if len(right) > 1 else ()))


def _matmul_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    if len(inputs) > 3:
        raise ShapeError(f"{op}: {len(inputs)} inputs (the quantised form) are not known; expected 2, or 3 with a bias")
    a, b, bias = present(op, inputs), present(op, inputs, 1), optional(inputs, 2)
    shape = product_shape(op, a, b, op["transposeA"], op["transposeB"])
    if bias is not None and np.broadcast_shapes(shape, bias.shape) != shape:
        raise ShapeError(f"{op}: bias {bias} does not broadcast to {list(shape)}")
    return [Spec(shape, same_dtype(op, a, b))]


def _swapped(x: np.ndarray, flag: bool) -> np.ndarray:
    return np.swapaxes(x, -1, -2) if flag and x.ndim > 1 else x


def _f(*shape: int) -> Spec:
    return Spec(shape, FLOAT32)


@register("MatMul", param="MatMul", infer=_matmul_infer, examples=[
    Example({}, [_f(5, 7), _f(7, 3)]),
    Example({}, [_f(33, 65), _f(65, 47)], name="ragged"),
    Example({"transposeA": True}, [_f(7, 5), _f(7, 3)], name="A"),
    Example({"transposeB": True}, [_f(5, 7), _f(3, 7)], name="B"),
    Example({"transposeA": True, "transposeB": True}, [_f(2, 7, 5), _f(2, 3, 7)], name="AB"),
    Example({}, [_f(2, 1, 5, 7), _f(3, 7, 4)], name="broadcast"),
    Example({}, [_f(2, 5, 7), _f(7, 4)], name="shared"),
    Example({}, [_f(7), _f(7, 4)], name="vector-matrix"),
    Example({}, [_f(2, 5, 7), _f(7)], name="matrix-vector"),
    Example({}, [_f(7), _f(7)], name="dot"),
    Example({}, [_f(5, 7), _f(7, 3), _f(3)], name="bias"),
    Example({"transposeB": True}, [_f(2, 5, 7), np.linspace(-1, 1, 21, dtype=np.float32).reshape(3, 7),
                                   np.array([1, 2, 3], np.float32)], name="weights"),
    Example({}, [_f(2, 0), _f(0, 3)], name="inner-0"),
    Example({}, [_f(1, 0, 4), _f(4, 3)], name="rows-0"),
    Example({}, [Spec((3, 4), np.dtype(np.int32)), Spec((4, 2), np.dtype(np.int32))], name="int32"),
])
def matmul(op: Op, a: np.ndarray, b: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    """a @ b (+ bias) with the last two axes swapped as transposeA and transposeB say; NumPy's rules for 1-D and batches."""
    with np.errstate(all="ignore"):
        y = np.matmul(_swapped(a, op["transposeA"]), _swapped(b, op["transposeB"]))
        return as_array(y if bias is None else y + bias, np.promote_types(a.dtype, b.dtype))


def _batch_lower(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    flags = {"transposeA": op["adjX"], "transposeB": op["adjY"]}
    return Lowered([Op("MatMul", list(op.inputs), list(op.outputs), flags, op.name)])


def _batch_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    a, b = present(op, inputs), present(op, inputs, 1)
    return [Spec(product_shape(op, a, b, op["adjX"], op["adjY"]), same_dtype(op, a, b))]


@register("BatchMatMul", param="BatchMatMulParam", infer=_batch_infer, lower=_batch_lower, examples=[
    Example({}, [_f(2, 5, 7), _f(2, 7, 3)]), Example({"adjX": True, "adjY": True}, [_f(2, 1, 7, 5), _f(3, 4, 7)]),
])
def batch_matmul(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b with the last two axes swapped as adjX and adjY say."""
    with np.errstate(all="ignore"):
        return as_array(np.matmul(_swapped(a, op["adjX"]), _swapped(b, op["adjY"])), np.promote_types(a.dtype, b.dtype))


def _inner_axis(op: Op, rank: int) -> int:
    """The first axis that is multiplied away; MNN's files leave it 0 for 1."""
    return axis_of(op, op["axis"] or 1, rank)


def _inner_weight(op: Op) -> np.ndarray:
    """The weight as [outputs, inputs]."""
    weight, count = np.asarray(op["weight"], np.float32), op["outputCount"]
    if count < 1 or not weight.size or weight.size % count:
        raise ShapeError(f"{op}: {weight.size} weights do not split into {count} outputs")
    return weight.reshape(-1, count).T if op["transpose"] else weight.reshape(count, -1)


def _inner_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    require_float(op, x)
    axis, weight = _inner_axis(op, x.rank), _inner_weight(op)
    count = math.prod(x.shape[axis:])
    if count != weight.shape[1]:
        raise ShapeError(f"{op}: {x} has {count} numbers from axis {axis} on; its weight takes {weight.shape[1]}")
    if len(op["bias"]) not in (0, weight.shape[0]):
        raise ShapeError(f"{op}: {len(op['bias'])} biases for {weight.shape[0]} outputs")
    return [Spec((*x.shape[:axis], weight.shape[0]), x.dtype)]


def _inner_lower(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    """A MatMul, after a Reshape that joins the axes that are multiplied away."""
    x = present(op, inputs)
    axis, source, ops = _inner_axis(op, x.rank), op.inputs[0], []
    constants = {stage(op, "weight"): np.ascontiguousarray(_inner_weight(op))}
    if axis != x.rank - 1:
        flat = (*x.shape[:axis], math.prod(x.shape[axis:]))
        ops.append(Op("Reshape", [source], [stage(op, "flat")], {"dims": flat}))
        source = stage(op, "flat")
    if len(op["bias"]):
        constants[stage(op, "bias")] = np.asarray(op["bias"], np.float32)
    ops.append(Op("MatMul", [source, *constants], list(op.outputs), {"transposeB": True}, op.name))
    return Lowered(ops, constants)


_WEIGHT = np.linspace(-1, 1, 14, dtype=np.float32)


@register("InnerProduct", param="InnerProduct", infer=_inner_infer, lower=_inner_lower, examples=[
    Example({"outputCount": 2, "weight": _WEIGHT, "bias": np.array([1, -1], np.float32)}, [_f(3, 7)]),
    Example({"outputCount": 2, "weight": _WEIGHT, "transpose": True, "axis": 1}, [_f(3, 7)], name="transpose"),
    Example({"outputCount": 2, "weight": _WEIGHT}, [_f(3, 7, 1)], name="flatten"),
])
def inner_product(op: Op, x: np.ndarray) -> np.ndarray:
    """x, flattened from `axis` on, times the weight [outputs, inputs], plus the bias (Caffe)."""
    axis, weight = _inner_axis(op, x.ndim), _inner_weight(op)
    with np.errstate(all="ignore"):
        y = x.reshape(*x.shape[:axis], -1) @ weight.T if x.size else np.zeros((*x.shape[:axis], len(weight)), x.dtype)
        return as_array(y + np.asarray(op["bias"]) if len(op["bias"]) else y, x.dtype)


def _cosine_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    a, b = present(op, inputs), present(op, inputs, 1)
    require_float(op, a)
    axis = axis_of(op, known_int(op, inputs, 2), a.rank)
    if a.shape != b.shape:
        raise ShapeError(f"{op}: compares {a} with {b}; expected equal shapes")
    return [Spec((*a.shape[:axis], *a.shape[axis + 1:]), a.dtype)]


@register("CosineSimilarity", infer=_cosine_infer, content=(2,), examples=[
    Example({}, [_f(2, 8, 3), _f(2, 8, 3), np.array(1, np.int32), np.array(1e-8, np.float32)]),
])
def cosine_similarity(op: Op, a: np.ndarray, b: np.ndarray, axis: np.ndarray, epsilon: np.ndarray | None = None) -> np.ndarray:
    """a . b / max(|a| |b|, epsilon) along an axis (input 2), which vanishes; epsilon (input 3) is 1e-8 if absent."""
    along = scalar(op, axis, "input 2")
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        norms = np.sqrt(np.square(x).sum(axis=along) * np.square(y).sum(axis=along))
        floor = 1e-8 if epsilon is None else float(epsilon.reshape(-1)[0])
        return as_array((x * y).sum(axis=along) / np.maximum(norms, floor), a.dtype)
