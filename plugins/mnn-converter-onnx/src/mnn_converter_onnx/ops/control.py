"""If and Loop, in MNN's forms: what a body reads from outside becomes an input of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from mnn_core import ModelFormatError, Op, TensorInfo

from ..builder import Builder
from ..graphs import inline, subgraph
from ..node import Node
from ..rules import rule


@rule("If")
def if_(node: Node, scope: Any) -> None:
    """A branch that is certain takes the place of the node."""
    b: Builder = scope.builder
    condition = b.value(node.inputs[0])
    if condition is not None and condition.size == 1:
        taken = inline(node["then_branch" if condition.reshape(-1)[0] else "else_branch"], scope)
        if len(taken) < len(node.outputs):
            raise ModelFormatError(f"{node}: {len(node.outputs)} outputs, but the branch has {len(taken)}")
        for result, output in zip(taken, node.outputs):
            if output:
                b.identity(result, output)
        return
    sides = [subgraph(node[f"{side}_branch"], scope, f"{node.name}/{side}")[0] for side in ("then", "else")]
    captured = list(dict.fromkeys(name for side in sides for name in side.captures))
    results = [[o.name for o in side.graph.outputs] for side in sides]
    if min(map(len, results)) < len(node.outputs):
        raise ModelFormatError(f"{node}: {len(node.outputs)} outputs, but its branches have {len(results[0])} and "
                               f"{len(results[1])}")
    wanted = [(output, pair) for output, pair in zip(node.outputs, zip(*results)) if output]
    attrs = {"then_graph": sides[0].graph.name, "else_graph": sides[1].graph.name,
             "aliases_inputs": ({"data": ()}, *({"data": (name,)} for name in captured)),
             "aliases_outputs": tuple({"data": pair} for _, pair in wanted)}
    b.graph.ops.append(Op("If", [node.inputs[0], *captured], [output for output, _ in wanted], attrs, name=node.name))
    for output, pair in wanted:
        b.declare(output, sides[0].type(pair[0]))


@rule("Loop")
def loop(node: Node, scope: Any) -> None:
    b: Builder = scope.builder
    trips = node.input(0) or b.const(np.int32(2**31 - 1))
    condition = node.input(1) or b.const(np.int32(1))
    state = node.inputs[2:]
    proto = node["body"]
    if len(proto.input) != 2 + len(state) or len(proto.output) < 1 + len(state):
        raise ModelFormatError(f"{node}: {len(state)} loop variables; its body has {len(proto.input)} inputs, "
                               f"{len(proto.output)} outputs")
    kept = [k for k in range(len(state)) if not _is_invariant(proto, k)]
    fixed = {proto.input[2 + k].name: state[k] for k in range(len(state)) if k not in kept}
    types = [np.dtype(np.int64), np.dtype(np.bool_), *(b.type(n) for n in state)]
    body, _ = subgraph(proto, scope, f"{node.name}/body", types, fixed, [1 + k for k in range(len(state)) if k not in kept])
    scans = len(proto.output) - 1 - len(state)
    outputs = [*node.outputs, *[""] * (len(state) + scans - len(node.outputs))]
    for k in range(len(state)):
        if k not in kept and outputs[k]:
            b.identity(state[k], outputs[k])
    add_while(b, node.name, body, [trips, condition, *(state[k] for k in kept)], [outputs[k] for k in kept],
              outputs[len(state):])


def _is_invariant(proto: Any, index: int) -> bool:
    """Whether a loop's body hands on a variable as it got it; TensorFlow's loops carry their weights so."""
    same = {n.output[0]: n.input[0] for n in proto.node if n.op_type == "Identity" and n.domain in ("", "ai.onnx")
            and len(n.input) == len(n.output) == 1}
    name, port = proto.output[1 + index].name, proto.input[2 + index].name
    for _ in range(len(same) + 1):
        if name == port:
            return True
        if name not in same:
            return False
        name = same[name]
    return False


def add_while(b: Builder, name: str, body: Builder, inputs: list[str], finals: list[str], scans: list[str]) -> None:
    """Adds the While of a finished body. inputs: trips, condition, variables; what the body captured is appended to them."""
    count = len(inputs) - 2
    graph = body.graph
    by_name = {i.name: i for i in graph.inputs}
    own = [i for i in graph.inputs if i.name not in body.captures]
    graph.inputs[:] = [*own, *(by_name[n] for n in body.captures)]
    copies = []
    for captured in body.captures:
        body.node_name = ""
        copy = body.context.fresh(f"{captured}/next")
        body.op("Identity", [captured], [copy])
        copies.append(TensorInfo(copy, body.dtype(captured), None))
    graph.outputs[:] = [*graph.outputs[:1 + count], *copies, *graph.outputs[1 + count:]]
    outputs = [n or b.context.fresh(f"{name}/unused") for n in finals]
    unused = [b.context.fresh(f"{name}/unused") for _ in body.captures]
    stacked = [n or b.context.fresh(f"{name}/unused") for n in scans]
    ports = [i.name for i in graph.inputs]
    attrs = {"body_graph": graph.name, "aliases_inputs": tuple({"data": (p,)} for p in ports),
             "aliases_outputs": tuple(o.name for o in graph.outputs)}
    b.graph.ops.append(Op("While", [*inputs, *body.captures], [*outputs, *unused, *stacked], attrs, name=name))
    for output, info in zip([*outputs, *unused, *stacked], graph.outputs[1:]):
        b.declare(output, body.type(info.name))
