"""Small graphs that use every part of the format."""

from __future__ import annotations

import numpy as np

from mnn_core import Graph, Op, TensorInfo
from mnn_core.formats import quantize

F32 = np.dtype(np.float32)


def _rng(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def small() -> Graph:
    """A convolution, a quantised one, norms, data movement, a custom op, an If with captured tensors, metadata."""
    then = Graph(name="then", ops=[Op("UnaryOp", ["t"], ["t_out"], {"opType": "ABS"})], inputs=[TensorInfo("t", F32, None)],
                 outputs=[TensorInfo("t_out", None, None)])
    other = Graph(name="else", ops=[Op("BinaryOp", ["e", "half"], ["e_out"], {"opType": "MUL"})],
                  constants={"half": np.float32([0.5])}, inputs=[TensorInfo("e", F32, None)],
                  outputs=[TensorInfo("e_out", None, None)])
    ops = [
        Op("Convolution", ["x", "w", "b"], ["conv"], {"kernelX": 3, "kernelY": 3, "pads": (1, 1, 1, 1), "relu": True}, "conv"),
        Op("Convolution", ["conv", "wq", "bq"], ["convq"], {"kernelX": 1, "kernelY": 1}, "convq"),
        Op("Pooling", ["convq"], ["pool"], {"type": "AVEPOOL", "isGlobal": True}),
        Op("Reshape", ["pool", "shape"], ["flat"], {}),
        Op("LayerNorm", ["flat", "gamma", "beta"], ["norm"], {"axis": (-1,), "epsilon": 1e-5}),
        Op("BinaryOp", ["norm", "flat"], ["cond_f"], {"opType": "GREATER"}),
        Op("Reduction", ["cond_f"], ["cond"], {"operation": "ANY", "dim": (0, 1), "keepDims": False}),
        Op("If", ["cond", "norm"], ["y"], {"then_graph": "then", "else_graph": "else",
                                           "aliases_inputs": ({"data": ()}, {"data": ("t", "e")}),
                                           "aliases_outputs": ({"data": ("t_out", "e_out")},)}),
        Op("StridedSlice", ["norm", "begin", "end", "axes"], ["s"], {"fromType": 1}),
    ]
    constants = {"w": _rng(5, 3, 3, 3), "b": _rng(5), "wq": quantize(_rng(4, 5, 1, 1), 4), "bq": _rng(4),
                 "shape": np.int32([0, -1]), "gamma": _rng(4), "beta": _rng(4),
                 "begin": np.int32([1]), "end": np.int32([2**31 - 1]), "axes": np.int32([1])}
    return Graph(ops=ops, constants=constants, subgraphs={"then": then, "else": other},
                 metadata={"author": "us", "note": "größer"},
                 inputs=[TensorInfo("x", F32, (None, 3, None, 8), ("batch", None, "height", None))],
                 outputs=[TensorInfo("y", F32, (None, 4)), TensorInfo("s", np.dtype(np.float64), None)])


def feed() -> dict[str, np.ndarray]:
    """An input of `small`."""
    return {"x": _rng(2, 3, 6, 8)}
