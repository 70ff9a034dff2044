"""relu(x) - a * relu(-x), as Keras and TensorFlow write it, becomes PReLU."""

from __future__ import annotations

import numpy as np

from ..ir import Graph, Op
from . import Pass
from ._view import View, is_binary


def _is_relu(op: Op | None) -> bool:
    return op is not None and op.type == "ReLU" and op["slope"] == 0


def _negative_part(view: View, name: str, x: str) -> np.ndarray | None:
    """The slopes c where a tensor is c * relu(-x)."""
    op = view.producer(name)
    if op is None or not is_binary(op, "MUL"):
        return None
    for factor, part in (op.inputs, op.inputs[::-1]):
        slopes, relu = view.array(factor), view.producer(part, "ReLU")
        if slopes is None or not _is_relu(relu) or relu is None:
            continue
        turned = view.producer(relu.inputs[0], "UnaryOp")
        if turned is not None and turned["opType"] == "NEG" and turned.inputs[0] == x:
            return slopes
    return None


def _per_channel(slopes: np.ndarray) -> np.ndarray | None:
    """Slopes [C, 1, 1] or [1, C, 1, 1] as a vector; None for others."""
    if slopes.dtype != np.float32 or slopes.ndim not in (3, 4) or (slopes.ndim == 4 and slopes.shape[0] != 1):
        return None
    line = slopes.shape[-3:]
    return slopes.reshape(-1) if line[1:] == (1, 1) else None


def run(graph: Graph) -> int:
    """relu(x) + c * relu(-x), or minus, with a slope for each channel of an image."""
    view = View(graph)
    for op in graph.ops:
        if not is_binary(op, "ADD", "SUB"):
            continue
        orders = (op.inputs, op.inputs[::-1]) if op["opType"] == "ADD" else (op.inputs,)
        for first, second in orders:
            relu = view.producer(first, "ReLU")
            if relu is None or not _is_relu(relu):
                continue
            found = _negative_part(view, second, relu.inputs[0])
            slopes = None if found is None else _per_channel(found)
            if slopes is not None:
                sign = 1 if op["opType"] == "SUB" else -1
                name = view.constant(f"{op.outputs[0]}/slope", sign * slopes)
                view.change(op, "PReLU", [relu.inputs[0], name], {"slopeCount": int(slopes.size)})
                break
    return view.finish()


prelu = Pass("prelu", run, "relu(x) - a * relu(-x) becomes PReLU")
