"""LSTM, GRU and RNN, as MNN's LSTM, RNNSequenceGRU and RNN.

What MNN's own ops lack (lengths, clipping, other activations, peepholes) goes to attributes and inputs that this engine adds to
them; a layer that needs none of it runs in MNN too. That is why the batch-first layout and the plain reverse
direction are turned into permutes and reversals here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mnn_core import ModelFormatError

from ..builder import Builder
from ..node import Node
from ..rules import Unsupported, rule

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
_DEFAULTS = {"LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"], "RNN": ["tanh"]}


@rule("LSTM", "GRU", "RNN")
def recurrent(node: Node, b: Builder) -> None:
    kind, direction = node.op_type, node.get("direction", "forward")
    if direction not in _DIRECTIONS:
        raise ModelFormatError(f"{node}: direction {direction!r}; expected one of {', '.join(_DIRECTIONS)}")
    hidden = _hidden(node, b)
    x, states = node.inputs[0], [node.input(5), node.input(6)] if kind == "LSTM" else [node.input(5)]
    if node.get("layout", 0):
        x = b.op("Permute", [x], dims=(1, 0, 2))
        states = [b.op("Permute", [s], dims=(1, 0, 2)) if s else "" for s in states]
    extra = _beyond_mnn(node, _DIRECTIONS[direction])
    lengths = node.input(4)
    turned = direction == "reverse" and not lengths
    if turned:
        x = _reversed(b, x)
    elif direction == "reverse":
        extra["direction"] = "reverse"
    outputs = [b.context.fresh(f"{node.name}/{n}") for n in ("y", "h", "c")[:1 + len(states)]]
    if kind == "GRU":
        parts = [p for d in range(_DIRECTIONS[direction]) for p in _gru_parts(node, b, d, hidden)]
        both, linear = direction == "bidirectional", bool(node.get("linear_before_reset", 0))
        b.op("RNNSequenceGRU", [x, *parts, *states, lengths], outputs, numUnits=hidden, keepAllOutputs=True,
             isBidirectionalRNN=both, linearBeforeReset=linear, **extra)
        if both and not lengths and node.output(1):
            outputs[1] = _last_states(b, x, outputs[0])
    else:
        inputs = [x, node.inputs[1], node.inputs[2], _bias(node, b, hidden, _DIRECTIONS[direction]), *states, lengths]
        b.op(kind, inputs + ([node.input(7)] if kind == "LSTM" else []), outputs, outputCount=hidden, **extra)
    if turned:
        outputs[0] = _reversed(b, outputs[0])
    _give(node, b, outputs)


def _hidden(node: Node, b: Builder) -> int:
    shape = b.shape(node.inputs[2])
    hidden = node.get("hidden_size", 0) or (shape[2] if shape is not None and len(shape) == 3 else 0)
    if not hidden or hidden < 1:
        raise Unsupported("a recurrent layer without hidden_size")
    if shape is not None and (len(shape) != 3 or shape[2] not in (hidden, None)):
        raise ModelFormatError(f"{node}: hidden_size {hidden}, but the recurrent weight has shape {list(shape)}")
    return int(hidden)


def _beyond_mnn(node: Node, directions: int) -> dict[str, Any]:
    """Attributes that MNN's ops lack, where they are not the default."""
    extra: dict[str, Any] = {}
    names = [n.lower() for n in node.get("activations") or ()]
    if names and names != _DEFAULTS[node.op_type] * directions:
        extra["activations"] = tuple(node["activations"])
        extra.update({k: tuple(node[k]) for k in ("activation_alpha", "activation_beta") if node.get(k)})
    if node.get("clip", 0.0):
        extra["clip"] = node["clip"]
    if node.get("input_forget", 0):
        extra["input_forget"] = 1
    return extra


def _reversed(b: Builder, x: str) -> str:
    return b.op("Reverse", [x, b.const(np.array([0], np.int32))])


def _last_states(b: Builder, x: str, y: str) -> str:
    """Y_h of two directions from Y: MNN's own is wrong."""
    steps = b.op("GatherV2", [b.shape_of(x), b.const(np.int64(0)), b.const(np.int32(0))], dtype=np.int64)
    last = b.binary("SUB", steps, b.const(np.int64(1)), dtype=np.int64)
    ends = [b.op("GatherV2", [b.op("GatherV2", [y, t, b.const(np.int32(0))]), b.ints(d), b.const(np.int32(0))])
            for d, t in enumerate((last, b.const(np.int64(0))))]
    return b.op("Concat", ends, axis=0)


def _columns(b: Builder, x: str, start: int, stop: int) -> str:
    """Part of axis 1."""
    return b.op("StridedSlice", [x, b.ints(start), b.ints(stop), b.ints(1)], fromType=1)


def _bias(node: Node, b: Builder, hidden: int, directions: int) -> str:
    """The biases of input and recurrence, added: [directions, gates * hidden]."""
    rows = _GATES[node.op_type] * hidden
    if not node.input(3):
        return b.const(np.zeros((directions, rows), np.float32))
    return b.binary("ADD", _columns(b, node.input(3), 0, rows), _columns(b, node.input(3), rows, 2 * rows))


def _gru_parts(node: Node, b: Builder, direction: int, hidden: int) -> list[str]:
    """One direction's gate weight, gate bias, candidate weight, candidate bias and recurrent bias."""
    one = b.ints(direction)
    bias = node.input(3) or b.const(np.zeros((direction + 1, 6 * hidden), np.float32))
    w, r, biases = (b.op("GatherV2", [n, one, b.const(np.int32(0))]) for n in (node.inputs[1], node.inputs[2], bias))
    both = b.op("Concat", [w, r], axis=2)  # [1, gates * hidden, input + hidden]

    def weight(start: int, stop: int) -> str:
        rows = b.op("Squeeze", [_columns(b, both, start * hidden, stop * hidden)], squeezeDims=(0,))
        return b.op("Permute", [rows], dims=(1, 0))

    return [weight(0, 2), _columns(b, biases, 0, 2 * hidden), weight(2, 3), _columns(b, biases, 2 * hidden, 3 * hidden),
            _columns(b, biases, 3 * hidden, 6 * hidden)]


def _give(node: Node, b: Builder, made: list[str]) -> None:
    """Hands on what was made, in the node's layout."""
    for k, name in enumerate(made):
        output = node.output(k)
        if not output:
            continue
        if node.get("layout", 0):
            b.op("Permute", [name], [output], dims=(1, 0, 2) if k else (2, 0, 1, 3))
        else:
            b.op("Identity", [name], [output])
