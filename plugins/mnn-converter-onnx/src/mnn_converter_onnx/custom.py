"""Operators without a rule: registered custom ops, functions of the ONNX standard, and unknown ones that are kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from mnn_core import Op
from mnn_core.ir import schema

from .builder import Builder
from .node import Node, attribute
from .rules import Unsupported
from .tensors import Type


def add_registered(node: Node, b: Builder) -> None:
    """An operator that maps to a registered op: attributes of equal names are taken over."""
    op_type = b.context.custom[node.domain, node.op_type]
    known = schema.attributes(op_type) or {}
    unknown = sorted(set(node.attrs) - set(known))
    if unknown:
        raise Unsupported(f"op {op_type!r} has no attribute {unknown[0]!r}; it has: {', '.join(sorted(known)) or 'none'}")
    attrs = {name: _like(value, known[name].default) for name, value in node.attrs.items()}
    b.op(op_type, node.inputs, node.outputs, **attrs)


def _like(value: object, default: object) -> object:
    """ONNX has no booleans and writes whole floats as it likes; the default tells what is meant."""
    if isinstance(default, bool):
        return bool(value)
    if isinstance(default, float) and isinstance(value, int):
        return float(value)
    return value


def standard_function(node: Node, b: Builder) -> onnx.FunctionProto | None:
    """The body by which the ONNX standard defines an operator, for the types of its inputs."""
    if not onnx.defs.has(node.op_type, node.domain):
        return None
    try:
        found = onnx.defs.get_schema(node.op_type, node.version, node.domain)
    except onnx.defs.SchemaError:
        return None
    if found.has_function:  # type: ignore[attr-defined]
        return found.function_body
    if not found.has_context_dependent_function:  # type: ignore[attr-defined]
        return None
    names = [f"i{i}" if n else "" for i, n in enumerate(node.inputs)]
    outputs = [f"o{i}" if n else "" for i, n in enumerate(node.outputs)]
    proto = onnx.helper.make_node(node.op_type, names, outputs, domain=node.domain, **node.attrs)
    types = []
    for name in node.inputs:
        shape = b.shape(name) if name else None
        rank = b.rank(name) if name else None
        dims = shape if shape is not None else [None] * rank if rank else None
        types.append((_type_proto(b.type(name), dims) if name else onnx.TypeProto()).SerializeToString())
    body = onnx.FunctionProto()
    body.ParseFromString(found.get_context_dependent_function(proto.SerializeToString(), types))  # type: ignore[attr-defined]
    return body


def _type_proto(kind: Type, dims: Sequence[int | None] | None) -> onnx.TypeProto:
    """A type as ONNX writes it. dims: of a tensor; those of tensors inside of sequences are not known."""
    if isinstance(kind, np.dtype):
        return onnx.helper.make_tensor_type_proto(onnx.helper.np_dtype_to_tensor_dtype(kind), dims)
    make = onnx.helper.make_sequence_type_proto if kind[0] == "sequence" else onnx.helper.make_optional_type_proto
    return make(_type_proto(kind[1], None))


def standard_defaults(node: Node) -> dict[str, object]:
    """Default values of the attributes of a standard operator, which its function body refers to."""
    if not onnx.defs.has(node.op_type, node.domain):
        return {}
    try:
        found = onnx.defs.get_schema(node.op_type, node.version, node.domain)
    except onnx.defs.SchemaError:
        return {}
    return {name: attribute(a.default_value, None, str(node)) for name, a in found.attributes.items()
            if a.default_value.type != onnx.AttributeProto.UNDEFINED}


def add_unknown(node: Node, b: Builder) -> None:
    """An operator that nobody knows, kept as MNN keeps it: op Extra with the attributes as they are."""
    attr = []
    for key, value in sorted(node.attrs.items()):
        if isinstance(value, onnx.GraphProto):
            raise Unsupported(f"attribute {key!r} is a graph, which a custom op cannot keep")
        attr.append({"key": key, **_field(value)})
    attr.append({"key": "onnx_opset_version", "i": node.version})
    b.graph.ops.append(Op("Extra", list(node.inputs), list(node.outputs),
                          {"type": node.op_type, "engine": "ONNX", "attr": tuple(attr)}, name=node.name))
    for name in node.outputs:
        if name:
            b.declare(name, None)


#: Domains whose operators only one kind of machine has -> why, and what to do.
_OF_ONE_MACHINE = {
    "com.microsoft.nchwc": "a layout of images in blocks, for the processor on which onnxruntime's optimiser ran; give the "
                           "original model, or save the optimised one at ORT_ENABLE_EXTENDED",
    "com.ms.internal.nhwc": "a layout that onnxruntime uses inside; give the original model",
}


def why_not(node: Node) -> str:
    """Why there is no conversion for an operator."""
    if node.domain in _OF_ONE_MACHINE:
        return f"it is of domain {node.domain}: {_OF_ONE_MACHINE[node.domain]}"
    version = f" in version {node.version}" if not node.domain else ""
    return f"there is no conversion for this operator{version}"


def _field(value: object) -> dict[str, object]:
    if isinstance(value, int):
        return {"i": int(np.clip(value, -2**31, 2**31 - 1))}
    if isinstance(value, float):
        return {"f": value}
    if isinstance(value, str):
        return {"s": value}
    if isinstance(value, tuple) and value and isinstance(value[0], str):
        return {"list": {"s": value}}
    if isinstance(value, tuple) and value and isinstance(value[0], float):
        return {"list": {"f": np.array(value, np.float32)}}
    if isinstance(value, tuple):
        return {"list": {"i": tuple(int(np.clip(v, -2**31, 2**31 - 1)) for v in value)}}
    raise Unsupported(f"an attribute of kind {type(value).__name__} cannot be kept in a custom op")
