"""Ops that copy their input are removed."""

from __future__ import annotations

from ..ir import Graph, Op
from . import Pass


def _is_copy(op: Op) -> bool:
    if op.type in ("Identity", "Dropout", "Copy"):
        return len(op.inputs) == 1 and len(op.outputs) == 1
    return op.type == "Permute" and len(op["dims"]) > 0 and tuple(op["dims"]) == tuple(range(len(op["dims"])))


def run(graph: Graph) -> int:
    """Readers of a copy read the original. A copy that is a graph output gives its name to the original, if that is free."""
    outputs = {o.name for o in graph.outputs}
    producers = graph.producers()
    renamed: dict[str, str] = {}
    kept = []
    for op in graph.ops:
        op.inputs = [renamed.get(name, name) for name in op.inputs]
        if not _is_copy(op):
            kept.append(op)
            continue
        source, copy = op.inputs[0], op.outputs[0]
        if copy not in outputs:
            renamed[copy] = source
        elif source in producers and source not in outputs:
            maker = producers[source]
            maker.outputs = [copy if name == source else name for name in maker.outputs]
            producers[copy] = maker
            renamed[source] = copy
            for other in kept:
                other.inputs = [copy if name == source else name for name in other.inputs]
            renamed.update({old: copy for old, new in renamed.items() if new == source})
        elif source in graph.constants and source not in outputs:
            graph.constants[copy] = graph.constants[source]
        else:
            kept.append(op)
    changed = len(graph.ops) - len(kept)
    graph.ops[:] = kept
    return changed


identity = Pass("identity", run, "remove copies: Identity, Dropout, Permute that changes nothing")
