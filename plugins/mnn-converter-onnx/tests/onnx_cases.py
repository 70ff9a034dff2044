"""Runs ONNX models on our engine and on onnxruntime, to compare them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import mnn_core as mnn

Feeds = Mapping[str, Any]


def model(nodes: Sequence[onnx.NodeProto] | onnx.NodeProto, inputs: Feeds, outputs: Sequence[str] = ("y",), opset: int = 17,
          constants: Feeds | None = None, **options: Any) -> onnx.ModelProto:
    """A model of some nodes. inputs: name -> example; constants: name -> value, kept as initializers."""
    nodes = [nodes] if isinstance(nodes, onnx.NodeProto) else list(nodes)
    arrays = {n: np.asarray(v) for n, v in inputs.items()}
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), [None] * v.ndim)
             for n, v in arrays.items()]
    graph = helper.make_graph(nodes, "g", infos, [onnx.ValueInfoProto(name=n) for n in outputs],
                              [numpy_helper.from_array(np.asarray(v), n) for n, v in (constants or {}).items()], **options)
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("com.acme", 1)])
    found.ir_version = 10
    return found


def convert(proto: onnx.ModelProto, level: int = 1, **options: Any) -> mnn.Graph:
    return mnn.convert(proto, converter="onnx", optimize_level=level, **options)


def ours(proto: onnx.ModelProto, feeds: Feeds, level: int = 1) -> list[np.ndarray]:
    """What our engine gives."""
    loaded = mnn.load(convert(proto, level), backend="numpy")
    return list(loaded.run(dict(feeds)).values())


def theirs(proto: onnx.ModelProto, feeds: Feeds) -> list[np.ndarray]:
    """What onnxruntime gives."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {n: np.asarray(v) for n, v in feeds.items()})


def assert_same(got: Sequence[np.ndarray], want: Sequence[np.ndarray], tolerance: float = 1e-5) -> None:
    """Equal shapes and dtypes, and values within a tolerance of the largest one."""
    assert len(got) == len(want)
    for a, b in zip(got, want):
        b = np.asarray(b)
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        if a.dtype.kind == "f":
            finite = np.abs(b[np.isfinite(b)])
            scale = max(float(finite.max()) if finite.size else 1.0, 1.0)
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)
        else:
            np.testing.assert_array_equal(a, b)


def check(nodes: Any, inputs: Feeds, outputs: Sequence[str] = ("y",), opset: int = 17, constants: Feeds | None = None,
          tolerance: float = 1e-5) -> list[np.ndarray]:
    """Our engine, with and without optimisation, against onnxruntime; returns our results."""
    proto = model(nodes, inputs, outputs, opset, constants)
    want = theirs(proto, inputs)
    assert_same(ours(proto, inputs, 0), want, tolerance)
    got = ours(proto, inputs, 1)
    assert_same(got, want, tolerance)
    return got


def node(op_type: str, inputs: str, outputs: str = "y", **attrs: Any) -> onnx.NodeProto:
    """A node; inputs and outputs are names between spaces, "_" an absent one."""
    names = [["" if n == "_" else n for n in text.split()] for text in (inputs, outputs)]
    return helper.make_node(op_type, *names, **attrs)


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


__all__ = ["Feeds", "TensorProto", "assert_same", "check", "convert", "model", "node", "ours", "random", "theirs"]
