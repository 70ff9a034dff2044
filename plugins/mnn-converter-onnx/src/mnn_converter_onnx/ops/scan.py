"""Scan, as a While that picks its slice of each scanned input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mnn_core import Graph, ModelFormatError, Op, TensorInfo

from ..builder import Builder
from ..graphs import subgraph
from ..node import Node
from ..rules import Unsupported, rule
from ..scope import Scope
from .control import add_while


@rule("Scan", since=9)
def scan(node: Node, scope: Any) -> None:
    """A Loop over the scanned axis whose body picks its slice of each scanned input."""
    b: Builder = scope.builder
    proto, count = node["body"], node["num_scan_inputs"]
    state, scanned = node.inputs[:len(node.inputs) - count], node.inputs[len(node.inputs) - count:]
    outs = len(proto.output) - len(state)
    if not 1 <= count <= len(node.inputs) or outs < 0 or len(proto.input) != len(node.inputs):
        raise ModelFormatError(f"{node}: {len(node.inputs)} inputs, {count} of them scanned; its body has "
                               f"{len(proto.input)} inputs and {len(proto.output)} outputs")
    axes, backward = node.get("scan_input_axes", (0,) * count), node.get("scan_input_directions", (0,) * count)
    out_axes, out_backward = node.get("scan_output_axes", (0,) * outs), node.get("scan_output_directions", (0,) * outs)
    zero = b.const(np.int32(0))
    trips = b.op("GatherV2", [b.shape_of(scanned[0]), b.const(np.int32(axes[0])), zero], dtype=np.int64)
    slices = [b.op("Reverse", [n, b.const(np.array([a], np.int32))]) if r else n for n, a, r in zip(scanned, axes, backward)]
    body = _scan_body(node, scope, state, slices, axes)
    finals = [*node.outputs, *[""] * (len(proto.output) - len(node.outputs))]
    stacked = [b.context.fresh(f"{node.name}/stacked") for _ in range(outs)]
    add_while(b, node.name, body, [trips, b.const(np.int32(1)), *state], finals[:len(state)], stacked)
    for made, name, axis, reverse in zip(stacked, finals[len(state):], out_axes, out_backward):
        if not name:
            continue
        if reverse:
            made = b.op("Reverse", [made, b.const(np.array([0], np.int32))])
        if axis:
            rank = _scan_rank(proto, len(state) + finals[len(state):].index(name))
            if rank is None:
                raise Unsupported("scan_output_axes with a body output of unknown rank")
            order = list(range(1, rank + 1))
            order.insert(axis % (rank + 1), 0)
            b.op("Permute", [made], [name], dims=tuple(order))
        else:
            b.op("Identity", [made], [name])


def _scan_rank(proto: Any, index: int) -> int | None:
    kind = proto.output[index].type.tensor_type
    return len(kind.shape.dim) if kind.HasField("shape") else None


def _scan_body(node: Node, scope: Any, state: list[str], slices: list[str], axes: tuple[int, ...]) -> Builder:
    """The body with its scanned inputs replaced by slices of whole tensors, and a counter and a condition before the others."""
    b: Builder = scope.builder
    types = [b.type(n) for n in (*state, *slices)]
    body, _ = subgraph(node["body"], scope, f"{node.name}/body", types)
    graph = body.graph
    own = [i for i in graph.inputs if i.name not in body.captures]
    ports = own[len(state):]
    counter, going, still = (b.context.fresh(f"{node.name}/{part}") for part in ("i", "going", "still"))
    first: list[Op] = []
    for whole, axis, port in zip(slices, axes, ports):
        body.capture(whole)
        zero = body.const(np.int32(axis))
        first.append(Op("GatherV2", [whole, counter, zero], [port.name], name=port.name))
    if still not in body.known:
        graph.constants[still] = np.array(1, np.int32)
    graph.ops[:0] = first
    captured = [i for i in graph.inputs if i.name in body.captures]
    head = [TensorInfo(counter, np.dtype(np.int64), ()), TensorInfo(going, np.dtype(np.bool_), ())]
    graph.inputs[:] = [*head, *own[:len(state)], *captured]
    graph.outputs.insert(0, TensorInfo(still, np.dtype(np.bool_), ()))
    return body


@rule("Scan", until=8)
def scan_8(node: Node, scope: Any) -> None:
    """The first form, of a batch: a loop over its rows, each of which is a Scan of the later form.

    What sequence_lens says of a row's length is cut off first; its scan outputs end in zeros instead.
    """
    b: Builder = scope.builder
    lengths, inputs, count = node.input(0), node.inputs[1:], node["num_scan_inputs"]
    made = len(node["body"].output)
    if not 1 <= count <= len(inputs) or made < len(inputs) - count:
        raise ModelFormatError(f"{node}: {len(inputs)} inputs beside sequence_lens, {count} of them scanned; its body has "
                               f"{made} outputs")
    graph = Graph(name=b.context.fresh(f"{node.name}/rows"))
    body = Builder(b.context, graph, b)
    body.node_name = node.name
    row, going, still = (b.context.fresh(f"{node.name}/{part}") for part in ("row", "going", "still"))
    for name, dtype in ((row, np.dtype(np.int64)), (going, np.dtype(np.bool_))):
        body.declare(name, dtype, 0)
        graph.inputs.append(TensorInfo(name, dtype, ()))
    graph.constants[still] = np.array(1, np.int32)
    for name in filter(None, (lengths, *inputs)):
        body.capture(name)
    rows = [body.gather(name, row) for name in inputs]
    length = body.reshape(body.gather(lengths, row), (1,)) if lengths else ""
    if lengths:
        rows[-count:] = [body.op("StridedSlice", [r, body.ints(0), length, body.ints(0)], fromType=1) for r in rows[-count:]]
    outputs = [b.context.fresh(f"{node.name}/row_output") for _ in range(made)]
    attrs = {"body": node["body"], "num_scan_inputs": count, "scan_input_directions": node.get("directions", (0,) * count)}
    scan(replace(node, version=9, inputs=rows, outputs=outputs, attrs=attrs), Scope(body, scope))
    if lengths:
        whole = body.reshape(body.size(inputs[-1], 1), (1,))
        outputs[len(inputs) - count:] = [_filled_up(body, n, whole, length) for n in outputs[len(inputs) - count:]]
    graph.outputs[:] = [TensorInfo(still, np.dtype(np.bool_), ()), *(TensorInfo(n, body.dtype(n), None) for n in outputs)]
    b.context.root.subgraphs[graph.name] = graph
    finals = [*node.outputs, *[""] * (made - len(node.outputs))]
    add_while(b, node.name, body, [b.size(inputs[-1], 0), b.const(np.int32(1))], [], finals)


def _filled_up(b: Builder, x: str, whole: str, length: str) -> str:
    """x with zeros after it, up to a length of axis 0."""
    rest = b.op("Shape", [x], dtype=np.int64, hasStart=True, start=1)
    missing = b.op("Concat", [b.binary("SUB", whole, length), rest], axis=0)
    return b.op("Concat", [x, b.op("Fill", [missing, b.number(0, x)], dtype=b.dtype(x))], axis=0, dtype=b.dtype(x))
