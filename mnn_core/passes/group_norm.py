"""A layer norm between Reshape to (batch, groups, -1) and Reshape back is a norm in groups of channels.

So PyTorch's exporters write GroupNorm and InstanceNorm, before operator set 21 as InstanceNormalization between reshapes, and
so do diffusers' and hand-written ones. The real MNN runs LayerNorm with groups, but without factors for each channel, which
stay ops of their own.
"""

from __future__ import annotations

from ..ir import Graph
from . import Pass
from ._shapes import Shapes
from ._view import View


def run(graph: Graph) -> int:
    """Both numbers must be known, and the groups be of one size; one group is a norm over all axes but the first."""
    view, shapes = View(graph), Shapes(graph)
    for op in graph.ops:
        if op.type != "Reshape" or not view.only_here(op.inputs[0]):
            continue
        norm = view.producer(op.inputs[0], "LayerNorm")
        if norm is None or len(norm.inputs) != 1 or len(norm.outputs) != 1 or norm["group"] > 1 or \
                tuple(norm["axis"]) not in ((-1,), (2,)):
            continue
        flat = view.producer(norm.inputs[0], "Reshape")
        if flat is None or not view.only_here(norm.inputs[0]):
            continue
        x, rows, y = (shapes.shapes.get(n) for n in (flat.inputs[0], flat.outputs[0], op.outputs[0]))
        if x is None or rows is None or x != y or len(x) < 3 or len(rows) != 3 or rows[0] != x[0]:
            continue
        channels, groups = x[1], rows[1]
        if not isinstance(channels, int) or not isinstance(groups, int) or groups < 1 or channels % groups:
            continue
        where = {"group": groups, "axis": (-1,)} if groups > 1 else {"axis": tuple(range(1 - len(x), 0))}
        kept = {k: v for k, v in norm.attrs.items() if k not in ("group", "axis")}
        view.change(op, "LayerNorm", flat.inputs[:1], {**kept, **where})
    return view.finish()


group_norm = Pass("group-norm", run, "layer norms between reshapes become norms in groups of channels", main_only=True)
