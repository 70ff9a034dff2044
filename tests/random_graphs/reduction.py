"""Reductions, in the forms of all operator sets, and running ones."""

from __future__ import annotations

import numpy as np

from .draft import Draft, Tensor
from .families import family


@family("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
        "ReduceLogSumExp", "ReduceSumSquare")
def reduce(g: Draft, op: str) -> list[Tensor]:
    low = 0.25 if op == "ReduceLogSum" else -2
    x = g.tensor(g.types(op), (0, 4), low=low, high=2)
    axes = g.axes(x.rank) if x.rank and g.integer(0, 3) else None
    keep = g.pick([None, 0, 1])
    if g.opset < (13 if op == "ReduceSum" else 18):
        return g.node(op, [x], axes=axes, keepdims=keep)
    noop = g.pick([None, 0, 1])
    if axes is None and g.flag():
        axes = []
    return g.node(op, [x, None if axes is None else g.ints(*axes)], keepdims=keep, noop_with_empty_axes=noop)


@family("ArgMax", "ArgMin")
def arg(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 4))
    return g.node(op, [x], axis=g.axis(x.rank) if g.flag() else None, keepdims=g.pick([None, 0, 1]),
                  select_last_index=g.pick([None, 0, 1]) if g.opset >= 12 else None)


@family("CumSum", "CumProd")
def running(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 4), low=-2, high=2)
    axis = np.array(g.axis(x.rank), g.pick([np.int64, np.int32]))
    return g.node(op, [x, g.given(axis)], exclusive=g.pick([None, 0, 1]), reverse=g.pick([None, 0, 1]))
