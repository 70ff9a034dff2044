"""Ops and constants that no output depends on are dropped."""

from __future__ import annotations

from ..ir import Graph
from . import Pass


def run(graph: Graph) -> int:
    """Drops what is not needed; graph inputs stay."""
    wanted = {o.name for o in graph.outputs}
    kept = []
    for op in reversed(graph.ops):
        if any(name in wanted for name in op.outputs):
            kept.append(op)
            wanted.update(op.inputs)
    dropped = len(graph.ops) - len(kept)
    graph.ops[:] = reversed(kept)
    unused = [name for name in graph.constants if name not in wanted]
    for name in unused:
        del graph.constants[name]
    return dropped + len(unused)


dead_code = Pass("dead-code", run, "drop ops and constants that no output depends on")
