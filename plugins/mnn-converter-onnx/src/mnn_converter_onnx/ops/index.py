"""Operators that pick or place elements by index."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..builder import Builder
from ..node import Node
from ..rules import Unsupported, rule, wrong

#: Reduction of scattered updates -> opType of the scatter; -1 replaces.
_SCATTER = {"none": -1, "add": "ADD", "mul": "MUL", "min": "MINIMUM", "max": "MAXIMUM"}
#: Ops whose result holds elements of their first input, or of all inputs.
_MOVES = frozenset({"Concat", "Unsqueeze", "Squeeze", "Reshape", "BroadcastTo", "Permute", "Identity", "Cast", "StridedSlice",
                    "GatherV2", "Tile"})


@rule("Gather")
def gather(node: Node, b: Builder) -> None:
    """Negative indices count from the end."""
    b.gather(node.inputs[0], node.inputs[1], node.get("axis", 0), node.outputs)
    ranks = [b.rank(n) for n in node.inputs[:2]]
    if ranks[0] is not None and ranks[1] is not None:
        b.declare(node.outputs[0], None, ranks[0] + ranks[1] - 1)


@rule("GatherElements")
def gather_elements(node: Node, b: Builder) -> None:
    axis = node.get("axis", 0)
    indices = _from_front(b, node.inputs[1], lambda: b.size(node.inputs[0], axis))
    b.op("GatherElements", [node.inputs[0], indices, b.const(np.int32(axis))], node.outputs)


@rule("GatherND")
def gather_nd(node: Node, b: Builder) -> None:
    """MNN means something else by batches: here they become the first numbers of each tuple."""
    batch, rank = node.get("batch_dims", 0), b.rank(node.inputs[1])
    indices = _tuples_from_front(b, node.inputs[0], node.inputs[1], batch)
    if batch and (rank is None or not 0 < batch < rank):
        raise Unsupported(f"batch_dims {batch} of indices of rank {'unknown' if rank is None else rank}")
    if batch:
        assert rank is not None
        tuples = b.op("Shape", [indices], dtype=np.int64, hasEnd=True, end=rank - 1)
        each = b.op("Concat", [tuples, b.ints(1)], axis=0)
        columns = []
        for axis in range(batch):
            places = b.op("Range", [b.const(np.int32(0)), b.size(indices, axis), b.const(np.int32(1))], dtype=np.int64)
            column = b.reshape(places, [-1 if i == axis else 1 for i in range(rank)])
            columns.append(b.op("BroadcastTo", [column, each], dtype=np.int64))
        indices = b.op("Concat", [*columns, indices], dtype=np.int64, axis=rank - 1)
    b.op("GatherND", [node.inputs[0], indices], node.outputs)


@rule("ScatterND")
def scatter_nd(node: Node, b: Builder) -> None:
    """MNN's takes (indices, updates, shape, data)."""
    data, indices, updates = node.inputs[:3]
    indices = _tuples_from_front(b, data, indices, 0)
    inputs = [indices, updates, b.shape_of(data), data]
    b.op("ScatterNd", inputs, node.outputs, dtype=b.dtype(data), **_reduction(node))


@rule("ScatterElements", "Scatter")
def scatter_elements(node: Node, b: Builder) -> None:
    axis = node.get("axis", 0)
    indices = _from_front(b, node.inputs[1], lambda: b.size(node.inputs[0], axis))
    inputs = [node.inputs[0], indices, node.inputs[2], b.const(np.int32(axis))]
    b.op("ScatterElements", inputs, node.outputs, **_reduction(node))


def _counts_from_end(b: Builder, indices: str) -> bool:
    """Whether a negative constant is among indices, or is moved into them."""
    makers = {name: op for op in b.graph.ops for name in op.outputs} if b.value(indices) is None else {}
    pending, seen = [indices], {""}
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        value, maker = b.value(name), makers.get(name)
        if value is not None and value.dtype.kind == "i" and (value < 0).any():
            return True
        if maker is not None and maker.type in _MOVES:
            pending += maker.inputs if maker.type == "Concat" else maker.inputs[:1]
    return False


def _from_front(b: Builder, indices: str, sizes: Callable[[], str]) -> str:
    """Indices that count from the end counted from the front instead, as MNN wants them."""
    if not _counts_from_end(b, indices):
        return indices
    below = b.binary("LESS", indices, b.const(np.int32(0)), dtype=np.int64)
    return b.binary("ADD", indices, b.binary("MUL", below, sizes(), dtype=np.int64), dtype=np.int64)


def _tuples_from_front(b: Builder, data: str, indices: str, batch: int) -> str:
    """The same for tuples of indices into the axes of data from `batch` on."""
    shape = b.shape(indices)
    depth = shape[-1] if shape else None
    if depth is None:
        return indices
    return _from_front(b, indices, lambda: b.op("Shape", [data], dtype=np.int64, hasStart=True, start=batch, hasEnd=True,
                                                end=batch + depth))


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
