"""mnn_core as a backend of the ONNX project's own conformance suite (`onnx.backend.test`)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import onnx
from onnx.backend.base import Backend, BackendRep

import mnn_core


class Prepared(BackendRep):
    """A converted model, ready to run."""

    def __init__(self, model: mnn_core.Model) -> None:
        self.model = model

    def run(self, inputs: Sequence[Any], **kwargs: Any) -> list[Any]:
        """The outputs, in order; inputs in the order of the model's inputs."""
        return list(self.model.run(dict(zip((i.name for i in self.model.inputs), inputs))).values())


class MNNBackend(Backend):
    """Converts ONNX models and runs them. name: the mnn_core backend to run them on."""

    name = "numpy"

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> Prepared:
        """Raises ConversionError for what is not supported."""
        graph = mnn_core.convert(model, converter="onnx")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mnn_core.PlacementWarning)
            return Prepared(mnn_core.load(graph, cls.name))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"
