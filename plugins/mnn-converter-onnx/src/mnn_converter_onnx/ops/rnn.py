"""LSTM, GRU and RNN: MNN's own ops where they say it all, loops for the rest."""

from __future__ import annotations

import numpy as np

from ..builder import Builder
from ..node import Node
from ..recurrent import GATES, Layer, is_default, layer, run
from ..rules import rule


@rule("LSTM", "GRU", "RNN", since=7)
def recurrent(node: Node, b: Builder) -> None:
    found = layer(node, b)
    weights = [b.value(n) if n else None for n in found.weights]
    constant = all(w is not None or not n for w, n in zip(weights, found.weights))
    plain = is_default(node) and not node.get("layout", 0) and found.directions != ("reverse",)
    if constant and plain and weights[0] is not None and weights[1] is not None:
        w, r = weights[0], weights[1]
        bias = weights[2] if weights[2] is not None else np.zeros((len(w), 2 * w.shape[1]), np.float32)
        (_gru if node.op_type == "GRU" else _lstm)(node, b, found, w, r, bias)
    else:
        run(node, b, found)


def _outputs(node: Node, b: Builder, count: int) -> list[str]:
    """Names of the outputs up to the last that is used; the unused ones between get names of their own."""
    names = [node.output(k) for k in range(count)]
    while names and not names[-1]:
        names.pop()
    return [n or b.context.fresh(f"{node.name}/unused") for n in names]


def _states(found: Layer) -> list[str]:
    states = list(found.states)
    while states and not states[-1]:
        states.pop()
    return states


def _lstm(node: Node, b: Builder, found: Layer, w: np.ndarray, r: np.ndarray, bias: np.ndarray) -> None:
    """LSTM or RNN: the biases of input and recurrence are added."""
    rows = GATES[node.op_type] * found.hidden
    both = bias[:, :rows] + bias[:, rows:]
    outputs = _outputs(node, b, 3 if node.op_type == "LSTM" else 2)
    b.op(node.op_type, [found.x, b.const(w), b.const(r), b.const(both), *_states(found)], outputs, outputCount=found.hidden)


def _gru(node: Node, b: Builder, found: Layer, w: np.ndarray, r: np.ndarray, bias: np.ndarray) -> None:
    """Gates z and r stand together, the candidate apart; weights of input and state are one matrix."""
    n, inputs = found.hidden, []
    for d in range(len(w)):
        joined = np.concatenate([w[d], r[d]], axis=1).T
        own, recurrent_bias = bias[d, : 3 * n], bias[d, 3 * n :]
        parts = (joined[:, : 2 * n], own[None, : 2 * n], joined[:, 2 * n :], own[None, 2 * n :], recurrent_bias[None])
        inputs += [b.const(np.ascontiguousarray(p)) for p in parts]
    b.op("RNNSequenceGRU", [found.x, *inputs, *_states(found)], _outputs(node, b, 2), numUnits=n, keepAllOutputs=True,
         isBidirectionalRNN=len(w) == 2, linearBeforeReset=bool(node.get("linear_before_reset", 0)))
