"""Signals: Fourier transforms and mel weights; of these MNN has an op for STFT alone."""

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
    """MNN has it for real signals; the window tells the frame length if both are there."""
    shape, frame = b.shape(node.inputs[0]), node.input(2)
    if not frame and b.value(node.input(3)) is not None:
        frame = b.reshape(node.input(3), ())
    if frame and shape is not None and len(shape) == 3 and shape[2] == 1:
        b.op("Stft", [*node.inputs[:2], frame], node.outputs, abs=bool(node.get("onesided", 1)))
        return
    b.op("onnx.STFT", node.inputs, node.outputs, onesided=bool(node.get("onesided", 1)))


@rule("MelWeightMatrix")
def mel_weight_matrix(node: Node, b: Builder) -> None:
    b.op("onnx.MelWeightMatrix", node.inputs, node.outputs, dtype=np.float32)
