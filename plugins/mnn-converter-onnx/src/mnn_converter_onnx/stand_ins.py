"""Standard nodes in the place of onnxruntime's own that make tensors of the same shapes, for ONNX's shape inference."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import onnx
from onnx import NodeProto, helper

#: Operators whose outputs are shaped as an input: output index -> input index.
_LIKE = {
    "Gelu": {0: 0}, "FastGelu": {0: 0}, "QuickGelu": {0: 0}, "BiasGelu": {0: 0}, "BiasAdd": {0: 0}, "BiasSoftmax": {0: 0},
    "BiasDropout": {0: 0}, "SkipLayerNormalization": {0: 0, 3: 0}, "SkipSimplifiedLayerNormalization": {0: 0, 3: 0},
    "SimplifiedLayerNormalization": {0: 0}, "GroupNorm": {0: 0}, "SkipGroupNorm": {0: 0, 1: 0}, "RotaryEmbedding": {0: 0},
    "MRotaryEmbedding": {0: 0},
    "MoE": {0: 0}, "QMoE": {0: 0}, "Inverse": {0: 0}, "Trilu": {0: 0}, "NGramRepeatBlock": {0: 1}, "SampleOp": {0: 0},
    "GemmaRotaryEmbedding": {0: 1, 1: 3},
}
#: Operators that are standard ones with more attributes and inputs: the standard one, how many inputs, and which attributes.
_FUSED = {
    "FusedConv": ("Conv", 2, ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")),
    "FusedGemm": ("Gemm", 3, ("transA", "transB")),
    "GemmFastGelu": ("MatMul", 2, ()),
}
#: Name of a matrix that a stand-in multiplies by: any number of rows, and some columns, which follow if they are known.
_MATRIX = "\0matrix "


def substitute(model: onnx.ModelProto, graphs: Iterable[onnx.GraphProto]) -> None:
    """Puts standard nodes in the place of those of com.microsoft where there are some, in a model only for shape inference."""
    matrices: set[str] = set()
    for graph in graphs:
        nodes = list(graph.node)
        if not any(_is_ours(node) for node in nodes):
            continue
        made = [n for node in nodes for n in ((_stand_in(node) if _is_ours(node) else None) or [node])]
        del graph.node[:]
        graph.node.extend(made)
        matrices |= {name for node in made for name in node.input if name.startswith(_MATRIX)}
    for name in sorted(matrices):
        columns = name.removeprefix(_MATRIX)
        shape = [None, int(columns) if columns else None]
        model.graph.input.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape))


def _is_ours(node: NodeProto) -> bool:
    return node.domain == "com.microsoft" or (node.op_type == "SimplifiedLayerNormalization" and not node.domain)


def _stand_in(node: NodeProto) -> list[NodeProto]:
    if node.op_type in _LIKE:
        return [helper.make_node("Identity", [node.input[source]], [node.output[i]])
                for i, source in _LIKE[node.op_type].items()
                if i < len(node.output) and node.output[i] and source < len(node.input)]
    if node.op_type in _FUSED:
        standard, count, names = _FUSED[node.op_type]
        found = helper.make_node(standard, list(node.input)[:count], list(node.output))
        found.attribute.extend(a for a in node.attribute if a.name in names)
        return [found]
    make = _OTHER.get(node.op_type)
    return make(node) if make else []


def _attribute(node: NodeProto, name: str) -> int:
    return next((int(a.i) for a in node.attribute if a.name == name), 0)


def _wide(node: NodeProto, columns: int = 0) -> list[NodeProto]:
    """As the first input, but for the last dimension, 0 for an unknown one."""
    return [helper.make_node("MatMul", [node.input[0], f"{_MATRIX}{columns or ''}"], list(node.output)[:1])]


def _fused_matmul(node: NodeProto) -> list[NodeProto]:
    if any(_attribute(node, name) for name in ("transA", "transB", "transBatchA", "transBatchB")):
        return []
    return [helper.make_node("MatMul", list(node.input)[:2], list(node.output))]


def _multi_head(node: NodeProto) -> list[NodeProto]:
    """Of queries (B, S, width); packed ones have another rank."""
    return _wide(node) if len(node.input) > 1 and node.input[1] else []


def _embedding(node: NodeProto) -> list[NodeProto]:
    made = [helper.make_node("Gather", [node.input[2], node.input[0]], [node.output[i]])
            for i in (0, 2) if i < len(node.output) and node.output[i]]
    if len(node.output) > 1 and node.output[1]:
        made += [helper.make_node("ArgMax", [node.input[0]], [f"\0{node.output[1]}"], axis=1, keepdims=0),
                 helper.make_node("Cast", [f"\0{node.output[1]}"], [node.output[1]], to=onnx.TensorProto.INT32)]
    return made


_OTHER: dict[str, Callable[[NodeProto], list[NodeProto]]] = {
    "MatMulNBits": lambda node: _wide(node, _attribute(node, "N")), "MatMulBnb4": _wide, "Attention": _wide,
    "QAttention": _wide, "GroupQueryAttention": _wide, "MultiHeadAttention": _multi_head,
    "DecoderMaskedMultiHeadAttention": _multi_head, "FusedMatMul": _fused_matmul, "TransposeMatMul": _fused_matmul,
    "EmbedLayerNormalization": _embedding,
}
