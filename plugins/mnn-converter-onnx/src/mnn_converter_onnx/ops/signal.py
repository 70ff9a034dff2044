"""Signals: Fourier transforms and mel weights, which MNN has no ops for."""

from __future__ import annotations

import numpy as np

from ..builder import Builder
from ..node import Node
from ..rules import rule


@rule("DFT")
def dft(node: Node, b: Builder) -> None:
    """The axis is an attribute, 1 if not given, up to version 19; then an input, -2 if not given."""
    length = node.input(1)
    axis = node.input(2) if node.version >= 20 else b.const(np.int32(node.get("axis", 1)))
    b.op("onnx.DFT", [node.inputs[0], length, axis], node.outputs, inverse=bool(node.get("inverse", 0)),
         onesided=bool(node.get("onesided", 0)))


@rule("STFT")
def stft(node: Node, b: Builder) -> None:
    b.op("onnx.STFT", node.inputs, node.outputs, onesided=bool(node.get("onesided", 1)))


@rule("MelWeightMatrix")
def mel_weight_matrix(node: Node, b: Builder) -> None:
    b.op("onnx.MelWeightMatrix", node.inputs, node.outputs, dtype=np.float32)
