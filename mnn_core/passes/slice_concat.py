"""A concatenation of all the parts that one tensor was cut into is that tensor."""

from __future__ import annotations

import numpy as np

from ..ir import Graph, Op
from . import Pass
from ._view import View

#: Ends from here on mean "to the end": no axis is longer.
_END = 2**31 - 1


def _whole_split(view: View, op: Op) -> str | None:
    """x if the inputs of a Concat are all outputs of one Slice of x along its axis, in order."""
    split = view.producer(op.inputs[0], "Slice")
    if split is None or split["axis"] != op["axis"] or list(split.outputs) != list(op.inputs):
        return None
    return split.inputs[0]


def _bounds(view: View, name: str, axis: int) -> tuple[str, int, int] | None:
    """(x, start, end) where a tensor is x[start:end] along an axis, and start is not counted from the end."""
    op = view.producer(name, "StridedSlice")
    if op is None or op["fromType"] != 1 or len(op.inputs) < 4:
        return None
    values = [view.array(n) for n in op.inputs[1:4]]
    steps = view.array(op.inputs[4]) if len(op.inputs) > 4 and op.inputs[4] else np.ones(1, np.int32)
    if any(v is None or v.size != 1 for v in (*values, steps)):
        return None
    start, end, along, step = (int(v.reshape(-1)[0]) for v in (*values, steps) if v is not None)
    return (op.inputs[0], start, end) if along == axis and step == 1 and start >= 0 else None


def _whole_slices(view: View, op: Op) -> str | None:
    """x if the inputs of a Concat are x[0:a], x[a:b], ... to the end. It does not matter how long x is."""
    parts = [_bounds(view, name, op["axis"]) for name in op.inputs]
    if any(p is None for p in parts):
        return None
    sources, starts, ends = zip(*(p for p in parts if p is not None))
    joined = starts[0] == 0 and ends[-1] >= _END and list(starts[1:]) == list(ends[:-1])
    return sources[0] if joined and len(set(sources)) == 1 else None


def run(graph: Graph) -> int:
    """Parts of a Split, and slices that continue each other."""
    view = View(graph)
    for op in graph.ops:
        if op.type != "Concat" or len(op.inputs) < 2:
            continue
        whole = _whole_split(view, op) or _whole_slices(view, op)
        if whole is not None:
            view.change(op, "Identity", [whole], {})
    return view.finish()


slice_concat = Pass("slice-concat", run, "parts of a tensor that are joined again are that tensor")
