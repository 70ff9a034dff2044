"""Sequences of tensors: made, changed, and taken apart again, as no output of a model is one."""

from __future__ import annotations

import numpy as np

from .draft import Draft, Tensor
from .families import family

_KINDS = [np.float32, np.int64, np.int32, np.float64, np.bool_]


@family("SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength",
        "ConcatFromSequence", "SplitToSequence")
def sequence(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(_KINDS, (1, 3), low=-9, high=9)
    if op == "SplitToSequence":
        axis = g.axis(x.rank)
        size = x.shape[axis]
        split = g.pick([None, np.array(g.integer(1, 3), np.int64), np.array([1] * size, np.int64)]) if size else None
        made = g.node(op, [x, None if split is None else g.given(split)], axis=axis, keepdims=g.pick([None, 0, 1]))[0]
    elif op == "SequenceEmpty":
        whole = g.flag()
        made = g.node(op, [], dtype=7 if whole else None)[0]
        made.element = 7 if whole else 1
        made = g.node("SequenceInsert", [made, g.tensor([np.int64 if whole else np.float32])])[0]
    else:
        made = g.node("SequenceConstruct", [x, *(g.tensor([x.dtype], shape=x.shape) for _ in range(g.integer(0, 2)))])[0]
    count = len(made.value)
    if op == "SequenceInsert":
        at = g.given(np.array(g.integer(-count, count), g.pick([np.int64, np.int32]))) if g.flag() else None
        made = g.node(op, [made, g.tensor([x.dtype], shape=x.shape), at])[0]
    elif op == "SequenceErase" and count > 1:
        made = g.node(op, [made, g.given(np.array(g.integer(-count, count - 1), np.int64)) if g.flag() else None])[0]
    elif op == "SequenceLength":
        return g.node(op, [made])
    elif op == "ConcatFromSequence":
        new = g.integer(0, 1)
        return g.node(op, [made], axis=g.integer(-x.rank - new, x.rank - 1 + new), new_axis=new)
    count = len(made.value)
    return g.node("SequenceAt", [made, g.given(np.array(g.integer(-count, count - 1), np.int64))])
