"""Converts graphs node by node: outermost ones, bodies of control flow, and functions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import onnx

from mnn_core import Graph, MNNError, ModelFormatError, TensorInfo
from mnn_core.ir.dtypes import OBJECT

from . import custom, rules
from .builder import Builder
from .node import Node, attribute
from .rules import Unsupported
from .scope import Scope, sorted_nodes
from .tensors import Type, declared_dtype, element, sparse_to_array, to_array, type_of

#: What damaged attributes make of a rule that takes them for what the operator's definition says.
_DAMAGE = (ValueError, TypeError, IndexError, KeyError, AttributeError, ArithmeticError, AssertionError, RecursionError,
           MemoryError)


#: Names of dimensions that only say that the size is unknown.
_NAMELESS = ("", "?", "*", "-1", "None")


def tensor_info(info: onnx.ValueInfoProto, name: str) -> TensorInfo:
    """The declared name, dtype and shape of a graph input or output."""
    kind = info.type.WhichOneof("value") or "value without a type"
    if kind not in ("tensor_type", "sequence_type", "optional_type", "map_type"):
        raise Unsupported(f"graph input or output {info.name!r} is a {kind}; tensors, sequences and optionals are supported")
    declared = type_of(info.type, f"tensor {info.name!r}")
    dtype = None if declared is None else element(declared)
    if kind != "tensor_type":
        return TensorInfo(name, dtype, None, kind=kind.removesuffix("_type"))
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        return TensorInfo(name, dtype, None)
    dims = tuple(int(d.dim_value) if d.HasField("dim_value") and d.dim_value >= 0 else None for d in tensor.shape.dim)
    return TensorInfo(name, dtype, dims, tuple(None if d.dim_param in _NAMELESS else d.dim_param for d in tensor.shape.dim))


def add_constants(proto: onnx.GraphProto, scope: Scope) -> None:
    """Initializers, dense and sparse, become constants."""
    folder = scope.builder.context.folder
    for tensor in proto.initializer:
        array = to_array(tensor, folder, f"initializer {tensor.name!r}")
        scope.builder.const(array, scope.new(tensor.name), declared_dtype(tensor.data_type, tensor.name))
    for sparse in proto.sparse_initializer:
        array = sparse_to_array(sparse, folder, f"sparse initializer {sparse.values.name!r}")
        scope.builder.const(array, scope.new(sparse.values.name))


def add_inputs(proto: onnx.GraphProto, scope: Scope) -> None:
    """Graph inputs; those that have an initializer are constants (as up to IR version 3)."""
    for info in proto.input:
        if info.name in scope.names:
            continue
        found = tensor_info(info, scope.new(info.name))
        kind = type_of(info.type, f"tensor {info.name!r}")
        scope.builder.declare(found.name, kind, None if found.shape is None else len(found.shape))
        scope.builder.graph.inputs.append(found)


def add_nodes(nodes: Any, wanted: list[str], scope: Scope) -> None:
    """Converts the nodes that the wanted tensors need."""
    for proto in sorted_nodes(nodes, wanted):
        add_node(proto, scope)


def add_outputs(proto: onnx.GraphProto, scope: Scope, skipped: Collection[int] = ()) -> None:
    """Graph outputs. An input that is an output as well, or one that is named twice, goes through an Identity."""
    graph = scope.builder.graph
    inputs = {i.name for i in graph.inputs}
    for info in (o for i, o in enumerate(proto.output) if i not in skipped):
        tensor = scope.find(info.name)
        if tensor in inputs and scope.builder.parent is not None:
            copy = scope.builder.context.fresh(info.name)
            scope.builder.op("Identity", [tensor], [copy])
            tensor = copy
        declared = tensor_info(info, tensor) if info.type.WhichOneof("value") else TensorInfo(tensor, None, None)
        if declared.dtype is None:
            kind = scope.builder.type(tensor)
            declared = replace(declared, dtype=element(kind), kind=kind[0] if isinstance(kind, tuple) else "tensor")
        graph.outputs.append(declared)


def add_node(proto: onnx.NodeProto, scope: Scope) -> None:
    """Converts a node: by its rule, as a custom op, as a function of the model, or as one of the standard's functions."""
    builder, context = scope.builder, scope.builder.context
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    label = f"{domain + '.' if domain else ''}{proto.op_type} {proto.name or ', '.join(proto.output)!r}"
    inputs = [scope.find(n) if n else "" for n in proto.input]
    outputs = [scope.new(n) if n else "" for n in proto.output]
    name = proto.name or (outputs[0] if outputs else "")
    version = scope.opsets.get(domain, 1 if domain else 0)  # tools of onnxruntime use its operators without an import
    node = Node(proto.op_type, domain, version, name, inputs, outputs)
    outer_name, builder.node_name = builder.node_name, node.name if not scope.calls else context.fresh(node.name)
    try:
        function = context.functions.get((domain, proto.op_type))
        rule = rules.find(domain, proto.op_type, node.version)
        if function is None and rule is None and domain == "" and not node.version:
            raise ModelFormatError(f"{label}: the model imports no operator set of ONNX")
        attrs = {}
        for a in proto.attribute:
            if not a.ref_attr_name:
                attrs[a.name] = attribute(a, context.folder, label)
            elif a.ref_attr_name in scope.refs:
                attrs[a.name] = scope.refs[a.ref_attr_name]
        node.attrs = attrs
        if function is None and any(n and builder.dtype(n) == OBJECT for n in inputs):
            _check_kinds(node, builder)
        if function is not None:
            call(function, node, scope)
        elif (domain, proto.op_type) in context.custom:
            custom.add_registered(node, builder)
        elif rule is not None:
            if any(isinstance(v, onnx.GraphProto) for v in attrs.values()):
                rule.convert(node, scope)  # type: ignore[arg-type]
            else:
                rule.convert(node, builder)
        elif (standard := custom.standard_function(node, builder)) is not None:
            call(standard, node, scope)
        elif context.allow_custom_op:
            custom.add_unknown(node, builder)
        else:
            raise Unsupported(custom.why_not(node))
    except Unsupported as error:
        context.report(f"{domain + '.' if domain else ''}{proto.op_type}", node.name, str(error).removeprefix(f"{label}: "))
    except MNNError:
        raise
    except _DAMAGE as error:
        raise ModelFormatError(f"{label} is damaged: {type(error).__name__}: {error}") from error
    finally:
        builder.node_name = outer_name


def _check_kinds(node: Node, builder: Builder) -> None:
    """Raises Unsupported if text, or a sequence, goes into a standard operator that does not take it."""
    if not onnx.defs.has(node.op_type, node.domain):
        return
    formal = onnx.defs.get_schema(node.op_type, node.version, node.domain).inputs
    for i, name in enumerate(node.inputs):
        if not name or builder.dtype(name) != OBJECT or not formal:
            continue
        kind = builder.type(name)
        what = kind[0] if isinstance(kind, tuple) else "string"
        port = formal[min(i, len(formal) - 1)]
        if not any(what.removesuffix("uence") in t for t in port.types):
            raise Unsupported(f"input {port.name!r} is a {what}, which this operator does not take")


def call(function: onnx.FunctionProto, node: Node, scope: Scope) -> None:
    """Puts a function's body in the place of a call. Raises ModelFormatError for functions that call themselves."""
    key = (node.domain, node.op_type)
    if key in scope.calls:
        raise ModelFormatError(f"function {node.op_type!r} calls itself")
    scope.builder.context.expand(len(function.node))
    refs = {**custom.standard_defaults(node), **node.attrs}
    refs.update({a.name: attribute(a, None, str(node)) for a in function.attribute_proto if a.name not in refs})
    opsets = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in function.opset_import}
    inner = Scope(scope.builder, refs=refs, opsets={**scope.opsets, **opsets}, calls=(*scope.calls, key))
    for name, tensor in zip(function.input, [*node.inputs, *[""] * (len(function.input) - len(node.inputs))]):
        inner.bind(name, tensor)
    add_nodes(function.node, list(function.output), inner)
    for name, tensor in zip(function.output, node.outputs):
        if tensor:
            scope.builder.identity(inner.find(name), tensor)


def inline(proto: onnx.GraphProto, scope: Scope) -> list[str]:
    """Converts a graph without inputs in the place where it is used; returns its outputs."""
    inner = Scope(scope.builder, scope)
    add_constants(proto, inner)
    add_nodes(proto.node, [o.name for o in proto.output], inner)
    return [inner.find(o.name) for o in proto.output]


def subgraph(proto: onnx.GraphProto, scope: Scope, stem: str, types: list[Type] | None = None,
             fixed: Mapping[str, str] = MappingProxyType({}), skipped: Collection[int] = ()) -> tuple[Builder, Scope]:
    """Converts a body of control flow; it becomes one of the root's subgraphs.

    types: of inputs that declare none. fixed: inputs that always are one tensor of the graph around the body, which the body
    captures. skipped: numbers of outputs that are left out.
    """
    context = scope.builder.context
    graph = Graph(name=context.fresh(stem))
    builder = Builder(context, graph, scope.builder)
    inner = Scope(builder, scope)
    add_constants(proto, inner)
    clash = [i.name for i in proto.input if i.name in inner.names]
    if clash:
        raise ModelFormatError(f"{stem!r}: {clash[0]!r} is both an input and an initializer of the body")
    for i, info in enumerate(proto.input):
        if info.name in fixed:
            builder.capture(fixed[info.name])
            inner.bind(info.name, fixed[info.name])
            continue
        tensor = inner.new(info.name)
        found = tensor_info(info, tensor) if info.type.WhichOneof("value") else TensorInfo(tensor, None, None)
        kind = type_of(info.type, f"tensor {info.name!r}") or (types[i] if types and i < len(types) else None)
        builder.declare(tensor, kind, None if found.shape is None else len(found.shape))
        graph.inputs.append(replace(found, dtype=None if kind is None else builder.dtype(tensor)))
    add_nodes(proto.node, [o.name for o in proto.output], inner)
    add_outputs(proto, inner, skipped)
    context.root.subgraphs[graph.name] = graph  # after those inside it: MNN wants them in this order
    return builder, inner
