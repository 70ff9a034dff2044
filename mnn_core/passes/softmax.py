"""Softmax of a matrix between two reshapes, as operator sets before 13 mean it, is Softmax along the last axis."""

from __future__ import annotations

from ..ir import Graph
from . import Pass
from ._shapes import Shapes
from ._view import View


def run(graph: Graph) -> int:
    """A Reshape of Softmax of Flatten, where the matrix's rows are the lines along the last axis and the shape comes back."""
    view, shapes = View(graph), Shapes(graph)
    for op in graph.ops:
        if op.type != "Reshape" or not view.only_here(op.inputs[0]):
            continue
        softmax = view.producer(op.inputs[0], "Softmax")
        flat = view.producer(softmax.inputs[0], "Flatten", "Reshape") if softmax is not None else None
        if softmax is None or flat is None or not view.only_here(softmax.inputs[0]) or softmax["axis"] not in (1, -1):
            continue
        x, matrix, y = (shapes.shapes.get(n) for n in (flat.inputs[0], flat.outputs[0], op.outputs[0]))
        if x is not None and matrix is not None and x == y and len(matrix) == 2 and len(x) > 1 and x[-1] == matrix[1]:
            view.change(op, "Softmax", flat.inputs[:1], {"axis": -1})
    return view.finish()


softmax = Pass("softmax", run, "softmax between two reshapes runs along the last axis", main_only=True)
