"""(x - mean) / sqrt(variance + epsilon) * gamma + beta, spelled out, becomes LayerNorm; without the mean, RMSNorm."""

from __future__ import annotations

import numpy as np

from ..ir import Graph, Op
from . import Pass
from ._view import View, is_binary, scalar_operand


def _mean_of(view: View, name: str) -> tuple[str, tuple[int, ...]] | None:
    """(x, axes) where a tensor is the mean of x over axes that stay with size 1."""
    op = view.producer(name, "Reduction")
    if op is None or op["operation"] != "MEAN" or not op["keepDims"] or len(op.inputs) != 1 or op["coeff"] not in (0, 1):
        return None
    return (op.inputs[0], tuple(op["dim"])) if len(op["dim"]) else None


def _square_of(view: View, name: str) -> str | None:
    op = view.producer(name)
    if op is None:
        return None
    if op.type == "UnaryOp" and op["opType"] == "SQUARE":
        return op.inputs[0]
    if is_binary(op, "MUL") and op.inputs[0] == op.inputs[1]:
        return op.inputs[0]
    if is_binary(op, "POW") and view.number(op.inputs[1]) == 2:
        return op.inputs[0]
    return None


def _deviation(view: View, name: str) -> tuple[str, tuple[int, ...], float] | None:
    """(d, axes, epsilon) where a tensor is mean(d^2 over axes) + epsilon."""
    op = view.producer(name)
    added = scalar_operand(view, op) if op is not None and is_binary(op, "ADD") else None
    mean = _mean_of(view, added[0]) if added is not None else None
    square = _square_of(view, mean[0]) if mean is not None else None
    return (square, mean[1], added[1]) if added is not None and mean is not None and square is not None else None


def _normalised(view: View, op: Op) -> tuple[str, tuple[int, ...], float] | None:
    """(d, axes, epsilon) where an op is d / sqrt(mean(d^2) + epsilon)."""
    if is_binary(op, "REALDIV", "DIV"):
        root = view.producer(op.inputs[1], "UnaryOp")
        found = _deviation(view, root.inputs[0]) if root is not None and root["opType"] == "SQRT" else None
        return found if found is not None and found[0] == op.inputs[0] else None
    if not is_binary(op, "MUL"):
        return None
    for d, inverse in (op.inputs, op.inputs[::-1]):
        root = view.producer(inverse, "UnaryOp")
        found = None
        if root is not None and root["opType"] == "RSQRT":
            found = _deviation(view, root.inputs[0])
        elif root is not None and root["opType"] == "RECIPROCAL":
            inner = view.producer(root.inputs[0], "UnaryOp")
            found = _deviation(view, inner.inputs[0]) if inner is not None and inner["opType"] == "SQRT" else None
        elif (division := view.producer(inverse)) is not None and is_binary(division, "REALDIV", "DIV") \
                and view.number(division.inputs[0]) == 1:
            inner = view.producer(division.inputs[1], "UnaryOp")
            found = _deviation(view, inner.inputs[0]) if inner is not None and inner["opType"] == "SQRT" else None
        if found is not None and found[0] == d:
            return found
    return None


def _statistics(view: View, op: Op) -> bool:
    """The normalisation itself."""
    found = _normalised(view, op)
    if found is None:
        return False
    d, axes, epsilon = found
    subtracted = view.producer(d)
    mean = None
    if subtracted is not None and is_binary(subtracted, "SUB"):
        mean = _mean_of(view, subtracted.inputs[1])
    if subtracted is not None and mean is not None and mean == (subtracted.inputs[0], axes):
        view.change(op, "LayerNorm", [mean[0]], {"axis": axes, "epsilon": epsilon, "useRMSNorm": False})
    else:
        view.change(op, "LayerNorm", [d], {"axis": axes, "epsilon": epsilon, "useRMSNorm": True})
    return True


def _affine(view: View, op: Op) -> None:
    """Takes a factor, then a bias, along the last axis into a LayerNorm over that axis."""
    for x, other in (op.inputs, op.inputs[::-1]):
        norm, vector = view.producer(x, "LayerNorm"), view.array(other)
        if norm is None or vector is None or vector.ndim != 1 or vector.dtype != np.float32 or tuple(norm["axis"]) != (-1,) \
                or not view.only_here(x) or norm["group"] > 1 or len(norm.outputs) != 1:
            continue
        if op["opType"] == "MUL" and len(norm.inputs) == 1 and vector.size > 1:
            zeros = view.constant(f"{op.outputs[0]}/beta", np.zeros(vector.size, np.float32))
            view.change(op, "LayerNorm", [norm.inputs[0], other, zeros], norm.attrs)
            return
        gamma = view.array(norm.inputs[1]) if len(norm.inputs) == 3 else None
        beta = view.array(norm.inputs[2]) if len(norm.inputs) == 3 else None
        if op["opType"] == "ADD" and gamma is not None and beta is not None and not beta.any() and beta.size == vector.size:
            view.change(op, "LayerNorm", [norm.inputs[0], norm.inputs[1], other], norm.attrs)
            return


def run(graph: Graph) -> int:
    """Finds the usual spellings; gamma and beta must be constant vectors along the last axis."""
    view = View(graph)
    for op in graph.ops:
        if is_binary(op, "MUL", "REALDIV", "DIV") and _statistics(view, op):
            continue
        if is_binary(op, "MUL", "ADD"):
            _affine(view, op)
    return view.finish()


layer_norm = Pass("layer-norm", run, "layer norms and RMS norms that are spelled out become one op")
