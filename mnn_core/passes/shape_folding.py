"""What follows from fixed dimensions is computed now; reshapes to sizes that are partly known say so themselves.

PyTorch's exporters write x.view(batch, length, 4, 8) as Shape, Gather, Concat and Reshape, and leave computations with the
sizes of an attention head or of a half of the channels in the graph.
"""

from __future__ import annotations

from ..ir import Graph, Op
from . import Pass
from ._shapes import Dim, Shape, Shapes
from ._view import View

#: These are copies if the shape stays.
_RESHAPES = ("Reshape", "Flatten", "BroadcastTo")


def _dims(wanted: list[Dim], x: Shape) -> tuple[int, ...] | None:
    """The attribute of a Reshape to wanted sizes: 0 copies a size, -1 stands for one that is not known.

    -1 beside copied sizes is only written if it was there before: sizes might be 0, and it could not be worked out.
    """
    made: list[int] = []
    for i, d in enumerate(wanted):
        if isinstance(d, str):
            made.append(0 if i < len(x) and x[i] == d else -1)
        elif d == 0:
            return None
        else:
            made.append(d)
    unknown = [d for d, w in zip(made, wanted) if d == -1 and w != -1]
    return tuple(made) if not unknown or (made.count(-1) == 1 and 0 not in made) else None


def _reshape(view: View, shapes: Shapes, op: Op) -> None:
    x, wanted = shapes.shapes.get(op.inputs[0]), shapes.items(op.inputs[1])
    if x is None or wanted is None or op["dimType"] != "NCHW":
        return
    dims = _dims(wanted, x)
    if dims is not None:
        view.change(op, "Reshape", op.inputs[:1], {"dims": dims})


def run(graph: Graph) -> int:
    """Tensors that are known become constants; Reshape takes sizes as an attribute, and vanishes where the shape stays."""
    view, shapes = View(graph), Shapes(graph)
    for op in graph.ops:
        x, y = (shapes.shapes.get(n) if n else None for n in (op.inputs[:1] or [""]) + op.outputs[:1])
        if op.type in _RESHAPES and x is not None and x == y:
            view.change(op, "Identity", op.inputs[:1], {})
        elif op.type == "Reshape" and len(op.inputs) == 2:
            _reshape(view, shapes, op)
    outputs = {o.name for o in graph.outputs}
    found = [op for op in graph.ops if op.outputs and all(not n or n in shapes.known for n in op.outputs)]
    found = [op for op in found if not outputs.intersection(op.outputs)]
    gone = {id(op) for op in found}
    for op in found:
        graph.constants.update({n: shapes.known[n] for n in op.outputs if n})
    count = view.finish()
    graph.ops[:] = [op for op in graph.ops if id(op) not in gone]
    return count + len(found)


shape_folding = Pass("shape-folding", run, "what follows from fixed dimensions is computed now", main_only=True)
