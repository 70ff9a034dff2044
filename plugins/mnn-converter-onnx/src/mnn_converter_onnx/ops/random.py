"""Random numbers. ONNX leaves the generator open, so only the distribution is the same."""

from __future__ import annotations

import numpy as np

from ..builder import Builder
from ..node import Node
from ..rules import rule
from ..tensors import declared_dtype


def _seed(node: Node) -> int:
    return int(abs(node.get("seed", 0.0))) & 0x7FFFFFFF


@rule("RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike")
def random(node: Node, b: Builder) -> None:
    """MNN keeps the mean of a normal distribution in `low`, and its deviation in `high`."""
    like = node.op_type.endswith("Like")
    shape = b.shape_of(node.inputs[0]) if like else b.ints(*node["shape"])
    dtype = declared_dtype(node["dtype"], "the result") if "dtype" in node.attrs else \
        b.dtype(node.inputs[0]) if like and b.is_float(node.inputs[0]) else np.dtype(np.float32)
    normal = "Normal" in node.op_type
    low, high = (node.get("mean", 0.0), node.get("scale", 1.0)) if normal else (node.get("low", 0.0), node.get("high", 1.0))
    b.op("RandomNormal" if normal else "RandomUniform", [shape], node.outputs, dtype=dtype, seed=_seed(node), low=low,
         high=high, type="DT_FLOAT")


@rule("Bernoulli")
def bernoulli(node: Node, b: Builder) -> None:
    """1 with the probability that the input gives."""
    x = node.inputs[0]
    dtype = declared_dtype(node["dtype"], "the result") if "dtype" in node.attrs else b.dtype(x)
    drawn = b.op("RandomUniform", [b.shape_of(x)], dtype=np.float32, seed=_seed(node), low=0.0, high=1.0, type="DT_FLOAT")
    b.cast(b.binary("LESS", drawn, x, dtype=np.int32), dtype, node.outputs)
