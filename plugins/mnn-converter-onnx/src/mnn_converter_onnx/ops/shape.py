"""Operators that ask for shapes or rearrange elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from mnn_core import ModelFormatError

from ..builder import Builder
from ..node import Node
from ..rules import Unsupported, rule, wrong
from ..tensors import declared_dtype

#: Constants of so many bytes are transposed without a copy.
_AS_VIEW = 1 << 20


@rule("Identity", "Dropout")
def identity(node: Node, b: Builder) -> None:
    """Dropout does nothing in inference; its mask is all ones."""
    x = node.inputs[0]
    training = b.value(node.input(2)) if node.input(2) else np.zeros(())
    if node.op_type == "Dropout" and (training is None or training.any()):
        ratio = node.input(1) or b.const(np.float32(0.5))
        outputs = [node.outputs[0] or b.context.fresh(f"{node.name}/y"), node.output(1) or b.context.fresh(f"{node.name}/mask")]
        b.op("onnx.Dropout", [x, ratio, node.inputs[2]], outputs, seed=node.get("seed", 0))
        b.declare(outputs[1], np.dtype(np.bool_))
        return
    kept = node.op_type == "Dropout" and b.context.for_training
    b.op("Dropout" if kept else "Identity", [x], node.outputs[:1])
    if node.output(1):
        b.op("Fill", [b.shape_of(x), b.const(np.int32(1))], [node.output(1)],
             dtype=np.bool_ if node.version >= 10 else b.dtype(x))


@rule("Constant")
def constant(node: Node, b: Builder) -> None:
    kinds = {"value": None, "sparse_value": None, "value_float": np.float32, "value_int": np.int64, "value_floats": np.float32,
             "value_ints": np.int64, "value_string": object, "value_strings": object}
    given = [k for k in kinds if k in node.attrs]
    if len(given) != 1:
        raise Unsupported(f"a constant of {len(given)} values")
    b.const(np.asarray(node.attrs[given[0]], kinds[given[0]]), node.outputs[0])


@rule("ConstantOfShape")
def constant_of_shape(node: Node, b: Builder) -> None:
    value = np.asarray(node.attrs.get("value", np.zeros(1, np.float32)))
    if value.size != 1:
        raise ModelFormatError(f"{node}: its value has {value.size} elements; expected one")
    b.op("Fill", [node.inputs[0], b.const(value.reshape(()))], node.outputs, dtype=value.dtype)


@rule("Shape")
def shape(node: Node, b: Builder) -> None:
    attrs: dict[str, Any] = {}
    if node.get("start", 0):
        attrs.update(hasStart=True, start=node["start"])
    if "end" in node.attrs:
        attrs.update(hasEnd=True, end=node["end"])
    b.op("Shape", node.inputs, node.outputs, dtype=np.int64, **attrs)


@rule("Size")
def size(node: Node, b: Builder) -> None:
    b.op("Size", node.inputs, node.outputs, dtype=np.int64)


@rule("Reshape")
def reshape(node: Node, b: Builder) -> None:
    """A dim of 0 copies the input's, unless allowzero is set: then it is a dim of no elements, as with dimType NHWC."""
    x, zeros = node.inputs[0], bool(node.get("allowzero", 0))
    if "shape" in node.attrs and node.version < 5:
        dims: tuple[int, ...] | None = tuple(node["shape"])
    else:
        dims = b.vector(node.inputs[1], f"{node}: the shape")
    if dims is None:
        b.op("Reshape", [x, node.inputs[1]], node.outputs, **({"dimType": "NHWC"} if zeros else {}))
    elif not (zeros and 0 in dims):
        b.op("Reshape", [x], node.outputs, dims=dims)
    else:  # the result has no elements, whatever the input holds; -1 beside a 0 is not allowed
        if -1 in dims:
            raise ModelFormatError(f"{node}: shape {list(dims)} has both 0 and -1, with allowzero")
        b.op("BroadcastTo", [b.number(0, x), b.const(np.array(dims))], node.outputs)


@rule("Flatten")
def flatten(node: Node, b: Builder) -> None:
    x, axis = node.inputs[0], node.get("axis", 1)
    if axis < 0:
        rank = b.rank(x)
        if rank is None:
            raise Unsupported(f"axis {axis} of a tensor of unknown rank")
        axis += rank
    if axis == 0:
        b.reshape(x, (1, -1), node.outputs)
    else:
        b.op("Flatten", [x], node.outputs, axis=axis)


@rule("Squeeze", "Unsqueeze")
def squeeze(node: Node, b: Builder) -> None:
    axes = node.attrs.get("axes")
    if axes is None and node.input(1):
        axes = b.vector(node.input(1), f"{node}: the axes")
        if axes is None:
            b.op(node.op_type, node.inputs[:2], node.outputs)
            return
    if node.op_type == "Unsqueeze":
        axes = _from_front(node, b, tuple(axes or ()))
    b.op(node.op_type, node.inputs[:1], node.outputs, **({"squeezeDims": tuple(axes)} if axes else {}))
    rank = b.rank(node.inputs[0])
    if axes and rank is not None:
        b.declare(node.outputs[0], None, rank + len(axes) * (1 if node.op_type == "Unsqueeze" else -1))


def _from_front(node: Node, b: Builder, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Axes in ascending order where they can be counted from the front, as they are where not."""
    rank = b.rank(node.inputs[0])
    if all(a >= 0 for a in axes):
        return tuple(sorted(axes))
    if rank is None:
        return axes
    total = rank + len(axes)
    if any(not -total <= a < total for a in axes):
        raise ModelFormatError(f"{node}: axes {list(axes)} are outside the output's rank {total}")
    return tuple(sorted(a % total for a in axes))


@rule("Transpose")
def transpose(node: Node, b: Builder) -> None:
    """Large constants are turned as views: they may be mapped from a file that does not fit in memory."""
    perm = node.get("perm")
    value, result = b.graph.constants.get(node.inputs[0]), node.output(0)
    order = tuple(perm) if perm is not None else tuple(range(b.rank(node.inputs[0]) or 0))[::-1]
    if isinstance(value, np.ndarray) and value.nbytes >= _AS_VIEW and sorted(order) == list(range(value.ndim)) and result:
        b.graph.constants[result] = value.transpose(order)
        b.declare(result, b.dtype(node.inputs[0]), value.ndim)
        return
    b.op("Permute", node.inputs, node.outputs, **({"dims": tuple(perm)} if perm is not None else {}))


@rule("Concat")
def concat(node: Node, b: Builder) -> None:
    b.op("Concat", node.inputs, node.outputs, axis=node.get("axis", 1))


@rule("Split")
def split(node: Node, b: Builder) -> None:
    axis, sizes = node.get("axis", 0), node.get("split")
    if sizes is None and node.input(1):
        sizes = b.vector(node.input(1), f"{node}: the sizes")
        if sizes is None:
            b.op("Slice", node.inputs[:2], node.outputs, axis=axis, sourceType="TENSORFLOW")
            return
    if sizes is None:
        count = node.get("num_outputs", len(node.outputs))
        if count != len(node.outputs):
            raise ModelFormatError(f"{node}: num_outputs is {count}, but the node has {len(node.outputs)} outputs")
        _split_equally(node, b, axis, count)
        return
    if len(sizes) != len(node.outputs):
        raise ModelFormatError(f"{node}: {len(sizes)} sizes for {len(node.outputs)} outputs")
    if len(sizes) == 1:
        b.op("Identity", node.inputs[:1], node.outputs)
        return
    points = tuple(int(p) for p in np.cumsum(sizes)[:-1])
    b.op("Slice", node.inputs[:1], _named(node, b), axis=axis, slicePoints=points, sourceType="CAFFE")


def _named(node: Node, b: Builder) -> list[str]:
    """Outputs, those that nobody wants under a name too."""
    return [n or b.context.fresh(f"{node.name}/unused") for n in node.outputs]


def _split_equally(node: Node, b: Builder, axis: int, count: int) -> None:
    """Equal parts; from opset 18 on the last one may be smaller."""
    x = node.inputs[0]
    if count == 1:
        b.op("Identity", [x], node.outputs)
    elif node.version < 18 or "num_outputs" not in node.attrs:
        b.op("Slice", [x], _named(node, b), axis=axis, slicePoints=(count,), sourceType="TENSORFLOW")
    else:
        length = b.op("GatherV2", [b.shape_of(x), b.ints(axis), b.const(np.int32(0))], dtype=np.int64)
        part = b.binary("REALDIV", b.binary("ADD", length, b.ints(count - 1)), b.ints(count))
        rest = b.binary("SUB", length, b.binary("MUL", part, b.ints(count - 1)))
        sizes = b.op("Concat", [part] * (count - 1) + [rest], axis=0)
        b.op("Slice", [x, sizes], _named(node, b), axis=axis, sourceType="TENSORFLOW")


@rule("Slice", until=9)
def slice_attributes(node: Node, b: Builder) -> None:
    starts, ends = node["starts"], node["ends"]
    axes = node.get("axes") or tuple(range(len(starts)))
    b.op("StridedSlice", [node.inputs[0], b.ints(*starts), b.ints(*ends), b.ints(*axes)], node.outputs, fromType=1)


@rule("Slice", since=10)
def slice_(node: Node, b: Builder) -> None:
    """Bounds of 64 bits such as INT64_MAX were cut to 32 where they are constants."""
    x, starts, ends, axes, steps = (node.input(i) for i in range(5))
    values = b.vector(steps, f"{node}: the steps") if steps else None
    if values is not None and 0 in values:
        raise ModelFormatError(f"{node}: a step is 0")
    if steps and not axes:
        count = b.value(starts)
        axes = b.ints(*range(count.size)) if count is not None else \
            b.op("Range", [b.const(np.int32(0)), b.size(starts, 0), b.const(np.int32(1))], dtype=np.int64)
    if values is not None and all(v == 1 for v in values):
        steps = ""
    b.op("StridedSlice", [x, starts, ends, axes, steps], node.outputs, dtype=b.dtype(x), fromType=1)


@rule("Expand")
def expand(node: Node, b: Builder) -> None:
    b.op("BroadcastTo", node.inputs[:2], node.outputs)


@rule("Tile", since=6)
def tile(node: Node, b: Builder) -> None:
    b.op("Tile", node.inputs[:2], node.outputs)


@rule("DepthToSpace", "SpaceToDepth")
def depth_to_space(node: Node, b: Builder) -> None:
    mode = node.get("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise wrong("mode", mode, "'DCR' or 'CRD'")
    b.op(node.op_type, node.inputs, node.outputs, blockSize=node["blocksize"], mode=mode)


@rule("ReverseSequence")
def reverse_sequence(node: Node, b: Builder) -> None:
    b.op("ReverseSequence", node.inputs[:2], node.outputs, batchDim=node.get("batch_axis", 1), seqDim=node.get("time_axis", 0))


@rule("Range")
def range_(node: Node, b: Builder) -> None:
    b.op("Range", node.inputs[:3], node.outputs)


@rule("EyeLike")
def eye_like(node: Node, b: Builder) -> None:
    x, k = node.inputs[0], node.get("k", 0)
    dtype = declared_dtype(node["dtype"], "the result") if "dtype" in node.attrs else b.dtype(x)
    pick = [b.size(x, i) for i in (0, 1)]
    rows, columns = (b.op("Range", [b.const(np.int32(0)), p, b.const(np.int32(1))], dtype=np.int64) for p in pick)
    shifted = b.binary("ADD", b.op("Unsqueeze", [rows], squeezeDims=(1,)), b.ints(k))
    b.cast(b.binary("EQUAL", shifted, columns, dtype=np.int32), dtype, node.outputs)


@rule("Trilu")
def trilu(node: Node, b: Builder) -> None:
    """Keeps where column - row >= k (upper) or <= k (lower)."""
    x = node.inputs[0]
    k = node.input(1) or b.const(np.int32(0))
    pick = [b.size(x, i) for i in (-2, -1)]
    rows, columns = (b.op("Range", [b.const(np.int32(0)), p, b.const(np.int32(1))], dtype=np.int64) for p in pick)
    offset = b.binary("SUB", columns, b.op("Unsqueeze", [rows], squeezeDims=(1,)))
    keep = b.binary("GREATER_EQUAL" if node.get("upper", 1) else "LESS_EQUAL", offset, k, dtype=np.bool_)
    b.op("Select", [keep, x, b.number(0, x)], node.outputs, dtype=b.dtype(x))
