"""Checks onnxruntime's own operators against it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx_cases import Feeds, assert_same, convert, model, theirs

import mnn_core as mnn

#: Input names -> named dimensions; None leaves a dimension without a name.
MICROSOFT = "com.microsoft"


def contrib(op_type: str, inputs: str, outputs: str = "y", **attrs: Any) -> onnx.NodeProto:
    """A node of the domain com.microsoft; "_" is an absent input or output."""
    names = [["" if n == "_" else n for n in text.split()] for text in (inputs, outputs)]
    return helper.make_node(op_type, *names, domain=MICROSOFT, **attrs)


def contrib_model(nodes: Any, inputs: Feeds, outputs: Sequence[str] = ("y",), opset: int = 17, constants: Feeds | None = None,
                  types: dict[str, int] | None = None) -> onnx.ModelProto:
    """A model of nodes of both domains. types: output name -> element type, for outputs of a type onnxruntime cannot infer."""
    proto = model(nodes, inputs, outputs, opset, constants)
    proto.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    for info in proto.graph.output:
        if types and info.name in types:
            info.CopyFrom(helper.make_tensor_value_info(info.name, types[info.name], None))
    return proto


def run(proto: onnx.ModelProto, feeds: Feeds, backend: str, level: int = 1) -> list[np.ndarray]:
    """What a backend of ours gives."""
    loaded = mnn.load(convert(proto, level), backend=backend)
    return list(loaded.run(dict(feeds)).values())


def check(nodes: Any, inputs: Feeds | Sequence[Feeds], outputs: Sequence[str] = ("y",), opset: int = 17,
          constants: Feeds | None = None, tolerance: float = 1e-5, types: dict[str, int] | None = None) -> None:
    """numpy without optimisation and cpu-x86 with it, against onnxruntime, on one loaded model for all given inputs."""
    feeds = [inputs] if isinstance(inputs, dict) else list(inputs)
    proto = contrib_model(nodes, feeds[0], outputs, opset, constants, types)
    models = [mnn.load(convert(proto, level), backend=backend) for backend, level in (("numpy", 0), ("cpu-x86", 1))]
    for feed in feeds:
        want = theirs(proto, feed)
        for loaded in models:
            assert_same(list(loaded.run(dict(feed)).values()), want, tolerance)


def check_values(nodes: Any, inputs: Feeds, want: Sequence[np.ndarray], outputs: Sequence[str] = ("y",), opset: int = 17,
                 constants: Feeds | None = None, tolerance: float = 1e-5) -> None:
    """The same against given values, for operators that onnxruntime has no CPU kernel for."""
    proto = contrib_model(nodes, inputs, outputs, opset, constants)
    for backend, level in (("numpy", 0), ("cpu-x86", 1)):
        assert_same(run(proto, inputs, backend, level), want, tolerance)
