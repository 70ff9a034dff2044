"""Sequences and optionals. MNN has none of them in this form, so our engine alone runs these."""

from __future__ import annotations

import numpy as np

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
    b.op("onnx.SequenceAt", node.inputs, node.outputs, dtype=_inner(node, b, "sequence"))


@rule("SequenceLength")
def sequence_length(node: Node, b: Builder) -> None:
    b.op("onnx.SequenceLength", node.inputs, node.outputs, dtype=np.int64)


@rule("ConcatFromSequence")
def concat_from_sequence(node: Node, b: Builder) -> None:
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


def _inner(node: Node, b: Builder, what: str) -> Type:
    kind = b.type(node.inputs[0])
    if isinstance(kind, tuple) and kind[0] == "optional":
        kind = kind[1]
    if not isinstance(kind, tuple) or kind[0] != what:
        raise Unsupported(f"its input {node.inputs[0]!r} is no {what}")
    return kind[1]
