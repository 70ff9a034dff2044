"""Reshapes that undo or repeat each other."""

from __future__ import annotations

from ..ir import Graph
from . import Pass
from ._view import View

_SHAPES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")


def run(graph: Graph) -> int:
    """A Reshape to full dims reads past reshapes before it; Squeeze and Unsqueeze of the same axes vanish."""
    view = View(graph)
    for op in graph.ops:
        if op.type == "Reshape" and len(op.inputs) == 1 and 0 not in op["dims"]:
            before = view.producer(op.inputs[0], *_SHAPES)
            if before is not None and op["dimType"] == "NCHW":
                view.change(op, "Reshape", [before.inputs[0]], op.attrs)
        elif op.type in ("Squeeze", "Unsqueeze") and len(op.inputs) == 1 and len(op["squeezeDims"]):
            before = view.producer(op.inputs[0], "Unsqueeze" if op.type == "Squeeze" else "Squeeze")
            if before is not None and len(before.inputs) == 1 and sorted(before["squeezeDims"]) == sorted(op["squeezeDims"]) \
                    and min(op["squeezeDims"]) >= 0:
                view.change(op, "Identity", [before.inputs[0]], {})
    return view.finish()


reshape = Pass("reshape", run, "reshapes that undo or repeat each other are merged")
