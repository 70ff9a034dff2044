"""ai.onnx.ml: what linear models, trees and support vectors share: transforms of scores, and labels."""

from __future__ import annotations

import numpy as np

from ..builder import Builder
from ..node import Node
from ..rules import Unsupported, wrong
from .ml_features import vocabulary


def transformed(b: Builder, scores: str, kind: str, outputs: list[str] | int = 1) -> str:
    """Scores [N, C] after a post_transform."""
    if kind == "NONE":
        return b.op("Identity", [scores], outputs)
    if kind == "LOGISTIC":
        return b.unary("SIGMOID", scores, outputs)
    if kind == "SOFTMAX":
        return b.op("Softmax", [scores], outputs, axis=1)
    if kind == "SOFTMAX_ZERO":  # scores of 0 stay 0
        there = b.binary("NOTEQUAL", scores, b.const(np.float32(0)), dtype=np.int32)
        top = b.op("Reduction", [scores], operation="MAXIMUM", dim=(1,), keepDims=True)
        power = b.binary("MUL", b.unary("EXP", b.binary("SUB", scores, top)), b.cast(there, np.float32))
        total = b.op("Reduction", [power], operation="SUM", dim=(1,), keepDims=True)
        return b.binary("REALDIV", power, b.binary("MAXIMUM", total, b.const(np.float32(1e-38))), outputs)
    if kind == "PROBIT":
        inner = b.binary("SUB", b.binary("MUL", scores, b.const(np.float32(2))), b.const(np.float32(1)))
        return b.binary("MUL", b.unary("ERFINV", inner), b.const(np.float32(np.sqrt(2))), outputs)
    raise wrong("post_transform", kind, "NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT")


def label_count(node: Node) -> int:
    """How many classes a classifier names."""
    for name in ("classlabels_strings", "classlabels_int64s", "classlabels_ints"):
        if node.attrs.get(name):
            return len(node.attrs[name])
    raise Unsupported("it names no classes")


def give_labels(node: Node, b: Builder, index: str) -> None:
    """The class labels at places [N]: output 0."""
    if node.output(0):
        labels = vocabulary(node, b, "classlabels_strings", "classlabels_int64s", "classlabels_ints")
        b.op("GatherV2", [labels, index, b.const(np.int32(0))], [node.output(0)], dtype=b.type(labels))


def best(b: Builder, scores: str) -> str:
    """The place of the greatest score of each row."""
    return b.op("ArgMax", [scores], dtype=np.int64, axis=1)


def is_above(b: Builder, scores: str, limit: float) -> str:
    """1 where the one score of a row is above a limit, else 0: [N]."""
    return b.reshape(b.binary("GREATER", scores, b.const(np.float32(limit)), dtype=np.int32), (-1,))


def two(b: Builder, first: str, second: str, outputs: list[str] | int) -> str:
    """Two columns of scores."""
    return b.op("Concat", [first, second], outputs, axis=1)
