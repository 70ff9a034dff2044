"""What MNN 3.6.1 gets wrong or cannot run, in ops that it runs right: for the writer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..ir import Constant, Graph, Op, decoded
from .names import Names
from .weights import HalfConstant, half


def for_mnn(graph: Graph) -> Graph:
    """The graph with such ops replaced. Weights that have to be cut lose their quantisation."""
    if not any(_less(op) or _cut(op, graph) or _sum(op) for op in graph.ops):
        return graph
    names, constants, ops = Names(graph.tensor_names()), dict(graph.constants), []
    for op in graph.ops:
        if _less(op):
            ops.append(replace(op, inputs=op.inputs[::-1], attrs={**op.attrs, "opType": "GREATER"}))
        elif _sum(op):
            total, result = op.outputs
            ops += [Op("BinaryOp", op.inputs[:2], [total], {"opType": "ADD"}, name=total),
                    replace(op, inputs=[total, *op.inputs[2:]], outputs=[result])]
        elif _cut(op, graph):
            ops += _groups(op, names, constants)
        else:
            ops.append(op)
    return replace(graph, ops=ops, constants=constants)


def _less(op: Op) -> bool:
    """LESS of floats is wrong there for some elements of long tensors."""
    return op.type == "BinaryOp" and op["opType"] == "LESS" and not op["activationType"]


def _sum(op: Op) -> bool:
    """LayerNorm of a sum is right there in NC4HW4 only."""
    return op.type == "LayerNorm" and len(op.outputs) == 2 and len(op.inputs) > 1


def _cut(op: Op, graph: Graph) -> bool:
    """Groups of transposed convolutions, and of convolutions with computed weights, give rubbish there."""
    if op.type not in ("Convolution", "Deconvolution") or len(op.inputs) < 2 or (op["group"] or 1) < 2:
        return False
    return op.type == "Deconvolution" or op.inputs[1] not in graph.constants


def _groups(op: Op, names: Names, constants: dict[str, Constant]) -> list[Op]:
    """One convolution for each group, between a Slice and a Concat."""
    count = op["group"]
    before: list[Op] = []

    def parts(name: str, axis: int) -> list[str]:
        if not name:
            return [""] * count
        made = [names.fresh(f"{name}.group{i}") for i in range(count)]
        if name in constants:
            whole = constants[name]
            for part, values in zip(made, np.split(decoded(whole), count, axis)):
                constants[part] = half(values) if isinstance(whole, HalfConstant) else values
        else:
            attrs = {"axis": axis, "slicePoints": (count,), "sourceType": "TENSORFLOW"}  # into so many equal parts
            before.append(Op("Slice", [name], made, attrs, name=f"{made[0]}.slice"))
        return made

    sources = [parts(op.inputs[0], 1), *(parts(n, 0) for n in op.inputs[1:3])]
    shape = op.inputs[3:]  # of the output: only its height and width are read
    attrs = {**op.attrs, "group": 1, **{k: op.attrs[k] // count for k in ("outputCount", "inputCount") if op.attrs.get(k)}}
    made = [names.fresh(f"{op.outputs[0]}.group{i}") for i in range(count)]
    each = [replace(op, inputs=[*inputs, *shape], outputs=[name], attrs=attrs, name=name)
            for name, inputs in zip(made, zip(*sources))]
    return [*before, *each, Op("Concat", made, op.outputs, {"axis": 1}, name=op.name)]
