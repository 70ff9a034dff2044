"""Shapes of the tensors of a model, by ONNX's own shape inference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import onnx

from mnn_core import ModelFormatError

from . import stand_ins

#: Initialisers above this many bytes are not given to shape inference, which needs the values of small ones only.
_SMALL = 4096


#: No tensor has more axes. ONNX's shape inference uses some numbers of axes unchecked: those beyond this end the process.
_MAX_RANK = 64

Shape = tuple["int | None", ...]


def inferred_shapes(model: onnx.ModelProto) -> dict[str, Shape]:
    """Tensor name -> shape, for what shape inference can tell; names that two graphs use differently are left out.

    Raises ModelFormatError for attributes that would make shape inference read memory that is not its own.
    """
    for nodes in (*(g.node for g in _graphs(model.graph)), *(f.node for f in model.functions)):
        _check_axes(nodes)
    slim = onnx.ModelProto()
    slim.CopyFrom(model)
    for graph in _graphs(slim.graph):
        for tensor in graph.initializer:
            if tensor.ByteSize() > _SMALL:
                for name in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
                    tensor.ClearField(name)
    stand_ins.substitute(slim, _graphs(slim.graph))
    slim = _inferred(slim)
    shapes: dict[str, Shape] = {}
    clashes = set()
    for graph in _graphs(slim.graph):
        for info in (*graph.input, *graph.value_info, *graph.output):
            kind = info.type.tensor_type
            if info.type.HasField("tensor_type") and kind.HasField("shape"):
                shape = tuple(int(d.dim_value) if d.HasField("dim_value") and d.dim_value >= 0 else None
                              for d in kind.shape.dim)
                if shapes.setdefault(info.name, shape) != shape:
                    clashes.add(info.name)
    return {name: shape for name, shape in shapes.items() if name not in clashes}


def _inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with shapes: with those that it declares, or if they contradict the operators, without; else as it is."""
    with suppress(Exception):  # it raises its own kinds and plain ones
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    del bare.graph.value_info[:]
    with suppress(Exception):
        return onnx.shape_inference.infer_shapes(bare, data_prop=True)
    return model


def _check_axes(nodes: Iterable[onnx.NodeProto]) -> None:
    for node in nodes:
        for a in node.attribute:
            if a.name in ("axis", "batch_dims") and node.domain in ("", "ai.onnx") and not -_MAX_RANK <= a.i <= _MAX_RANK:
                raise ModelFormatError(f"{node.op_type} {node.name or ', '.join(node.output)!r}: {a.name} is {a.i}; expected "
                                       f"the number of an axis")
            if a.HasField("g"):
                _check_axes(a.g.node)


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)
