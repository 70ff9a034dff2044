"""min(max(x, a), b) becomes ReLU6 with these bounds, max(x, 0) ReLU: as tf2onnx, Keras and old PyTorch exports cut."""

from __future__ import annotations

import math

import numpy as np

from ..ir import Graph, Op
from . import Pass
from ._view import View, is_binary, scalar_operand


def _cut(view: View, op: Op | None) -> tuple[str, float, float] | None:
    """(x, low, high) of an op that cuts floats to a range, one of whose ends may be infinite."""
    if op is None:
        return None
    if op.type == "ReLU" and op["slope"] == 0:
        return op.inputs[0], 0.0, math.inf
    if op.type == "ReLU6":
        return op.inputs[0], op["minValue"], op["maxValue"]
    found = scalar_operand(view, op) if is_binary(op, "MAXIMUM", "MINIMUM") else None
    if found is None or not math.isfinite(found[1]):
        return None
    if any(a is not None and (a.ndim or a.dtype != np.float32) for a in map(view.array, op.inputs)):
        return None
    return (found[0], found[1], math.inf) if op["opType"] == "MAXIMUM" else (found[0], -math.inf, found[1])


def run(graph: Graph) -> int:
    """Two cuts in a row are one, if nothing else reads what is between; both must have their lower end below the upper one."""
    view = View(graph)
    for op in graph.ops:
        cut = _cut(view, op)
        if cut is None:
            continue
        (x, low, high), merged = cut, False
        before = _cut(view, view.producer(x)) if view.only_here(x) else None
        if before is not None and low <= high and before[1] <= before[2]:
            merged, x = True, before[0]
            low, high = (min(max(end, low), high) for end in before[1:])
        if math.isfinite(low) and math.isfinite(high) and merged:
            view.change(op, "ReLU6", [x], {"minValue": low, "maxValue": high})
        elif (low, high) == (0, math.inf) and (merged or op.type == "BinaryOp"):
            view.change(op, "ReLU", [x], {})
    return view.finish()


clip = Pass("clip", run, "minima and maxima with numbers become ReLU and ReLU6")
