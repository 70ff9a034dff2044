"""Small graphs that between them use every part of the format: for round trips, damage and fuzzing."""

from __future__ import annotations

import numpy as np

from mnn_core import Graph, Op, TensorInfo
from mnn_core.formats import half, quantize
from mnn_core.ir import Region
from mnn_core.ir.schema import PARAMETERS

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def convolutions() -> Graph:
    """An image network: weights as floats, halves, and quantised per channel and per block; metadata; a custom op."""
    constants = {
        "w0": weights(8, 3, 3, 3), "b0": weights(8),
        "w1": quantize(weights(16, 8, 1, 1), 8, asymmetric=False), "b1": weights(16),
        "w2": quantize(weights(16, 32, 1, 1), 4, block=16), "w3": half(weights(16, 1, 3, 3)), "scale": weights(16),
        "shift": weights(16), "table": half(weights(4, 5)), "shape": np.array([0, -1], np.int32),
    }
    ops = [
        Op("Convolution", ["x", "w0", "b0"], ["a"], {"kernelX": 3, "kernelY": 3, "padX": 1, "padY": 1, "relu": True}, "first"),
        Op("Convolution", ["a", "w1", "b1"], ["b"], {}, "second"),
        Op("Concat", ["b", "b"], ["c"], {"axis": 1}),
        Op("Convolution", ["c", "w2", ""], ["d"], {}, "third"),
        Op("ConvolutionDepthwise", ["d", "w3"], ["e"], {"kernelX": 3, "kernelY": 3, "pads": (1, 1, 1, 1)}, "fourth"),
        Op("Scale", ["e", "scale", "shift"], ["f"]),
        Op("ReLU", ["f"], ["g"], {"slope": 0.1}),
        Op("Reshape", ["g", "shape"], ["y"]),
        Op("Extra", ["y", "table"], ["z"], {"type": "Cubic", "engine": "strange", "attr": ({"key": "k", "i": 3},)}, "custom",
           "Extra"),
    ]
    return Graph(ops, [TensorInfo("x", F32, (None, 3, 8, 8), ("batch", None, None, None))], [TensorInfo("z", F32, None)],
                 constants, metadata={"author": "someone", "labels": "a\nb"}, name="convolutions")


def branches() -> Graph:
    """An If with two bodies."""
    def body(kind: str, name: str) -> Graph:
        return Graph([Op("UnaryOp", ["p"], [f"{name}.q"], {"opType": kind}, name)], [TensorInfo("p", F32, None)],
                     [TensorInfo(f"{name}.q", None, None)], name=name)

    alias = ({"data": ()}, {"data": ("p",)})
    choice = Op("If", ["c", "x"], ["y"], {"then_graph": "yes", "else_graph": "no", "aliases_inputs": alias,
                                         "aliases_outputs": ({"data": ("yes.q", "no.q")},)}, "choice")
    return Graph([choice], [TensorInfo("c", I32, ()), TensorInfo("x", F32, (2, 3))], [TensorInfo("y", F32, None)],
                 subgraphs={"yes": body("NEG", "yes"), "no": body("ABS", "no")}, name="branches")


def copies() -> Graph:
    """A Raster, a permutation, an LSTM, and integers."""
    regions = (Region(0, (2, 3), 0, (3, 1), 0, (1, 2)),)
    return Graph([Op("Raster", ["x"], ["a"], {"regions": regions, "shape": (3, 2), "fill": 0}),
                  Op("Permute", ["a"], ["b"], {"dims": (1, 0)}),
                  Op("BinaryOp", ["b", "c"], ["y"], {"opType": "MUL"}),
                  Op("LSTM", ["s", "w", "r", "bias"], ["h", "", ""], {"outputCount": 2}),
                  Op("LayerNorm", ["h", "gamma", "beta"], ["n"], {"axis": (-1,), "epsilon": 1e-5}),
                  Op("StridedSlice", ["i", "zero", "one"], ["j"], {"fromType": 1})],
                 [TensorInfo("x", F32, (2, 3)), TensorInfo("s", F32, (None, 1, 2), ("time", None, None)),
                  TensorInfo("i", np.dtype(np.int64), (5,))],
                 [TensorInfo("y", F32, (2, 3)), TensorInfo("n", F32, None), TensorInfo("j", np.dtype(np.int64), (1,))],
                 {"c": np.array(2, np.float32), "w": weights(1, 8, 2), "r": weights(1, 8, 2, seed=1), "bias": weights(1, 8),
                  "gamma": weights(2), "beta": weights(2, seed=1), "zero": np.array([0], np.int32),
                  "one": np.array([1], np.int64)}, name="copies")


def parameter_number(table: str) -> int:
    """Number of a parameter table in the union of an op."""
    return PARAMETERS[table]
