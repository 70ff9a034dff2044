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

    def __init__(self, source: str | Path | bytes | onnx.ModelProto, every: bool = True) -> None:
        """source: a path, bytes or a ModelProto. every: not only the model's own outputs."""
        try:
            import onnxruntime
        except ImportError as error:
            raise ConversionError("comparing needs onnxruntime, which is not installed: pip install onnxruntime") from error
        label = str(source) if isinstance(source, (str, Path)) else "the ONNX model"
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        self._order: list[str] = []
        given: str | bytes = str(source) if isinstance(source, (str, Path)) else b""
        if every or not given:
            model = _model(source, label)
            if every:
                have = {o.name for o in model.graph.output}
                made = [n for node in model.graph.node for n in node.output if n and n not in have]
                model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in made)
                self._order = [n for node in model.graph.node for n in node.output if n]
            given = model.SerializeToString()
        try:
            self._session = onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # its errors share no class of their own
            raise ConversionError(f"onnxruntime cannot load {label}: {error}") from error

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        names = [o.name for o in self._session.get_outputs()]
        try:
            found = dict(zip(names, self._session.run(None, dict(inputs))))
        except Exception as error:
            raise ConversionError(f"onnxruntime cannot run the model on these inputs: {error}") from error
        return {n: found[n] for n in (*self._order, *names) if isinstance(found.get(n), np.ndarray)}


def _model(source: str | Path | bytes | onnx.ModelProto, label: str) -> onnx.ModelProto:
    """A copy of the model, with its external data."""
    try:
        if isinstance(source, onnx.ModelProto):
            model = onnx.ModelProto()
            model.CopyFrom(source)
            return model
        return onnx.load_model_from_string(source) if isinstance(source, bytes) else onnx.load(str(source))
    except OSError:
        raise
    except Exception as error:  # protobuf's DecodeError, whose class depends on its implementation
        raise ModelFormatError(f"{label} is no ONNX model, or is damaged: {error}") from error
