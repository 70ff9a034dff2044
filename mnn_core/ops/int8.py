"""Ops on quantised numbers: what the pass `quantized` makes of quantised networks. They are in no file.

A quantised number q, int8 or uint8, stands for (q - zero) * scale. Zero points are those of the numbers that they belong to.
Sums are exact, in int32. Rounding is half to even, and saturates; NaN becomes the number 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import given, need
from ._rules import FLOAT32, INT32, as_array, broadcast, present, require_float
from ._windows import convolution
from .cast import cast
from .conv import geometry, group_of, plane
from .registry import Example, register

INT8, UINT8 = np.dtype(np.int8), np.dtype(np.uint8)
#: What products of quantised numbers may become.
_RESULTS = {t.name: t for t in (INT8, UINT8, INT32, FLOAT32)}
_BYTES = (INT8, UINT8)
_LIMITS: dict[np.dtype, tuple[int, int]] = {INT8: (-128, 127), UINT8: (0, 255)}


def _require_bytes(op: Op, spec: Spec, index: int = 0) -> None:
    if spec.dtype not in _BYTES:
        raise ShapeError(f"{op}: input {index} is {spec}; expected int8 or uint8")


def _result(op: Op) -> np.dtype:
    if op["to"] not in _RESULTS:
        raise ShapeError(f"{op}: cannot make {op['to']!r}; expected one of {', '.join(_RESULTS)}")
    return _RESULTS[op["to"]]


def _number(op: Op, inputs: Sequence[Spec | None], index: int, sizes: Sequence[int]) -> None:
    """Raises ShapeError unless an optional input holds one of so many numbers."""
    spec = given(inputs, index)
    if spec is not None and spec.size not in sizes:
        raise ShapeError(f"{op}: input {index} is {spec}; expected {' or '.join(map(str, sorted(set(sizes))))} numbers")


def _along(values: np.ndarray | None, axis: int, rank: int) -> Any:
    """One number, or one for each place along an axis, to broadcast; 0 for what is absent."""
    if values is None or values.size == 1:
        return 0 if values is None else values.reshape(())
    return values.reshape(-1, *(1,) * (rank - 1 - axis % rank))


def _rounded(x: np.ndarray, zero: Any, low: int, high: int, dtype: np.dtype) -> np.ndarray:
    """x, float32, rounded, moved by zero and clipped."""
    with np.errstate(all="ignore"):
        return cast(np.clip(np.rint(x) + np.asarray(zero, np.float32), np.float32(low), np.float32(high)), dtype)


def _limits(op: Op, dtype: np.dtype) -> tuple[int, int]:
    low, high = _LIMITS[dtype]
    return max(op["low"], low), min(op["high"], high)


def finished(op: Op, total: np.ndarray, scale: np.ndarray | None, bias: np.ndarray | None, axis: int) -> np.ndarray:
    """Sums, int32, as what the op makes: with the bias, in steps of a scale.

    int32: sums and bias. float32: sums * scale + bias. int8, uint8: (sums + bias) * scale, rounded.
    """
    dtype, rank = _result(op), total.ndim
    step, shift = (_along(v, axis, rank) for v in (scale, bias))
    step = np.float32(1) if scale is None else step
    if dtype == FLOAT32:
        return as_array(total.astype(np.float32) * step + shift, FLOAT32)
    total = as_array(total + shift, INT32)
    return total if dtype == INT32 else _rounded(total.astype(np.float32) * step, op["zero"], *_limits(op, dtype), dtype)


def _quantize_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    require_float(op, x)
    if _result(op) not in _BYTES:
        raise ShapeError(f"{op}: numbers are quantised to int8 or uint8, not {op['to']}")
    for index in (1, 2):
        _number(op, inputs, index, (1, x.shape[op["axis"]]) if -x.rank <= op["axis"] < x.rank else (1,))
    return [Spec(x.shape, _result(op))]


_IMAGE = Spec((2, 3, 4, 5), FLOAT32)
_F = np.float32


def _one(value: float, dtype: np.dtype = FLOAT32) -> np.ndarray:
    return np.array(value, dtype)


_ODD = np.array([.5, 1.5, 2.5, -.5, 300, -300, np.inf, -np.inf, np.nan, 0.0125, 126.5, 127.5], np.float32)


@register("int8.Quantize", attrs={"axis": 1, "to": "uint8"}, infer=_quantize_infer, examples=[
    Example({"to": "int8"}, [_IMAGE, _one(0.05), _one(3, INT8)], name="int8"),
    Example({}, [_IMAGE, _one(0.02), _one(128, UINT8)], name="uint8"),
    Example({"to": "int8"}, [_IMAGE, np.array([.02, .05, .01], _F), np.array([0, 3, -128], np.int8)], name="channels"),
    Example({}, [_ODD, _one(1), None], name="round"),
])
def quantize(op: Op, x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None = None) -> np.ndarray:
    """round(x / scale) + zero: inputs are x, a scale and an optional zero point, or as many as `axis` is long."""
    axis, dtype = op["axis"], _RESULTS[op["to"]]
    with np.errstate(all="ignore"):
        quotient = x.astype(np.float32, copy=False) / _along(scale.astype(np.float32), axis, max(x.ndim, 1))
    return _rounded(quotient, _along(zero, axis, max(x.ndim, 1)), *_LIMITS[dtype], dtype).reshape(x.shape)


def _dequantize_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    q = present(op, inputs)
    _require_bytes(op, q)
    for index in (1, 2):
        _number(op, inputs, index, (1, q.shape[op["axis"]]) if -q.rank <= op["axis"] < q.rank else (1,))
    return [Spec(q.shape, FLOAT32)]


_BYTE_IMAGE = Spec((2, 3, 4, 5), UINT8)


@register("int8.Dequantize", attrs={"axis": 1}, infer=_dequantize_infer, examples=[
    Example({}, [Spec((2, 3, 4, 5), INT8), _one(0.05), _one(3, INT8)], name="int8"),
    Example({}, [_BYTE_IMAGE, _one(0.05), None], name="uint8"),
    Example({}, [_BYTE_IMAGE, np.array([.02, .05, .01], _F), np.array([0, 3, 255], np.uint8)], name="channels"),
])
def dequantize(op: Op, q: np.ndarray, scale: np.ndarray, zero: np.ndarray | None = None) -> np.ndarray:
    """(q - zero) * scale: inputs as of int8.Quantize."""
    rank = max(q.ndim, 1)
    centred = q.astype(np.float32) - np.asarray(_along(zero, op["axis"], rank), np.float32)
    return as_array(centred * _along(scale.astype(np.float32), op["axis"], rank), FLOAT32).reshape(q.shape)


def _dynamic_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    require_float(op, x)
    return [Spec(x.shape, UINT8), Spec((), FLOAT32), Spec((), UINT8)]


@register("int8.DynamicQuantize", infer=_dynamic_infer, examples=[
    Example({}, [_IMAGE]), Example({}, [Spec((70, 1000), FLOAT32)], name="large"),
    Example({}, [np.zeros((2, 3), np.float32)], name="zeros"), Example({}, [np.array([3, 4, 5.5], _F)], name="positive"),
])
def dynamic_quantize(op: Op, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x as uint8 with the scale and zero point that fit its extent and 0: ONNX DynamicQuantizeLinear. Zeros have scale 1."""
    low, high = np.float32(x.min(initial=0)), np.float32(x.max(initial=0))
    with np.errstate(all="ignore"):
        scale = np.float32((high - low) / np.float32(255)) or np.float32(1)
        zero = np.clip(np.rint(-low / scale), 0, 255)
        q = _rounded(x.astype(np.float32, copy=False) / scale, zero, 0, 255, UINT8)
    return q, np.array(scale, np.float32), cast(np.array(zero, np.float32), UINT8)


def _matmul_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    a, b = need(op, inputs, 0), need(op, inputs, 1)
    for index, spec in enumerate((a, b)):
        _require_bytes(op, spec, index)
        if spec.rank < (1 if index == 0 else 2):
            raise ShapeError(f"{op}: input {index} is {spec}; expected a matrix")
    inner, columns = b.shape[-2:][::-1] if op["transposeB"] else b.shape[-2:]
    if a.shape[-1] != inner:
        raise ShapeError(f"{op}: {a} times {b}{' transposed' if op['transposeB'] else ''}: inner dimensions differ")
    _number(op, inputs, 2, (1,))
    for index in (3, 4, 5):
        _number(op, inputs, index, (1, columns))
    leading = broadcast(op, a.with_shape(a.shape[:-2]), b.with_shape(b.shape[:-2]))
    return [Spec((*leading, *a.shape[-2:-1], columns), _result(op))]


#: Of products: what they make; where they make 8-bit numbers, the zero point of these, and their least and greatest.
_MADE = {"to": "int32", "zero": 0, "low": -128, "high": 255}


def _bytes(seed: int, dtype: np.dtype, *shape: int) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max, shape, dtype, endpoint=True)


def _scales(seed: int, n: int) -> np.ndarray:
    return (0.0005 + 0.002 * np.random.default_rng(seed).random(n)).astype(np.float32)


def _biases(seed: int, n: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-900, 900, n).astype(np.int32)


@register("int8.MatMul", attrs={"transposeB": False, **_MADE}, infer=_matmul_infer, examples=[
    Example({}, [Spec((3, 7), UINT8), _bytes(1, INT8, 7, 5), None, None, None, None], name="integers"),
    Example({}, [Spec((2, 3, 70), INT8), _bytes(1, UINT8, 70, 33), _one(-7, INT8), _bytes(2, UINT8, 33), None, None],
            name="zeros"),
    Example({"to": "float32", "transposeB": True}, [Spec((9, 36), UINT8), _bytes(1, INT8, 40, 36), _one(120, UINT8), None,
                                                    _scales(2, 40), Spec((40,), FLOAT32)], name="to_float"),
    Example({"to": "uint8", "zero": 100, "low": 100}, [Spec((1, 64), UINT8), _bytes(1, INT8, 64, 100), _one(3, UINT8), None,
                                                       _scales(2, 100), _biases(3, 100)], name="to_uint8"),
    Example({"to": "int8", "zero": -3}, [Spec((20, 130), INT8), _bytes(1, INT8, 130, 17), _one(5, INT8), _one(-1, INT8),
                                         _scales(2, 1), None], name="to_int8"),
    Example({}, [Spec((2, 3, 4), UINT8), Spec((2, 4, 5), INT8), None, None, None, None], name="batch"),
])
def matmul(op: Op, a: np.ndarray, b: np.ndarray, a_zero: np.ndarray | None = None, b_zero: np.ndarray | None = None,
           scale: np.ndarray | None = None, bias: np.ndarray | None = None) -> np.ndarray:
    """(a - its zero) times (b - its zero), one or one for each column; scale and bias as `finished` has them."""
    right = b.astype(np.float64)
    right = right.swapaxes(-1, -2) if op["transposeB"] else right
    left = a.astype(np.float64) - (0 if a_zero is None else float(a_zero.reshape(())))
    total = left @ (right - (0 if b_zero is None else b_zero.astype(np.float64).reshape(-1)))
    return finished(op, as_array(total.astype(np.int64), INT32), scale, bias, -1)


def _conv_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, w = need(op, inputs, 0), need(op, inputs, 1)
    for index, spec in enumerate((x, w)):
        _require_bytes(op, spec, index)
        if spec.rank != 4:
            raise ShapeError(f"{op}: input {index} is {spec}; expected a rank of 4")
    group = group_of(op, x)
    if w.shape[1] * group != x.shape[1] or w.shape[0] % group:
        raise ShapeError(f"{op}: {x} and a weight {w} in {group} groups do not fit each other")
    _number(op, inputs, 2, (1,))
    for index in (3, 4):
        _number(op, inputs, index, (1, w.shape[0]))
    return [Spec((x.shape[0], w.shape[0], *geometry(op, x.shape, w.shape).output), _result(op))]


_PLANE = {"kernelY": 1, "kernelX": 1, "strideY": 1, "strideX": 1, "dilateY": 1, "dilateX": 1, "pads": (), "padY": 0, "padX": 0,
          "padMode": "CAFFE", "group": 1}


@register("int8.Conv", attrs={**_PLANE, **_MADE}, infer=_conv_infer, examples=[
    Example(plane((1, 1), to="uint8", zero=7), [Spec((2, 5, 6, 7), UINT8), _bytes(1, INT8, 4, 5, 1, 1), _one(9, UINT8),
                                                _scales(1, 4), _biases(2, 4)], name="1x1"),
    Example(plane((1, 1), to="uint8", low=20, zero=20), [Spec((1, 40, 14, 15), UINT8), _bytes(1, INT8, 70, 40, 1, 1),
                                                         _one(0, UINT8), _scales(1, 70), _biases(2, 70)], name="1x1_wide"),
    Example(plane((3, 3), pads=(1, 1, 1, 1), to="int8", zero=-4), [Spec((2, 3, 9, 8), INT8), _bytes(1, INT8, 17, 3, 3, 3),
                                                                   _one(-5, INT8), _scales(1, 17), _biases(2, 17)], name="3x3"),
    Example(plane((3, 2), strideX=2, pads=(0, 1, 2, 1), dilateY=2), [
        Spec((1, 34, 9, 8), UINT8), _bytes(1, INT8, 33, 34, 3, 2), _one(120, UINT8), None, None], name="integers"),
    Example(plane((3, 3), padMode="SAME", strideY=2, group=2, to="float32"), [
        Spec((1, 64, 7, 6), INT8), _bytes(1, INT8, 64, 32, 3, 3), None, _scales(1, 1), Spec((64,), FLOAT32)], name="groups"),
    Example(plane((5, 3), pads=(2, 1, 2, 1), strideY=2, group=19, to="uint8", zero=3), [
        Spec((2, 19, 11, 13), UINT8), _bytes(1, INT8, 19, 1, 5, 3), _one(99, UINT8), _scales(1, 19), _biases(2, 19)],
        name="depthwise"),
])
def conv(op: Op, x: np.ndarray, w: np.ndarray, x_zero: np.ndarray | None = None, scale: np.ndarray | None = None,
         bias: np.ndarray | None = None) -> np.ndarray:
    """The convolution of x - its zero, which padding has too, with w; scale and bias as `finished` has them."""
    centred = x.astype(np.float64) - (0 if x_zero is None else float(x_zero.reshape(())))
    total = convolution(centred, w, geometry(op, x.shape, w.shape), group_of(op, x))
    return finished(op, as_array(total.astype(np.int64), INT32), scale, bias, 1)


def _table_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    q, table = need(op, inputs, 0), need(op, inputs, 1)
    _require_bytes(op, q)
    if table.size != 256:
        raise ShapeError(f"{op}: its table is {table}; expected 256 numbers")
    return [Spec(q.shape, table.dtype)]


@register("int8.Table", infer=_table_infer, examples=[
    Example({}, [Spec((2, 21, 4, 5), UINT8), _bytes(1, INT8, 256)], name="uint8"),
    Example({}, [Spec((700,), INT8), _bytes(1, UINT8, 256)], name="int8"),
])
def table(op: Op, q: np.ndarray, values: np.ndarray) -> np.ndarray:
    """values[q], of 256 bytes; the first stands for the least number of q's type."""
    return values.reshape(-1)[q.astype(np.int32) - np.iinfo(q.dtype).min]


def _binary_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    a, b = need(op, inputs, 0), need(op, inputs, 1)
    _require_bytes(op, a, 0)
    _require_bytes(op, b, 1)
    if op["opType"] not in ("ADD", "MUL") or _result(op) not in _BYTES:
        raise ShapeError(f"{op}: it makes {op['to']} by {op['opType']}; expected int8 or uint8, by ADD or MUL")
    return [Spec(broadcast(op, a, b), _result(op))]


@register("int8.Binary", attrs={"opType": "ADD", "scaleA": 1.0, "scaleB": 1.0, "zeroA": 0, "zeroB": 0, **_MADE},
          infer=_binary_infer, examples=[
    Example({"scaleA": 0.5, "scaleB": 0.3, "zeroA": 3, "zeroB": 120, "zero": 7, "to": "uint8", "low": 7},
            [Spec((2, 21, 5, 7), UINT8), Spec((2, 21, 5, 7), UINT8)], name="add"),
    Example({"opType": "MUL", "scaleA": 0.05, "scaleB": 0.3, "zeroA": 3, "zeroB": -12, "zero": 7, "to": "int8"},
            [Spec((2, 21, 5, 7), INT8), Spec((2, 21, 5, 7), INT8)], name="mul"),
])
def binary(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(a - zeroA) * scaleA and (b - zeroB) * scaleB, joined and rounded; the scales are such that the result has scale 1."""
    left, right = ((q.astype(np.float32) - np.float32(zero)) * np.float32(scale) for q, zero, scale in
                   ((a, op["zeroA"], op["scaleA"]), (b, op["zeroB"], op["scaleB"])))
    joined = left + right if op["opType"] == "ADD" else left * right
    dtype = _RESULTS[op["to"]]
    return _rounded(as_array(joined, FLOAT32), op["zero"], *_limits(op, dtype), dtype)
