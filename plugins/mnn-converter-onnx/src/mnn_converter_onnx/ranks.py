"""Ranks of the tensors of a model, by ONNX's own shape inference."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

#: Initialisers above this many bytes are not given to shape inference, which needs the values of small ones only.
_SMALL = 4096


def inferred_ranks(model: onnx.ModelProto) -> dict[str, int]:
    """Tensor name -> rank, for what shape inference can tell; names that two graphs use differently are left out."""
    slim = onnx.ModelProto()
    slim.CopyFrom(model)
    for graph in _graphs(slim.graph):
        for tensor in graph.initializer:
            if tensor.ByteSize() > _SMALL:
                for name in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
                    tensor.ClearField(name)
    try:
        slim = onnx.shape_inference.infer_shapes(slim, data_prop=True)
    except Exception:  # it raises its own kinds, and plain ones; what it says of the declared shapes is kept then
        pass
    ranks: dict[str, int] = {}
    clashes = set()
    for graph in _graphs(slim.graph):
        for info in (*graph.input, *graph.value_info, *graph.output):
            kind = info.type.tensor_type
            if info.type.HasField("tensor_type") and kind.HasField("shape"):
                rank = len(kind.shape.dim)
                if ranks.setdefault(info.name, rank) != rank:
                    clashes.add(info.name)
    return {name: rank for name, rank in ranks.items() if name not in clashes}


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)
