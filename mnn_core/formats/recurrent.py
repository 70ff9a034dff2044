"""Quantised weights of recurrent layers: MNN's ops have no packed form of them, so files hold 8-bit integers, and ops that
multiply them out when the model is loaded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..ir import Constant, Graph, Op
from .names import Names
from .packing import Packing
from .weights import QuantizedWeight

#: Op type -> its inputs that are weights, and the axis of their output channels (from the end), and their rank.
_WEIGHTS = {"LSTM": ((1, 2), -2, 3), "RNN": ((1, 2), -2, 3), "RNNSequenceGRU": ((1, 3, 6, 8), -1, 2)}


def quantized_recurrent(graph: Graph, packing: Packing) -> Graph:
    """The graph with each constant weight of LSTM, RNN and GRU rounded as `packing` says, a scale for each output channel."""
    if not any(op.type in _WEIGHTS for op in graph.ops):
        return graph
    names, constants, ops = Names(graph.tensor_names()), dict(graph.constants), list[Op]()
    done: dict[str, str] = {}
    for op in graph.ops:
        places, axis, rank = _WEIGHTS.get(op.type, ((), 0, 0))
        inputs = list(op.inputs)
        for place in places:
            name = inputs[place] if place < len(inputs) else ""
            weight = graph.constants.get(name)
            if isinstance(weight, np.ndarray) and weight.dtype == np.float32 and weight.ndim == rank and weight.size:
                if name not in done:
                    done[name] = names.fresh(f"{name}__dequantized")
                    ops += _dequantized(name, done[name], weight, axis, packing, names, constants)
                inputs[place] = done[name]
        ops.append(replace(op, inputs=inputs))
    return replace(graph, ops=ops, constants=constants)


def _dequantized(name: str, result: str, weight: np.ndarray, axis: int, packing: Packing, names: Names,
                 constants: dict[str, Constant]) -> list[Op]:
    """Constants of integers, scales and offsets, and the ops that make the weight of them."""
    rows = weight if axis == -2 else np.swapaxes(weight, -1, -2)
    packed = replace(packing, block=None, scale_bits=32).weight(rows.reshape(-1, rows.shape[-1]), name)
    assert isinstance(packed, QuantizedWeight)
    codes, alpha = packed.codes().reshape(rows.shape), packed.alpha.reshape(*rows.shape[:-1], -1)
    scale = alpha[..., -1:]
    offset = alpha[..., :1] - np.float32(packed.quan["aMin"]) * scale if packed.asymmetric else None
    if axis == -1:
        codes, scale = np.swapaxes(codes, -1, -2), np.swapaxes(scale, -1, -2)
        offset = None if offset is None else np.swapaxes(offset, -1, -2)

    def constant(stem: str, value: np.ndarray) -> str:
        made = names.fresh(f"{name}__{stem}")
        constants[made] = np.ascontiguousarray(value).reshape(value.shape)
        return made

    wide = names.fresh(f"{name}__float")
    product = result if offset is None else names.fresh(f"{name}__scaled")
    ops = [Op("Cast", [constant("codes", codes)], [wide], {"dstT": "DT_FLOAT"}, name=wide),
           Op("BinaryOp", [wide, constant("scale", scale)], [product], {"opType": "MUL"}, name=product)]
    if offset is not None:
        ops.append(Op("BinaryOp", [product, constant("offset", offset)], [result], {"opType": "ADD"}, name=result))
    return ops
