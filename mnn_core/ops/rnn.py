"""LSTM, RNN, RNNSequenceGRU, LSTMBlockCell.

Inputs, attributes and outputs are MNN's, so that the real MNN runs files with plain layers. What ONNX has beyond that is
carried by further optional inputs and by attributes that MNN's tables lack (`_recurrent.ATTRIBUTES`, `inputForget`): an op that
sets one of these attributes is stored as an Extra op.

    LSTM            x (T,B,I), W (d,4H,I), R (d,4H,H), bias (d,4H), h0, c0 (d,B,H), lengths (B,), peepholes (d,3H)
                    -> Y (T,d,B,H), last h (d,B,H), last c (d,B,H); gates i, o, f, c; peepholes i, o, f
    RNN             x, W (d,H,I), R (d,H,H), bias (d,H), h0, lengths -> Y, last h
    RNNSequenceGRU  x, for each direction (gate weight (I+H,2H), gate bias (1,2H), candidate weight (I+H,H), candidate bias
                    (1,H), recurrent bias (1,3H)), h0, lengths -> Y, last h; without keepAllOutputs last h alone; gates z, r

`reverse` makes the only direction a reverse one; two directions are forward and reverse. `activations`, `activationAlpha`,
`activationBeta`, `clip` and `inputForget` are as in ONNX. lengths: steps of each row; later ones give 0 and change no state.
ONNX's layout=1 is a Permute before and after. The bias is the sum of ONNX's input and recurrent bias; of a GRU, whose
`linearBeforeReset` tells them apart, the recurrent bias (z, r, h) is separate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from . import _recurrent as layer
from ._args import given, need
from ._rules import FLOAT32, as_array, first_outputs, optional
from .registry import Example, register
from .unary import sigmoid


def _trimmed(op: Op, specs: list[Spec]) -> list[Spec]:
    return specs[: len(op.outputs)] if op.outputs else specs


def _infer(op: Op, inputs: Sequence[Spec | None], gates: int) -> list[Spec]:
    x, w, r = (need(op, inputs, i) for i in range(3))
    layer.check_sequence(op, x)
    states = 2 if op.type == "LSTM" else 1
    if w.rank != 3 or r.rank != 3 or w.shape[1] % gates or w.shape[0] not in (1, 2):
        raise ShapeError(f"{op}: weights {w} and {r}; expected ([1 or 2], {gates} * hidden, {x.shape[2]}) and one of hidden")
    directions, hidden, batch = w.shape[0], w.shape[1] // gates, x.shape[1]
    if op["outputCount"] not in (0, hidden):
        raise ShapeError(f"{op}: outputCount {op['outputCount']}, but {w} has a hidden size of {hidden}")
    layer.check_input(op, w, (directions, gates * hidden, x.shape[2]), "the weight (input 1)")
    layer.check_input(op, r, (directions, gates * hidden, hidden), "the recurrent weight (input 2)")
    layer.check_input(op, given(inputs, 3), (directions, gates * hidden), "the bias (input 3)")
    for i in range(states):
        layer.check_input(op, given(inputs, 4 + i), (directions, batch, hidden), f"the first state (input {4 + i})")
    layer.check_input(op, given(inputs, 4 + states), (batch,), f"the lengths (input {4 + states})")
    if op.type == "LSTM":
        layer.check_input(op, given(inputs, 7), (directions, 3 * hidden), "the peepholes (input 7)")
    if directions == 2 and op["reverse"]:
        raise ShapeError(f"{op}: `reverse` and two directions exclude each other")
    layer.activations(op, directions, _ACTIVATIONS[op.type])
    state = x.with_shape((directions, batch, hidden))
    return _trimmed(op, [x.with_shape((x.shape[0], directions, batch, hidden)), *[state] * states])


_ACTIVATIONS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "RNN": ("Tanh",), "RNNSequenceGRU": ("Sigmoid", "Tanh")}
_T, _B, _I, _H = 4, 3, 5, 6


def _f(*shape: int) -> Spec:
    return Spec(shape, FLOAT32)


def _weights(gates: int, directions: int = 1) -> list[Spec | np.ndarray | None]:
    return [_f(_T, _B, _I), _f(directions, gates * _H, _I), _f(directions, gates * _H, _H), _f(directions, gates * _H)]


_LENGTHS = np.array([4, 1, 2], np.int32)
_STATE, _STATES = _f(1, _B, _H), _f(2, _B, _H)


@register("LSTM", param="LSTM", attrs={**layer.ATTRIBUTES, "inputForget": False},
          infer=lambda op, inputs: _infer(op, inputs, 4), examples=[
    Example({"outputCount": _H}, _weights(4), name="plain"),
    Example({"outputCount": _H}, [*_weights(4), _STATE, _STATE], name="states"),
    Example({"outputCount": _H}, [*_weights(4, 2), _STATES, _STATES], name="both_directions"),
    Example({"outputCount": _H, "reverse": True}, [*_weights(4), None, None, _LENGTHS], name="reverse_lengths"),
    Example({"outputCount": _H, "clip": 0.5, "inputForget": True, "activations": ("Sigmoid", "Relu", "HardSigmoid")},
            [*_weights(4)[:3], None, _STATE, _STATE, None, _f(1, 3 * _H)], name="everything"),
])
def lstm(op: Op, x: np.ndarray, w: np.ndarray, r: np.ndarray, bias: np.ndarray | None = None, h0: np.ndarray | None = None,
         c0: np.ndarray | None = None, lengths: np.ndarray | None = None,
         peepholes: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """Long short-term memory; see the top of the file."""
    directions, hidden = w.shape[0], r.shape[2]
    functions = layer.activations(op, directions, _ACTIVATIONS["LSTM"])
    results = []
    for d in range(directions):
        states = [layer.initial(s, d, x.shape[1], hidden, x.dtype) for s in (h0, c0)]
        peeps = None if peepholes is None else peepholes.reshape(directions, 3, hidden)[d]
        step = _lstm_step(op, r[d].T, functions[d], peeps)
        results.append(layer.scan(_projected(x, w[d], bias, d), states, step, layer.is_reverse(op, d), lengths))
    return first_outputs(op, layer.joined(results))


def _projected(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, direction: int) -> np.ndarray:
    """What the input adds to the gates, for all steps at once."""
    gates = x @ weight.T
    return gates if bias is None else gates + bias.reshape(-1, weight.shape[0])[direction]


def _lstm_step(op: Op, recurrent: np.ndarray, functions: list[layer.Activation], peeps: np.ndarray | None) -> layer.Step:
    f, g, h = functions

    def step(now: np.ndarray, states: list[np.ndarray]) -> list[np.ndarray]:
        hidden, cell = states
        i, o, forget, z = np.split(now + hidden @ recurrent, 4, axis=-1)
        if peeps is not None:
            i, forget = i + peeps[0] * cell, forget + peeps[2] * cell
        i = f(layer.clipped(op, i))
        forget = 1 - i if op["inputForget"] else f(layer.clipped(op, forget))
        cell = forget * cell + i * g(layer.clipped(op, z))
        if peeps is not None:
            o = o + peeps[1] * cell
        return [f(layer.clipped(op, o)) * h(cell), cell]

    return step


@register("RNN", param="LSTM", attrs=layer.ATTRIBUTES, infer=lambda op, inputs: _infer(op, inputs, 1), examples=[
    Example({"outputCount": _H}, _weights(1), name="plain"),
    Example({"outputCount": _H}, [*_weights(1, 2), _STATES, _LENGTHS], name="both_directions_lengths"),
    Example({"outputCount": _H, "reverse": True, "activations": ("Relu",), "clip": 1.0}, [*_weights(1), _STATE], name="relu"),
])
def rnn(op: Op, x: np.ndarray, w: np.ndarray, r: np.ndarray, bias: np.ndarray | None = None, h0: np.ndarray | None = None,
        lengths: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """A recurrent layer without gates; see the top of the file."""
    directions, hidden = w.shape[0], r.shape[2]
    functions = layer.activations(op, directions, _ACTIVATIONS["RNN"])
    results = []
    for d in range(directions):
        step = _rnn_step(op, r[d].T, functions[d][0])
        state = layer.initial(h0, d, x.shape[1], hidden, x.dtype)
        results.append(layer.scan(_projected(x, w[d], bias, d), [state], step, layer.is_reverse(op, d), lengths))
    return first_outputs(op, layer.joined(results))


def _rnn_step(op: Op, recurrent: np.ndarray, function: layer.Activation) -> layer.Step:
    return lambda now, states: [function(layer.clipped(op, now + states[0] @ recurrent))]


_PER_DIRECTION = 5


def _gru_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, hidden = need(op, inputs, 0), op["numUnits"]
    layer.check_sequence(op, x)
    directions, batch, size = 2 if op["isBidirectionalRNN"] else 1, x.shape[1], x.shape[2]
    if hidden < 1:
        raise ShapeError(f"{op}: numUnits {hidden}; expected 1 or more")
    for d in range(directions):
        shapes = ((size + hidden, 2 * hidden), (2 * hidden,), (size + hidden, hidden), (hidden,), (3 * hidden,))
        for i, shape in enumerate(shapes, 1 + _PER_DIRECTION * d):
            layer.check_input(op, need(op, inputs, i), shape, f"the weight or bias (input {i})")
    last = 1 + _PER_DIRECTION * directions
    layer.check_input(op, given(inputs, last), (directions, batch, hidden), f"the first state (input {last})")
    layer.check_input(op, given(inputs, last + 1), (batch,), f"the lengths (input {last + 1})")
    if directions == 2 and op["reverse"]:
        raise ShapeError(f"{op}: `reverse` and isBidirectionalRNN exclude each other")
    layer.activations(op, directions, _ACTIVATIONS["RNNSequenceGRU"])
    state = x.with_shape((directions, batch, hidden))
    return _trimmed(op, [x.with_shape((x.shape[0], directions, batch, hidden)), state]) if op["keepAllOutputs"] else [state]


_GRU = [_f(_I + _H, 2 * _H), _f(1, 2 * _H), _f(_I + _H, _H), _f(1, _H), _f(1, 3 * _H)]


def _units(**more: Any) -> dict[str, Any]:
    return {"numUnits": _H, "keepAllOutputs": True, **more}


@register("RNNSequenceGRU", param="RNNParam", attrs=layer.ATTRIBUTES, infer=_gru_infer, examples=[
    Example(_units(), [_f(_T, _B, _I), *_GRU], name="plain"),
    Example(_units(linearBeforeReset=True), [_f(_T, _B, _I), *_GRU, _STATE], name="linear_before_reset"),
    Example(_units(isBidirectionalRNN=True), [_f(_T, _B, _I), *_GRU, *_GRU, _STATES, _LENGTHS], name="both_directions_lengths"),
    Example(_units(keepAllOutputs=False), [_f(_T, _B, _I), *_GRU], name="last"),
    Example(_units(reverse=True, activations=("Sigmoid", "Relu")), [_f(_T, _B, _I), *_GRU], name="reverse_relu"),
])
def gru(op: Op, x: np.ndarray, *inputs: np.ndarray | None) -> np.ndarray | tuple[np.ndarray, ...]:
    """Gated recurrent units; see the top of the file."""
    directions, hidden, batch = 2 if op["isBidirectionalRNN"] else 1, op["numUnits"], x.shape[1]
    functions = layer.activations(op, directions, _ACTIVATIONS["RNNSequenceGRU"])
    h0, lengths = (optional(inputs, _PER_DIRECTION * directions + i) for i in range(2))
    results = []
    for d in range(directions):
        parts = [a for a in inputs[d * _PER_DIRECTION:(d + 1) * _PER_DIRECTION] if a is not None]
        gate, gate_bias, candidate, candidate_bias, recurrent_bias = parts
        size = x.shape[2]
        weight = np.concatenate([gate[:size], candidate[:size]], 1)
        now = x @ weight + np.concatenate([gate_bias.reshape(-1), candidate_bias.reshape(-1)])
        step = _gru_step(op, gate[size:], candidate[size:], recurrent_bias.reshape(-1), functions[d])
        results.append(layer.scan(now, [layer.initial(h0, d, batch, hidden, x.dtype)], step, layer.is_reverse(op, d), lengths))
    found = layer.joined(results)
    return first_outputs(op, found) if op["keepAllOutputs"] else found[1]


def _gru_step(op: Op, gate: np.ndarray, candidate: np.ndarray, bias: np.ndarray,
              functions: list[layer.Activation]) -> layer.Step:
    f, g = functions
    n = candidate.shape[1]

    def step(now: np.ndarray, states: list[np.ndarray]) -> list[np.ndarray]:
        hidden = states[0]
        gates = f(layer.clipped(op, now[:, :2 * n] + hidden @ gate + bias[:2 * n]))
        z, r = gates[:, :n], gates[:, n:]
        if op["linearBeforeReset"]:
            inner = r * (hidden @ candidate + bias[2 * n:])
        else:
            inner = (r * hidden) @ candidate + bias[2 * n:]
        new = g(layer.clipped(op, now[:, 2 * n:] + inner))
        return [(1 - z) * new + z * hidden]

    return step


def _cell_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, cell = need(op, inputs, 0), need(op, inputs, 1)
    if x.rank != 2 or cell.rank != 2 or x.dtype.kind != "f":
        raise ShapeError(f"{op}: expected an input and a state of floats with a rank of 2, found {x} and {cell}")
    (batch, size), hidden = x.shape, cell.shape[1]
    wanted = {1: (batch, hidden), 2: (batch, hidden), 3: (size + hidden, 4 * hidden), 7: (4 * hidden,)}
    wanted.update(dict.fromkeys((4, 5, 6), (hidden,)) if op["use_peephole"] else {})
    for i, shape in wanted.items():
        layer.check_input(op, need(op, inputs, i), shape, f"input {i}")
    return _trimmed(op, [cell.without_value()] * 7)


_CELL = [_f(2, 5), _f(2, 3), _f(2, 3), _f(8, 12), _f(3), _f(3), _f(3), _f(12)]


@register("LSTMBlockCell", param="LSTMBlockCell", infer=_cell_infer, examples=[
    Example({}, _CELL), Example({"use_peephole": True, "cell_clip": 0.5, "forget_bias": 0.0}, _CELL, name="peephole"),
])
def lstm_block_cell(op: Op, x: np.ndarray, cell: np.ndarray, hidden: np.ndarray, weight: np.ndarray, peep_i: np.ndarray | None,
                    peep_f: np.ndarray | None, peep_o: np.ndarray | None, bias: np.ndarray) -> tuple[np.ndarray, ...]:
    """One step of TensorFlow's LSTM: x (B,I), cell and hidden (B,H), weight (I+H,4H) of gates i, c, f, o, peepholes (H).

    Outputs: i, cell, f, o, the cell's input, the cell's activation, hidden. The cell is limited to cell_clip, if that is > 0.
    """
    i, z, f, o = np.split(np.concatenate([x, hidden], 1) @ weight + bias, 4, axis=1)
    f = f + np.float32(op["forget_bias"])
    with_peephole = op["use_peephole"] and peep_i is not None and peep_f is not None and peep_o is not None
    if with_peephole:
        i, f = i + cell * peep_i, f + cell * peep_f
    i, f, z = sigmoid(i), sigmoid(f), np.tanh(z)
    new = f * cell + i * z
    if op["cell_clip"] > 0:
        new = np.clip(new, -op["cell_clip"], op["cell_clip"])
    o = sigmoid(o + new * peep_o if with_peephole else o)
    active = np.tanh(new)
    return first_outputs(op, tuple(as_array(a, x.dtype) for a in (i, new, f, o, z, active, o * active)))
