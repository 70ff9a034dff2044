"""What --dump-pass shows: the ops that each pass took and made."""

from __future__ import annotations

import sys
from collections import Counter

from ..ir import Graph, Op

_SHOWN = 20


class Trace:
    """Called before all passes and after each that changed something; prints the difference from the time before."""

    def __init__(self) -> None:
        self.before: dict[int, Counter[str]] = {}

    def __call__(self, name: str, graph: Graph, changes: int) -> None:
        after = Counter(map(_line, graph.ops))
        before = self.before.get(id(graph))
        if not name:
            self.before = {id(part): Counter(map(_line, part.ops)) for part in (graph, *graph.subgraphs.values())}
            return
        print(f"pass {name}: {changes} changes, {len(graph.ops)} ops", file=sys.stderr)
        if before is not None:
            gone, made = before - after, after - before
            for sign, lines in (("-", gone), ("+", made)):
                for line in list(lines.elements())[:_SHOWN]:
                    print(f"  {sign} {line}", file=sys.stderr)
                if lines.total() > _SHOWN:
                    print(f"  {sign} ... {lines.total() - _SHOWN} more", file=sys.stderr)
        self.before[id(graph)] = after


def _line(op: Op) -> str:
    return f"{op.type}({', '.join(op.inputs)}) -> {', '.join(op.outputs)}"
