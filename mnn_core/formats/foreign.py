"""Ops of a graph that the real MNN cannot run: they are stored as Extra ops of ours."""

from __future__ import annotations

from typing import Any

from ..ir import Graph, Op, schema
from .compat import for_mnn
from .op_weights import VECTORS

#: Ops and parameter tables that MNN 3.6.1 does not have.
_TOO_NEW = frozenset({"FusedLinear", "GatedRMSNorm"})


def parameters(op: Op) -> tuple[str | None, dict[str, Any], bool]:
    """The parameter table of an op, the attributes that are set, and whether MNN's op can hold them all."""
    param = op.param or schema.parameter_table(op.type)
    if op.type == "ScatterNd" and op["opType"] is None:
        param = None
    fields = {f.name for f in schema.TABLES.get(param or "", ())}
    if "common" in fields:
        fields |= {f.name for f in schema.TABLES[f"{param}Common"]}
    attrs = {k: v for k, v in op.attrs.items() if v is not None}
    known = op.type in schema.OP_NUMBERS and op.type not in _TOO_NEW and all(k in fields for k in attrs)
    return param, attrs, known and not _more_inputs(op)


def _more_inputs(op: Op) -> bool:
    """Whether a recurrent layer reads what MNN's has no input for (lengths, peepholes), and would take for something else."""
    own = {"LSTM": 6, "RNN": 5, "RNNSequenceGRU": 12 if op.attrs.get("isBidirectionalRNN") else 7}.get(op.type)
    return own is not None and any(op.inputs[own:])


def foreign_ops(graph: Graph) -> list[Op]:
    """The ops that a file of this graph holds as Extra ops, subgraphs included."""
    found = []
    for part in (graph, *graph.subgraphs.values()):
        for op in for_mnn(part).ops:
            if op.type.startswith("Unknown<") or (op.type == "Raster" and not op.attrs.get("fill")):
                continue
            param, _, fits = parameters(op)
            weights = op.inputs[1 : 1 + len(VECTORS.get(param or "", ()))]
            computed = op.type != "LayerNorm" and any(n and n not in part.constants for n in weights)
            if op.type == "Extra" or not fits or computed:
                found.append(op)
    return found
