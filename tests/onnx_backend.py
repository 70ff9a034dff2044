"""mnn_core as a backend of the ONNX project's own conformance suite (`onnx.backend.test`)."""

from __future__ import annotations

import os
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
    """Converts and runs ONNX models on the mnn_core backend that the environment variable MNN_SUITE_BACKEND names."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> Prepared:
        graph = mnn_core.convert(model, converter="onnx")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mnn_core.PlacementWarning)
            return Prepared(mnn_core.load(graph, os.environ.get("MNN_SUITE_BACKEND", "numpy")))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"
