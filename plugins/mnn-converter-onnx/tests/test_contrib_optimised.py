"""Graphs that onnxruntime's optimiser rewrote convert, and give what the original gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from contrib_cases import contrib, contrib_model
from onnx_cases import assert_same, convert, model, node, random, theirs

import mnn_core as mnn
from mnn_core import ConversionError

EXTENDED, ALL = (getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{n}") for n in ("EXTENDED", "ALL"))


def _optimised(proto: onnx.ModelProto, path: Path, level: Any = EXTENDED) -> onnx.ModelProto:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.optimized_model_filepath = level, str(path)
    options.log_severity_level = 4
    onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return onnx.load(path)


def _network() -> tuple[list[onnx.NodeProto], dict[str, np.ndarray]]:
    """Convolution, activation and sum; then a feed-forward block as a transformer has it, and a classifier."""
    nodes = [
        node("Conv", "x w wb", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), node("Relu", "c", "r"),
        node("Reshape", "r three", "t"), node("Transpose", "t", "s", perm=[0, 2, 1]),
        node("Transpose", "s", "st", perm=[0, 2, 1]), node("MatMul", "s st", "a0"), node("Mul", "a0 half", "a1"),
        node("Softmax", "a1", "a2", axis=-1), node("MatMul", "a2 s", "a3"),
        node("Add", "a3 s", "a4"), node("LayerNormalization", "a4 g gb", "n", axis=-1),
        node("MatMul", "n u", "h0"), node("Add", "h0 ub", "h1"), node("Div", "h1 root", "h2"), node("Erf", "h2", "h3"),
        node("Add", "h3 one", "h4"), node("Mul", "h1 h4", "h5"), node("Mul", "h5 half", "h6"),
        node("MatMul", "h6 v", "o0"), node("Add", "o0 vb", "o1"), node("Add", "o1 n", "o2"),
        node("LayerNormalization", "o2 g gb", "o3", axis=-1),
        node("ReduceMean", "o3 axes", "m", keepdims=0), node("Gemm", "m k kb", "q"), node("Relu", "q", "y"),
    ]
    constants = {
        "w": random(8, 3, 3, 3, seed=1), "wb": random(8, seed=2), "three": np.array([0, 8, -1]), "g": random(8, seed=3),
        "gb": random(8, seed=4), "u": random(8, 16, seed=5), "ub": random(16, seed=6), "v": random(16, 8, seed=7),
        "vb": random(8, seed=8), "k": random(8, 5, seed=9), "kb": random(5, seed=10), "half": np.float32(0.5),
        "one": np.float32(1), "root": np.float32(np.sqrt(2)), "axes": np.array([1]),
    }
    return nodes, constants


def test_extended_level(tmp_path: Path) -> None:
    nodes, constants = _network()
    proto = model(nodes, {"x": random(2, 3, 4, 5)}, constants=constants, opset=18)
    better = _optimised(proto, tmp_path / "better.onnx")
    made = {n.op_type for n in better.graph.node if n.domain == "com.microsoft"}
    assert {"FusedConv", "FusedMatMul", "BiasGelu", "FusedGemm"} <= made
    for backend in ("numpy", "cpu-x86"):
        loaded = mnn.load(convert(better), backend=backend)
        for shape in ((2, 3, 4, 5), (1, 3, 6, 2)):
            feeds = {"x": random(*shape)}
            assert_same(list(loaded.run(feeds).values()), theirs(proto, feeds), 1e-5)


def test_layouts_of_one_processor_are_refused(tmp_path: Path) -> None:
    """Only where the processor has such a layout does the optimiser use it; the operators are written down here as well."""
    nodes, constants = _network()
    nodes = [node("Conv", "x w wb", "c", kernel_shape=[3, 3]), node("Relu", "c", "y")]
    proto = model(nodes, {"x": random(1, 3, 8, 8)}, constants={n: np.tile(constants[n], (16, *[1] * (constants[n].ndim - 1)))
                                                               for n in ("w", "wb")})
    better = _optimised(proto, tmp_path / "all.onnx", ALL)
    found = [n for n in better.graph.node if n.domain == "com.microsoft.nchwc"]
    if not found:
        better.graph.node[0].domain, better.graph.node[0].op_type = "com.microsoft.nchwc", "Conv"
    with pytest.raises(ConversionError, match=r"domain com.microsoft.nchwc.*ORT_ENABLE_EXTENDED"):
        convert(better)


def test_shapes_are_known_behind_onnxruntimes_operators() -> None:
    """Each of the last operators needs the rank of its input, which only inference of shapes can tell."""
    weights = {"p": random(20, 8), "q": random(9, 8, seed=1), "g": random(8, seed=2), "b": random(8, seed=3),
               "w": random(8, 24, seed=4), "wb": random(24, seed=5), "m": random(8, 8, seed=6), "i": np.array([0, 0, -1])}
    nodes = [
        contrib("EmbedLayerNormalization", "ids _ p q _ g b mask", "e k"),
        contrib("Attention", "e w wb k", "a", num_heads=2),
        node("MatMul", "a m", "h"), contrib("SkipLayerNormalization", "h e g b", "s"), contrib("FastGelu", "s", "f"),
        node("MatMul", "f m", "v"), contrib("MultiHeadAttention", "v v v", "o", num_heads=2),
        node("Softmax", "o", "y", axis=1),
    ]
    feeds = {"ids": np.array([[1, 5, 3], [7, 2, 0]], np.int32), "mask": np.array([[1, 1, 1], [1, 1, 0]], np.int32)}
    proto = contrib_model(nodes, feeds, constants=weights, opset=12)
    assert_same(list(mnn.load(convert(proto), backend="numpy").run(feeds).values()), theirs(proto, feeds))
