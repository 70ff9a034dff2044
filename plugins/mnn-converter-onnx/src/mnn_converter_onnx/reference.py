"""onnxruntime as a reference to compare with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx

from mnn_core import ConversionError, ModelFormatError
from mnn_core.converter import Reference


class OnnxRuntime(Reference):
    """A model in onnxruntime without graph optimisation, every tensor of its outermost graph an output."""

    name = "onnxruntime"

    def __init__(self, path: Path) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise ConversionError("comparing needs onnxruntime, which is not installed: pip install onnxruntime") from error
        try:
            model = onnx.load(str(path))
        except OSError:
            raise
        except Exception as error:  # protobuf's DecodeError, whose class depends on its implementation
            raise ModelFormatError(f"{path} is no ONNX model, or is damaged: {error}") from error
        have = {o.name for o in model.graph.output}
        made = [n for node in model.graph.node for n in node.output if n and n not in have]
        model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in made)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        self._order = [n for node in model.graph.node for n in node.output if n]
        try:
            self._session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                         providers=["CPUExecutionProvider"])
        except Exception as error:  # its errors share no class of their own
            raise ConversionError(f"onnxruntime cannot load {path}: {error}") from error

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        names = [o.name for o in self._session.get_outputs()]
        found = dict(zip(names, self._session.run(None, dict(inputs))))
        return {n: found[n] for n in (*self._order, *names) if isinstance(found.get(n), np.ndarray)}
