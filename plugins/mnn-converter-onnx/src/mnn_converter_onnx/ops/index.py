"""Operators that pick or place elements by index."""

from __future__ import annotations

import numpy as np

from ..builder import Builder
from ..node import Node
from ..rules import rule, wrong

#: Reduction of scattered updates -> opType of the scatter; -1 replaces.
_SCATTER = {"none": -1, "add": "ADD", "mul": "MUL", "min": "MINIMUM", "max": "MAXIMUM"}


@rule("Gather")
def gather(node: Node, b: Builder) -> None:
    """Negative indices count from the end."""
    b.gather(node.inputs[0], node.inputs[1], node.get("axis", 0), node.outputs)
    ranks = [b.rank(n) for n in node.inputs[:2]]
    if ranks[0] is not None and ranks[1] is not None:
        b.declare(node.outputs[0], None, ranks[0] + ranks[1] - 1)


@rule("GatherElements")
def gather_elements(node: Node, b: Builder) -> None:
    b.op("GatherElements", [*node.inputs[:2], b.const(np.int32(node.get("axis", 0)))], node.outputs)


@rule("GatherND")
def gather_nd(node: Node, b: Builder) -> None:
    batch = node.get("batch_dims", 0)
    b.op("GatherND", node.inputs[:2], node.outputs, **({"axis": batch} if batch else {}))


@rule("ScatterND")
def scatter_nd(node: Node, b: Builder) -> None:
    """MNN's takes (indices, updates, shape, data)."""
    data, indices, updates = node.inputs[:3]
    inputs = [indices, updates, b.shape_of(data), data]
    b.op("ScatterNd", inputs, node.outputs, dtype=b.dtype(data), **_reduction(node))


@rule("ScatterElements", "Scatter")
def scatter_elements(node: Node, b: Builder) -> None:
    inputs = [*node.inputs[:3], b.const(np.int32(node.get("axis", 0)))]
    b.op("ScatterElements", inputs, node.outputs, **_reduction(node))


def _reduction(node: Node) -> dict[str, object]:
    kind = node.get("reduction", "none")
    if kind not in _SCATTER:
        raise wrong("reduction", kind, f"one of {', '.join(_SCATTER)}")
    return {"opType": _SCATTER[kind]}


@rule("OneHot")
def one_hot(node: Node, b: Builder) -> None:
    """Negative indices count from the end; those outside give rows of the off value."""
    indices, depth, values = node.inputs[:3]
    both = b.value(values)
    if both is not None:
        off, on = b.const(both.reshape(-1)[0], dtype=b.dtype(values)), b.const(both.reshape(-1)[1], dtype=b.dtype(values))
    else:
        off, on = (b.op("GatherV2", [values, b.const(np.int32(i)), b.const(np.int32(0))]) for i in (0, 1))
    count = b.reshape(b.cast(depth, np.int32), ())
    inputs = [b.cast(indices, np.int32), count, on, off]
    b.op("OneHot", inputs, node.outputs, dtype=b.dtype(values), axis=node.get("axis", -1))


@rule("NonZero")
def non_zero(node: Node, b: Builder) -> None:
    x = node.inputs[0]
    found = b.op("Where", [b.binary("NOTEQUAL", x, b.number(0, x), dtype=np.bool_)], dtype=np.int64)
    b.op("Permute", [found], node.outputs, dtype=np.int64, dims=(1, 0))


@rule("Compress")
def compress(node: Node, b: Builder) -> None:
    """Gathers where the condition holds; without an axis, of the flattened tensor."""
    x, condition = node.inputs[0], node.inputs[1]
    where = b.reshape(b.op("Where", [condition], dtype=np.int64), (-1,))
    axis = node.get("axis")
    if axis is None:
        x = b.reshape(x, (-1,))
    b.op("GatherV2", [x, where, b.const(np.int32(axis or 0))], node.outputs, dtype=b.dtype(x))


@rule("Unique")
def unique(node: Node, b: Builder) -> None:
    """Y, first indices, inverse indices, counts."""
    outputs = [n or b.context.fresh(f"{node.name}/unused") for n in (*node.outputs, "", "", "")][:4]
    attrs = {} if node.get("sorted", 1) else {"sorted": False}
    if "axis" in node.attrs and b.rank(node.inputs[0]) != 1:
        attrs["axis"] = node["axis"]
    b.op("Unique", node.inputs, outputs, dtype=np.int64, **attrs)
    b.declare(outputs[0], b.dtype(node.inputs[0]))


@rule("NonMaxSuppression")
def non_max_suppression(node: Node, b: Builder) -> None:
    """Boxes (batch, n, 4) and scores (batch, class, n) give rows (batch, class, box)."""
    b.op("NonMaxSuppressionV2", node.inputs, node.outputs, dtype=np.int64,
         **({"centered": True} if node.get("center_point_box", 0) else {}))
