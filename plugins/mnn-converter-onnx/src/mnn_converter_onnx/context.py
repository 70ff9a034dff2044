"""What the graphs of one model share while they are converted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import onnx

from mnn_core import ConversionError, Graph, ModelFormatError

from .shapes import Shape, inferred_shapes

#: Nodes that the functions of a model may expand to in all; a small file can ask for billions.
_MAX_EXPANDED = 200_000


@dataclass
class Context:
    """The model, its folder, the operator sets, and what was found wrong so far.

    taken: every tensor name of every graph: names are unique in the whole model. root: the outermost graph, which holds
    all subgraphs. custom: (domain, operator) -> registered custom op type. narrowed: constants with numbers that MNN's types
    do not hold.
    """

    model: onnx.ModelProto
    folder: Path | None
    root: Graph
    allow_custom_op: bool = False
    for_training: bool = False
    custom: dict[tuple[str, str], str] = field(default_factory=dict)
    opsets: dict[str, int] = field(default_factory=dict)
    functions: dict[tuple[str, str], onnx.FunctionProto] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    narrowed: list[str] = field(default_factory=list)
    problems: list[tuple[str, str, str]] = field(default_factory=list)
    expanded: int = 0
    _counters: Counter[str] = field(default_factory=Counter)
    _shapes: dict[str, Shape] | None = None

    def fresh(self, stem: str) -> str:
        """A tensor or subgraph name that nothing uses yet; it is taken from now on."""
        name = stem
        while name in self.taken or not name:
            self._counters[stem] += 1
            name = f"{stem}_{self._counters[stem]}"
        self.taken.add(name)
        return name

    def shape(self, name: str) -> Shape | None:
        """Shape of an ONNX tensor by ONNX's own shape inference, which is run when it is first asked for."""
        if self._shapes is None:
            self._shapes = inferred_shapes(self.model)
        return self._shapes.get(name)

    def expand(self, nodes: int) -> None:
        """Counts nodes that come out of functions. Raises ModelFormatError if there are too many."""
        self.expanded += nodes
        if self.expanded > _MAX_EXPANDED:
            raise ModelFormatError(f"the model's functions expand to more than {_MAX_EXPANDED} nodes")

    def report(self, operator: str, node: str, reason: str) -> None:
        """Notes that a node cannot be converted."""
        self.problems.append((operator, node, reason))

    def finish(self) -> None:
        """Raises ConversionError with every operator that could not be converted."""
        if not self.problems:
            return
        groups: dict[tuple[str, str], list[str]] = {}
        for operator, node, reason in self.problems:
            groups.setdefault((operator, reason), []).append(node)
        lines = []
        for (operator, reason), nodes in sorted(groups.items(), key=lambda g: -len(g[1])):
            shown = ", ".join(repr(n) for n in nodes[:5]) + (f", and {len(nodes) - 5} more" if len(nodes) > 5 else "")
            lines.append(f"  {operator}: {len(nodes)} x ({shown}): {reason}")
        raise ConversionError(f"{len(self.problems)} nodes cannot be converted:\n" + "\n".join(lines) +
                              "\nRegister an op with mnn_core.register_op(..., onnx=\"domain.Name\"), or keep unknown "
                              "operators with allow_custom_op=True")
