"""Reductions, arg, top-k, cumulative sums, and normalisation by a norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..builder import Builder
from ..node import Node
from ..rules import Unsupported, rule

_DIRECT = {"ReduceSum": "SUM", "ReduceMean": "MEAN", "ReduceMax": "MAXIMUM", "ReduceMin": "MINIMUM", "ReduceProd": "PROD"}


@rule(*_DIRECT, "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")
def reduce(node: Node, b: Builder) -> None:
    """Square roots and logarithms of integers are those of floats, truncated."""
    x, axes_input, axes = node.inputs[0], node.input(1), node.get("axes")
    if axes is None and axes_input:
        axes = () if b.shape(axes_input) == (0,) else b.vector(axes_input, f"{node}: the axes")
        axes_input = "" if axes is not None else axes_input
    keep, noop = bool(node.get("keepdims", 1)), bool(node.get("noop_with_empty_axes", 0))
    kind = b.dtype(x)
    floats = node.op_type in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp") and kind.kind in "iu"
    if floats:
        x = b.cast(x, np.float32)
    if noop and not axes and not axes_input:
        result = _elementwise(node, b, x)
    elif noop and axes_input and None in (b.shape(axes_input) or (None,)):
        result = _perhaps_none(node, b, x, keep, axes_input)
    else:
        result = _reduce(node, b, x, keep, axes, axes_input)
    if floats:
        b.cast(result, kind, node.outputs)
    elif result == x:
        b.identity(x, node.outputs[0])
    else:
        _rename(b, result, node.outputs)


def _rename(b: Builder, x: str, outputs: list[str]) -> None:
    """Gives a result, made by the last op, its name in the model."""
    last = b.graph.ops[-1] if b.graph.ops else None
    if last is not None and last.outputs == [x] and x not in b.graph.constants:
        last.outputs[0] = outputs[0]
        b.declare(outputs[0], b.dtype(x), b.rank(x))
    else:
        b.identity(x, outputs[0])


def _perhaps_none(node: Node, b: Builder, x: str, keep: bool, axes: str) -> str:
    """Axes told when the model runs that may be none, with noop_with_empty_axes: a further axis in front is reduced too."""
    shifted = b.binary("ADD", axes, b.binary("GREATER_EQUAL", axes, b.const(np.int32(0))), dtype=np.int64)
    more = b.op("Concat", [b.ints(0), shifted], dtype=np.int64, axis=0)
    wide = b.op("Unsqueeze", [x], squeezeDims=(0,))
    result = _reduce(node, b, wide, keep, None, more)
    return b.op("Squeeze", [result], squeezeDims=(0,)) if keep else result


def _reduce(node: Node, b: Builder, x: str, keep: bool, axes: Any, axes_input: str) -> str:
    attrs: dict[str, Any] = {"dim": tuple(axes)} if axes else {}

    def over(kind: str, x: str, keep_dims: bool = keep) -> str:
        return b.op("Reduction", [x, axes_input], dtype=b.dtype(x), operation=kind, keepDims=keep_dims, **attrs)

    if b.dtype(x).kind == "b":  # ReduceMax and ReduceMin, from opset 20 on
        return over("ANY" if node.op_type == "ReduceMax" else "ALL", x)
    if node.op_type in _DIRECT:
        return over(_DIRECT[node.op_type], x)
    if node.op_type == "ReduceL1":
        return over("SUM", b.unary("ABS", x))
    if node.op_type == "ReduceSumSquare":
        return over("SUM", b.binary("MUL", x, x))
    if node.op_type == "ReduceL2":
        return b.unary("SQRT", over("SUM", b.unary("SQUARE", x)))
    if node.op_type == "ReduceLogSum":
        return b.unary("LOG", over("SUM", x))
    return _log_sum_exp(b, x, over, keep, axes, axes_input)


def _log_sum_exp(b: Builder, x: str, over: Any, keep: bool, axes: Any, axes_input: str) -> str:
    """max + log(sum(exp(x - max))); an infinite max would make NaN of itself, so it is cut to the largest float."""
    top = over("MAXIMUM", x, True)
    limit = float(np.finfo(np.float32).max)
    top = b.op("ReLU6", [top], minValue=-limit, maxValue=limit)
    total = b.unary("LOG", over("SUM", b.unary("EXP", b.binary("SUB", x, top)), True))
    result = b.binary("ADD", total, top)
    if keep:
        return result
    if axes:
        return b.op("Squeeze", [result], squeezeDims=tuple(axes))
    return b.op("Squeeze", [result, axes_input])


def _elementwise(node: Node, b: Builder, x: str) -> str:
    """No axes: each element is reduced by itself."""
    if node.op_type == "ReduceSumSquare":
        return b.binary("MUL", x, x)
    kinds = {"ReduceL1": "ABS", "ReduceL2": "ABS", "ReduceLogSum": "LOG"}
    return b.unary(kinds[node.op_type], x) if node.op_type in kinds else x


@rule("ArgMax", "ArgMin")
def arg(node: Node, b: Builder) -> None:
    x, axis, keep = node.inputs[0], node.get("axis", 0), node.get("keepdims", 1)
    if node.get("select_last_index", 0):
        x = b.op("Reverse", [x, b.const(np.array([axis], np.int32))])
    found = b.op(node.op_type, [x], 1 if keep or node.get("select_last_index", 0) else node.outputs, dtype=np.int64,
                 axis=axis, topK=1)
    if node.get("select_last_index", 0):
        last = b.binary("SUB", b.size(x, axis), b.const(np.int32(1)))
        found = b.binary("SUB", last, found, 1 if keep else node.outputs, dtype=np.int64)
    if keep:
        b.op("Unsqueeze", [found], node.outputs, dtype=np.int64, squeezeDims=(axis,))


@rule("TopK")
def top_k(node: Node, b: Builder) -> None:
    """With fewer than opset 10, k is an attribute."""
    x = node.inputs[0]
    k = node.input(1) or b.ints(node["k"])
    values, indices = (n or b.context.fresh(f"{node.name}/unused") for n in (node.output(0), node.output(1)))
    inputs = [x, b.reshape(k, ())]
    axis = node.get("axis", -1)
    if axis != -1:
        inputs.append(b.const(np.int32(axis)))
    b.op("TopKV2", inputs, [values, indices], sorted=bool(node.get("sorted", 1)), largest=bool(node.get("largest", 1)))
    b.declare(indices, np.dtype(np.int64))


@rule("CumSum")
def cum_sum(node: Node, b: Builder) -> None:
    b.op("CumSum", node.inputs[:2], node.outputs, exclusive=bool(node.get("exclusive", 0)),
         reverse=bool(node.get("reverse", 0)))


@rule("CumProd")
def cum_prod(node: Node, b: Builder) -> None:
    """MNN's own op where it can say it."""
    axis, exclusive, reverse = b.value(node.inputs[1]), bool(node.get("exclusive", 0)), bool(node.get("reverse", 0))
    if axis is not None and axis.size == 1 and not exclusive and not reverse:
        b.op("CumProd", node.inputs[:1], node.outputs, axis=int(axis.reshape(-1)[0]))
    else:
        b.op("onnx.CumProd", node.inputs[:2], node.outputs, exclusive=exclusive, reverse=reverse)


@rule("LpNormalization")
def lp_normalization(node: Node, b: Builder) -> None:
    """x / norm along an axis; 0 where the norm is 0."""
    x, axis, p = node.inputs[0], node.get("axis", -1), node.get("p", 2)
    if p not in (1, 2):
        raise Unsupported(f"p {p} is not supported; expected 1 or 2")
    total = b.op("Reduction", [b.unary("ABS" if p == 1 else "SQUARE", x)], operation="SUM", dim=(axis,), keepDims=True)
    norm = total if p == 1 else b.unary("SQRT", total)
    zero = b.binary("EQUAL", norm, b.number(0, x), dtype=np.bool_)
    safe = b.op("Select", [zero, b.number(1, x), norm], dtype=b.dtype(x))
    b.binary("REALDIV", x, safe, node.outputs)


@rule("MeanVarianceNormalization")
def mean_variance_normalization(node: Node, b: Builder) -> None:
    """(x - mean) / (sqrt(variance) + 1e-9)."""
    x, axes = node.inputs[0], tuple(node.get("axes", (0, 2, 3)))
    centred = b.binary("SUB", x, b.op("Reduction", [x], operation="MEAN", dim=axes, keepDims=True))
    spread = b.unary("SQRT", b.op("Reduction", [b.unary("SQUARE", centred)], operation="MEAN", dim=axes, keepDims=True))
    b.binary("REALDIV", centred, b.binary("ADD", spread, b.number(1e-9, x)), node.outputs)
