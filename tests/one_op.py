"""Small ONNX models, run on both CPU backends with and without optimisation, against wanted values and onnxruntime."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import mnn_core as mnn

Arrays = Mapping[str, Any]
BACKENDS = ("numpy", "cpu-x86")
LEVELS = (0, 1)  # of optimisation; 1 is the default


def node(op_type: str, inputs: str, outputs: str = "y", **attrs: Any) -> onnx.NodeProto:
    """A node. inputs, outputs: names between spaces, "_" for an absent one."""
    names = [["" if n == "_" else n for n in text.split()] for text in (inputs, outputs)]
    return helper.make_node(op_type, *names, **attrs)


def model(nodes: Sequence[onnx.NodeProto] | onnx.NodeProto, feeds: Arrays, outputs: Sequence[str] = ("y",), opset: int = 17,
          constants: Arrays | None = None) -> onnx.ModelProto:
    """A model of some nodes. feeds: input -> example, which tells its dtype and rank; constants become initializers."""
    nodes = [nodes] if isinstance(nodes, onnx.NodeProto) else list(nodes)
    arrays = {n: np.asarray(v) for n, v in feeds.items()}
    inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), [None] * v.ndim)
              for n, v in arrays.items()]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name=n) for n in outputs],
                              [numpy_helper.from_array(np.asarray(v), n) for n, v in (constants or {}).items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 10
    return made


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def loaded(proto: onnx.ModelProto) -> Iterator[tuple[str, mnn.Model]]:
    """The model, converted and loaded in each way, with what way that is."""
    for level in LEVELS:
        graph = mnn.convert(proto, converter="onnx", optimize_level=level)
        for backend in BACKENDS:
            yield f"level {level} on {backend}", mnn.load(graph, backend=backend)


def run(ours: mnn.Model, feeds: Arrays) -> list[np.ndarray]:
    """A model's outputs, on whatever backend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mnn.PlacementWarning)
        return list(ours.run({i.name: feeds[i.name] for i in ours.inputs}).values())


def results(proto: onnx.ModelProto, feeds: Arrays) -> Iterator[tuple[str, list[np.ndarray]]]:
    """The outputs, in each way."""
    return ((way, run(ours, feeds)) for way, ours in loaded(proto))


def theirs(proto: onnx.ModelProto, feeds: Arrays) -> list[np.ndarray]:
    """What onnxruntime gives."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: np.asarray(feeds[i.name]) for i in session.get_inputs()})


def same(got: Sequence[np.ndarray], wants: Sequence[Any], way: str, tolerance: float = 1e-5) -> None:
    """Equal shapes and dtypes (those of Python numbers do not count), and equal values; of floats within a tolerance."""
    assert len(got) == len(wants), way
    for ours, want in zip(got, wants):
        typed, want = isinstance(want, (np.ndarray, np.generic)), np.asarray(want)
        assert ours.shape == want.shape, (way, ours, want)
        assert not typed or ours.dtype == want.dtype, (way, ours.dtype, want.dtype)
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, want, rtol=tolerance, atol=tolerance, err_msg=way)
        else:
            np.testing.assert_array_equal(ours, want, err_msg=way)


def check(nodes: Sequence[onnx.NodeProto] | onnx.NodeProto, feeds: Arrays, wants: Sequence[Any] | None = None,
          constants: Arrays | None = None, *, opset: int = 17, outputs: Sequence[str] = ("y",), tolerance: float = 1e-5,
          also_fed: bool = True, oracle: bool = True) -> None:
    """The wanted values come out in each way; None for what onnxruntime gives.

    also_fed: once more with the constants as inputs. oracle: onnxruntime gives these values too.
    """
    constants = constants or {}
    fed = {**feeds, **constants}
    protos = [model(nodes, feeds, outputs, opset, constants)]
    if constants and also_fed:
        protos.append(model(nodes, fed, outputs, opset))
    if oracle:
        right = theirs(protos[0], feeds)
        if wants is not None:
            same(right, wants, "onnxruntime", max(tolerance, 1e-4))
        wants = right
    assert wants is not None
    for proto in protos:
        for way, got in results(proto, fed):
            same(got, wants, way + (" with inputs for constants" if proto is protos[-1] and len(protos) > 1 else ""), tolerance)
