"""Control flow: bodies of a few nodes that use tensors of the graph around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .draft import Draft, Refused, Tensor, value_info
from .families import FAMILIES, family, known

#: Small operators for bodies: those that keep a tensor's type.
_INSIDE = ("Add", "Mul", "Sub", "Neg", "Abs", "Max", "Where", "Transpose", "Concat", "Slice", "Relu", "Identity", "ReduceSum",
           "Reshape", "MatMul", "Softmax", "Cast", "Gather", "If")


Finish = Callable[[Draft, list[Tensor]], list[Tensor]]


def body(g: Draft, inputs: Sequence[tuple[np.ndarray, float]], finish: Finish, shapes: bool = True,
         exact: bool = False) -> tuple[onnx.GraphProto, list[Tensor], list[Tensor]]:
    """Draws a body. inputs: example values; finish: adds its last nodes and returns its outputs.

    Returns the graph, the tensors around it that it uses, and its outputs.
    shapes: whether inputs declare their shapes; exact: whether outputs do.
    """
    inner = Draft(g.draw, g.opset, g.counts, g)
    formal = []
    for value, noise in inputs:
        found = Tensor(inner.name("b"), value, noise, owner=inner)
        inner.tensors.append(found)
        formal.append(found)
    for _ in range(inner.integer(0, 2)):
        op = inner.pick(_INSIDE if _depth(inner) < 2 else _INSIDE[:-1])
        if known(op, g.opset):
            with suppress(Refused):
                FAMILIES[op](inner, op)
    outputs = finish(inner, formal)
    ended = []
    for tensor in outputs:  # an output is a result of the body's own, named once
        if tensor.owner is not inner or tensor in formal or tensor in ended or tensor.constant:
            tensor = inner.node("Identity", [tensor])[0]
        ended.append(tensor)
    graph = helper.make_graph([n for n, _ in inner.nodes], inner.name("body"),
                              [value_info(t, None if shapes else [None] * t.rank) for t in formal],
                              [value_info(t, None if exact else [None] * t.rank) for t in ended],
                              [numpy_helper.from_array(t.value, t.name) for t in inner.tensors
                               if t.constant and t in inner.used])
    captures = [t for t in dict.fromkeys(t for _, read in inner.nodes for t in read) if t.owner is not inner]
    return graph, captures, ended


def _depth(g: Draft) -> int:
    return 0 if g.parent is None else 1 + _depth(g.parent)


def _like(inner: Draft, x: Tensor) -> Tensor:
    """A tensor of the type and shape of another one, computed here."""
    other = inner.tensor([x.dtype], shape=inner.broadcast(x.shape, grow=False))
    if x.dtype.kind == "b":
        return inner.node(inner.pick(["And", "Or"]), [x, other])[0]
    return inner.node(inner.pick(["Add", "Sub", "Max"]), [x, other])[0]


_PLAIN = [np.float32, np.int64, np.int32, np.bool_, np.float64]


@family("If")
def if_(g: Draft, op: str) -> list[Tensor]:
    condition = g.tensor([bool], shape=() if g.flag() else (1,))
    kinds = [g.dtype(_PLAIN) for _ in range(g.integer(1, 2))]

    def finish(inner: Draft, formal: list[Tensor]) -> list[Tensor]:
        return [inner.tensor([kind], (0, 3)) for kind in kinds]

    then, used, _ = body(g, [], finish)
    other, also, _ = body(g, [], finish)
    return g.node(op, [condition], len(kinds), captures=[*used, *also], then_branch=then, else_branch=other)


@family("Loop")
def loop(g: Draft, op: str) -> list[Tensor]:
    trips = g.integer(0, 4)
    carried = [g.tensor(_PLAIN, (0, 3)) for _ in range(g.integer(0, 2))]
    stop = g.pick([None, g.integer(0, 3)])
    scans = g.integer(0 if carried else 1, 2)

    def finish(inner: Draft, formal: list[Tensor]) -> list[Tensor]:
        step, go, *state = formal
        if stop is None:
            going = inner.node("Identity", [go])[0]
        else:
            going = inner.node("Less", [step, inner.const(np.array(stop, np.int64))])[0] if g.opset >= 9 else go
        after = [_like(inner, t) for t in state]
        if len(after) == 2 and after[0].dtype == after[1].dtype and after[0].shape == after[1].shape and g.flag():
            after.reverse()
        return [going, *after, *(inner.tensor(_PLAIN, (0, 3)) for _ in range(scans))]

    inputs = [(np.array(0, np.int64), 0.0), (np.array(True), 0.0), *((t.value, t.noise) for t in carried)]
    graph, used, _ = body(g, inputs, finish, g.flag(), exact=not trips)  # which tells the shape of no results at all
    limit = g.given(np.array(trips, np.int64)) if stop is None or g.opset < 9 or g.flag() else None
    first = g.given(np.array(True)) if limit is None or g.flag() else None
    return g.node(op, [limit, first, *carried], len(carried) + scans, captures=used, body=graph)


@family("Scan")
def scan(g: Draft, op: str) -> list[Tensor]:
    if g.opset < 9:
        raise Refused("another form, with batches")
    length = g.integer(1, 4)
    states = [g.tensor(_PLAIN, (0, 2)) for _ in range(g.integer(0, 2))]
    sequences, axes = [], []
    for _ in range(g.integer(1, 2)):
        rest = list(g.dims(g.integer(0, 2)))
        axis = g.integer(0, len(rest))
        rest.insert(axis, length)
        sequences.append(g.tensor(_PLAIN, shape=rest))
        axes.append(axis)
    outs = g.integer(0 if states else 1, 2)

    def finish(inner: Draft, formal: list[Tensor]) -> list[Tensor]:
        state = [_like(inner, t) for t in formal[:len(states)]]
        return [*state, *(inner.tensor(_PLAIN, (0, 2)) for _ in range(outs))]

    slices = [(np.take(t.value, 0, a), t.noise) for t, a in zip(sequences, axes)]
    graph, used, ends = body(g, [*((t.value, t.noise) for t in states), *slices], finish)
    ranks = [t.rank + 1 for t in ends[len(states):]]
    attrs: dict[str, object] = {}
    if any(axes) or g.flag():
        attrs["scan_input_axes"] = [a - (t.rank if g.opset >= 11 and g.flag() else 0) for a, t in zip(axes, sequences)]
    if g.flag():
        attrs["scan_input_directions"] = [g.integer(0, 1) for _ in sequences]
    if outs and g.flag():
        attrs["scan_output_axes"] = [g.integer(-r if g.opset >= 11 else 0, r - 1) for r in ranks]
    if outs and g.flag():
        attrs["scan_output_directions"] = [g.integer(0, 1) for _ in ranks]
    return g.node(op, [*states, *sequences], len(states) + outs, captures=used, body=graph, num_scan_inputs=len(sequences),
                  **attrs)
