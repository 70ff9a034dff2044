"""Sequences and optionals. MNN has none of them in this form, so our engine alone runs these.

Where it is known what a sequence holds, as in what PyTorch's exporters write for splits and lists, it is read without being
made.
"""

from __future__ import annotations

import numpy as np

from mnn_core import Op

from ..builder import Builder
from ..node import Node
from ..rules import Unsupported, rule
from ..tensors import Type, declared_dtype, type_of


@rule("SequenceEmpty")
def sequence_empty(node: Node, b: Builder) -> None:
    b.op("onnx.SequenceEmpty", [], node.outputs, dtype=("sequence", declared_dtype(node.get("dtype", 1), str(node))))


@rule("SequenceConstruct")
def sequence_construct(node: Node, b: Builder) -> None:
    b.op("onnx.SequenceConstruct", node.inputs, node.outputs, dtype=("sequence", b.type(node.inputs[0])))


@rule("SequenceInsert")
def sequence_insert(node: Node, b: Builder) -> None:
    b.op("onnx.SequenceInsert", node.inputs, node.outputs, dtype=("sequence", b.type(node.inputs[1])))


@rule("SequenceErase")
def sequence_erase(node: Node, b: Builder) -> None:
    b.op("onnx.SequenceErase", node.inputs, node.outputs)


@rule("SequenceAt")
def sequence_at(node: Node, b: Builder) -> None:
    index = b.value(node.inputs[1])
    part = _part(b, node.inputs[0], int(index.reshape(-1)[0])) if index is not None and index.size == 1 else ""
    if part:
        b.identity(part, node.outputs[0])
        return
    b.op("onnx.SequenceAt", node.inputs, node.outputs, dtype=_inner(node, b, "sequence"))


@rule("SequenceLength")
def sequence_length(node: Node, b: Builder) -> None:
    parts = _parts(b, node.inputs[0])
    if parts is not None:
        b.const(np.array(len(parts), np.int64), node.outputs[0])
        return
    b.op("onnx.SequenceLength", node.inputs, node.outputs, dtype=np.int64)


@rule("ConcatFromSequence")
def concat_from_sequence(node: Node, b: Builder) -> None:
    parts, axis = _parts(b, node.inputs[0]), node["axis"]
    if parts:
        if node.get("new_axis", 0):
            parts = [b.op("Unsqueeze", [p], squeezeDims=(axis,)) for p in parts]
        b.op("Concat", parts, node.outputs, axis=axis)
        return
    b.op("onnx.ConcatFromSequence", node.inputs, node.outputs, dtype=_inner(node, b, "sequence"), axis=node["axis"],
         new_axis=bool(node.get("new_axis", 0)))


@rule("SplitToSequence")
def split_to_sequence(node: Node, b: Builder) -> None:
    b.op("onnx.SplitToSequence", node.inputs, node.outputs, dtype=("sequence", b.type(node.inputs[0])),
         axis=node.get("axis", 0), keepdims=bool(node.get("keepdims", 1)))


@rule("Optional")
def optional(node: Node, b: Builder) -> None:
    inner = b.type(node.input(0)) if node.input(0) else type_of(node["type"], str(node))
    b.op("onnx.Optional", node.inputs, node.outputs, dtype=("optional", inner))


@rule("OptionalHasElement")
def optional_has_element(node: Node, b: Builder) -> None:
    b.op("onnx.OptionalHasElement", node.inputs, node.outputs, dtype=np.bool_)


@rule("OptionalGetElement")
def optional_get_element(node: Node, b: Builder) -> None:
    kind = b.type(node.inputs[0])
    inner = kind[1] if isinstance(kind, tuple) and kind[0] == "optional" else kind
    b.op("onnx.OptionalGetElement", node.inputs, node.outputs, dtype=inner)


def _maker(b: Builder, sequence: str) -> Op | None:
    return next((op for op in reversed(b.graph.ops) if sequence in op.outputs), None)


def _parts(b: Builder, sequence: str) -> list[str] | None:
    """The tensors in a sequence that was put together one by one; None if they are not known."""
    inserts, op = [], _maker(b, sequence)
    while op is not None and op.type == "onnx.SequenceInsert":
        inserts.append(op)
        op = _maker(b, op.inputs[0])
    if op is None or op.type not in ("onnx.SequenceEmpty", "onnx.SequenceConstruct"):
        return None
    parts = list(op.inputs)
    for insert in reversed(inserts):
        position = b.value(insert.inputs[2]) if len(insert.inputs) > 2 else np.array(len(parts))
        if position is None or position.size != 1 or abs(at := int(position.reshape(-1)[0])) > len(parts):
            return None
        parts.insert(at, insert.inputs[1])
    return parts


def _part(b: Builder, sequence: str, index: int) -> str:
    """One tensor of a sequence, by its place; "" if it is not known, or outside."""
    parts = _parts(b, sequence)
    if parts is not None:
        return parts[index] if -len(parts) <= index < len(parts) else ""
    op = _maker(b, sequence)
    if op is None or op.type != "onnx.SplitToSequence":
        return ""
    x, axis, sizes = op.inputs[0], int(op["axis"]), b.value(op.inputs[1]) if len(op.inputs) > 1 else np.array(1)
    shape = b.shape(x)
    length = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    if sizes is None or (sizes.ndim == 0 and (sizes < 1 or (length is None and index < 0))):
        return ""
    if sizes.ndim == 0:  # parts of one size, and what remains
        size = int(sizes)
        index += -(-length // size) if length is not None and index < 0 else 0
        start, stop = index * size, (index + 1) * size
        inside = index >= 0 and (length is None or start < length)
    else:
        index += len(sizes) if index < 0 else 0
        start, stop, inside = int(sizes[:index].sum()), int(sizes[:index + 1].sum()), 0 <= index < len(sizes)
    if not inside:
        return ""
    if len(op.inputs) == 1 and not op["keepdims"]:
        return b.gather(x, b.const(np.int32(index)), axis)
    return b.op("StridedSlice", [x, b.ints(start), b.ints(stop), b.ints(axis)], fromType=1)


def _inner(node: Node, b: Builder, what: str) -> Type:
    kind = b.type(node.inputs[0])
    if isinstance(kind, tuple) and kind[0] == "optional":
        kind = kind[1]
    if not isinstance(kind, tuple) or kind[0] != what:
        raise Unsupported(f"its input {node.inputs[0]!r} is no {what}")
    return kind[1]
