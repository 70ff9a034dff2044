"""What scales or shifts the channels of a convolution's result goes into its weight and bias."""

from __future__ import annotations

import numpy as np

from ..ir import Graph, Op
from . import Pass
from ._view import View, is_binary

#: Convolutions, and the rank of their tensors.
RANKS = {"Convolution": 4, "ConvolutionDepthwise": 4, "Deconvolution": 4, "DeconvolutionDepthwise": 4, "Convolution3D": 5,
         "ConvTranspose3D": 5}
_TRANSPOSED = ("Deconvolution", "DeconvolutionDepthwise", "ConvTranspose3D")


def channel_vector(array: np.ndarray, rank: int, channels: int) -> np.ndarray | None:
    """A constant that broadcasts over a tensor of a rank as one number per channel; None if it is none such."""
    if array.dtype.kind != "f" or array.ndim > rank:
        return None
    shape = (1,) * (rank - array.ndim) + array.shape
    if any(d != 1 for i, d in enumerate(shape) if i != 1) or shape[1] not in (1, channels):
        return None
    return np.broadcast_to(array.reshape(-1), (channels,)).astype(np.float64)


def _factor_and_shift(view: View, op: Op, x: str, rank: int, channels: int) -> tuple[np.ndarray, np.ndarray] | None:
    """op as x * factor + shift."""
    ones, zeros = np.ones(channels), np.zeros(channels)
    if op.type == "Scale" and op.inputs[0] == x:
        values = [view.array(n) for n in op.inputs[1:]]
        if not values or any(v is None or v.size != channels for v in values):
            return None
        shift = values[1].astype(np.float64).reshape(-1) if len(values) > 1 and values[1] is not None else zeros
        assert values[0] is not None
        return values[0].astype(np.float64).reshape(-1), shift
    if not is_binary(op, "ADD", "SUB", "MUL", "REALDIV", "DIV"):
        return None
    first = op.inputs[0] == x
    other = view.array(op.inputs[1] if first else op.inputs[0])
    vector = channel_vector(other, rank, channels) if other is not None else None
    if vector is None:
        return None
    kind = op["opType"]
    if kind == "ADD":
        return ones, vector
    if kind == "SUB":
        return (ones, -vector) if first else (-ones, vector)
    if kind == "MUL":
        return vector, zeros
    return (1 / vector, zeros) if first and (vector != 0).all() else None


def scaled_weight(op: Op, weight: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """The weight whose convolution gives each output channel times its factor."""
    group = op["group"] if op.type in _TRANSPOSED else 1
    if op.type not in _TRANSPOSED:
        return weight * factor.reshape(-1, *[1] * (weight.ndim - 1))
    parts = weight.reshape(group, weight.shape[0] // group, *weight.shape[1:])
    return (parts * factor.reshape(group, 1, -1, *[1] * (weight.ndim - 2))).reshape(weight.shape)


def run(graph: Graph) -> int:
    """Folds Scale, and BinaryOps with a constant per channel, into the convolution before them."""
    view = View(graph)
    for op in graph.ops:
        for x in op.inputs[:2] if op.type in ("Scale", "BinaryOp") else ():
            conv = view.producer(x, *RANKS)
            if conv is not None and view.only_here(x) and _fold(view, conv, op, x):
                break
    return view.finish()


def _fold(view: View, conv: Op, op: Op, x: str) -> bool:
    weight = view.array(conv.inputs[1]) if len(conv.inputs) in (2, 3) else None
    if weight is None or conv["relu"] or conv["relu6"]:
        return False
    named = conv.inputs[2] if len(conv.inputs) > 2 else ""
    bias = view.array(named)
    if named and bias is None:
        return False
    channels = weight.shape[1] * conv["group"] if conv.type in _TRANSPOSED else weight.shape[0]
    found = _factor_and_shift(view, op, x, RANKS[conv.type], channels)
    if found is None:
        return False
    factor, shift = found
    stem = op.outputs[0]
    old_bias = bias.astype(np.float64).reshape(-1) if bias is not None else np.zeros(channels)
    with np.errstate(all="ignore"):
        new_weight = scaled_weight(conv, weight.astype(np.float64), factor).astype(np.float32)
        new_bias = (old_bias * factor + shift).astype(np.float32)
    if not (np.isfinite(new_weight).all() and np.isfinite(new_bias).all()):
        return False
    inputs = [conv.inputs[0],
              conv.inputs[1] if (factor == 1).all() else view.constant(f"{stem}/weight", new_weight),
              view.constant(f"{stem}/bias", new_bias)]
    view.change(op, conv.type, inputs, conv.attrs)
    return True


convolution_affine = Pass("convolution-affine", run, "batch norms, scales and biases go into the convolution before them")
