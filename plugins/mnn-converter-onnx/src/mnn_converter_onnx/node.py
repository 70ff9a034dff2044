"""An ONNX node as conversion rules see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx

from mnn_core import ModelFormatError

from .rules import Unsupported
from .tensors import declared_dtype, sparse_to_array, to_array

A = onnx.AttributeProto


@dataclass
class Node:
    """Name, operator and attributes of a node, with the *graph's* names of its inputs and outputs ("" = absent)."""

    op_type: str
    domain: str
    version: int
    name: str
    inputs: list[str]
    outputs: list[str]
    attrs: Mapping[str, Any] = field(default_factory=dict)

    def input(self, index: int) -> str:
        """Name of an input; "" if it is absent."""
        return self.inputs[index] if index < len(self.inputs) else ""

    def output(self, index: int) -> str:
        """Name of an output; "" if nobody wants it."""
        return self.outputs[index] if index < len(self.outputs) else ""

    def __getitem__(self, key: str) -> Any:
        """A required attribute. Raises ModelFormatError if it is missing."""
        if key not in self.attrs:
            raise ModelFormatError(f"{self}: its attribute {key!r} is missing")
        return self.attrs[key]

    def get(self, key: str, default: Any = None) -> Any:
        """An attribute, or a default; a value of another kind than the default is a ModelFormatError."""
        value = self.attrs.get(key, default)
        kinds = {int: int, float: (int, float), str: str, tuple: tuple}
        if default is not None and not isinstance(value, kinds[type(default)]):  # type: ignore[arg-type]
            raise ModelFormatError(f"{self}: attribute {key!r} is {value!r}; expected a value like {default!r}")
        return value

    def __str__(self) -> str:
        operator = f"{self.domain}.{self.op_type}" if self.domain else self.op_type
        return f"{operator} {self.name or (self.outputs[0] if self.outputs else '')!r}"


def attribute(proto: onnx.AttributeProto, folder: Path | None, what: str) -> Any:
    """An attribute's value: int, float, str, tuple, array, GraphProto. Raises Unsupported for kinds that no rule uses."""
    label = f"{what}: attribute {proto.name!r}"
    if proto.type == A.FLOAT:
        return float(proto.f)
    if proto.type == A.INT:
        return int(proto.i)
    if proto.type == A.STRING:
        return proto.s.decode("utf-8", "replace")
    if proto.type == A.FLOATS:
        return tuple(float(v) for v in proto.floats)
    if proto.type == A.INTS:
        return tuple(int(v) for v in proto.ints)
    if proto.type == A.STRINGS:
        return tuple(v.decode("utf-8", "replace") for v in proto.strings)
    if proto.type == A.TENSOR:
        array = to_array(proto.t, folder, label)
        return array.astype(declared_dtype(proto.t.data_type, label), copy=False)
    if proto.type == A.SPARSE_TENSOR:
        return sparse_to_array(proto.sparse_tensor, folder, label)
    if proto.type == A.GRAPH:
        return proto.g
    if proto.type == A.TYPE_PROTO:
        return proto.tp
    raise Unsupported(f"{label} is of kind {proto.type}, which is not supported")
