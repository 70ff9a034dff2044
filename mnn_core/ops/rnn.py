"""LSTM, RNN and RNNSequenceGRU.

In MNN's form, which real MNN runs too, an LSTM or RNN has the inputs x [steps, batch, input], W [directions, gates * hidden,
input], R [directions, gates * hidden, hidden], bias [directions, gates * hidden] (of input and recurrence, added), and
perhaps the first h and c [directions, batch, hidden]; gates are in ONNX's order, i o f c. Two directions are forward and
reverse. A GRU has x, then for each direction gate weight [input + hidden, 2 * hidden] (columns z, r), gate bias, candidate
weight [input + hidden, hidden], candidate bias, recurrent bias [1, 3 * hidden] (z, r, h), then perhaps the first h.

What ONNX has beyond that follows in further inputs, sequence lengths [batch] and an LSTM's peepholes [directions, 3 * hidden]
(i, o, f), and in attributes that MNN lacks, named as in ONNX: direction ("forward", "reverse", "bidirectional"; empty: by the
weights), clip, activations with activation_alpha and activation_beta, input_forget, layout (1: the batch comes first in x,
states and outputs).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import need
from ._recurrent import EXTRA, Function, Sizes, Step, backwards, expect, expect_states, extents, functions, run, unclipped
from ._rules import FLOAT32, first_outputs, optional
from .registry import Example, register

_GATES = {"LSTM": 4, "RNN": 1}
_LSTM_FUNCTIONS = ("Sigmoid", "Tanh", "Tanh")
_GRU_FUNCTIONS = ("Sigmoid", "Tanh")


def _array(seed: int, *shape: int) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * 0.5).astype(np.float32)


def _weights(gates: int, directions: int = 1, inputs: int = 3, hidden: int = 5) -> list[np.ndarray]:
    """W, R and bias of an example."""
    rows = gates * hidden
    return [_array(1, directions, rows, inputs), _array(2, directions, rows, hidden), _array(3, directions, rows)]


def _sizes(op: Op, inputs: Sequence[Spec | None]) -> Sizes:
    """Checks the inputs of an LSTM or RNN."""
    gates, cells = _GATES[op.type], op.type == "LSTM"
    steps, batch, features = extents(op, need(op, inputs, 0))
    w, r = need(op, inputs, 1), need(op, inputs, 2)
    if r.rank != 3 or r.shape[1] != gates * r.shape[2]:
        raise ShapeError(f"{op}: input 2 (recurrent weight) is {r}; expected [directions, {gates} * hidden, hidden]")
    directions, rows, hidden = r.shape
    sizes = Sizes(steps, batch, features, hidden, directions)
    backwards(op, directions)
    expect(op, w, 1, (directions, rows, features), "weight")
    expect(op, optional(inputs, 3), 3, (directions, rows), "bias")
    states = [(optional(inputs, 4 + k), 4 + k, f"initial {name}") for k, name in enumerate("hc"[:1 + cells])]
    expect_states(op, sizes, states, optional(inputs, 5 + cells), 5 + cells)
    if cells:
        expect(op, optional(inputs, 7), 7, (directions, 3 * hidden), "peepholes")
    return sizes


def _infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    outputs = _sizes(op, inputs).outputs(op, need(op, inputs, 0), 2 if op.type == "LSTM" else 1)
    return outputs[:len(op.outputs)] if op.outputs else outputs


def _direction(w: np.ndarray, r: np.ndarray, bias: np.ndarray | None, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One direction's weights as matrices to multiply rows by, in float64."""
    b = np.zeros(w.shape[1]) if bias is None else bias[d].astype(np.float64)
    return w[d].T.astype(np.float64), r[d].T.astype(np.float64), b


def _lstm_step(w: np.ndarray, r: np.ndarray, b: np.ndarray, peepholes: np.ndarray, input_forget: bool,
               gate: Function, candidate: Function, output: Function) -> Step:
    def step(x: np.ndarray, states: list[np.ndarray]) -> list[np.ndarray]:
        h, c = states
        i, o, f, z = np.split(x @ w + h @ r + b, 4, axis=1)
        pi, po, pf = np.split(peepholes, 3)
        i = gate(i + pi * c)
        f = 1 - i if input_forget else gate(f + pf * c)
        c = f * c + i * candidate(z)
        return [gate(o + po * c) * output(c), c]

    return step


@register("LSTM", param="LSTM", attrs={**EXTRA, "input_forget": 0}, infer=_infer, examples=[
    Example({"outputCount": 5}, [Spec((4, 2, 3), FLOAT32), *_weights(4)]),
    Example({"outputCount": 5}, [Spec((4, 2, 3), FLOAT32), *_weights(4, 2), _array(4, 2, 2, 5), _array(5, 2, 2, 5)],
            name="bidirectional"),
    Example({"outputCount": 5}, [Spec((4, 3, 3), FLOAT32), *_weights(4, 2), _array(4, 2, 3, 5), _array(5, 2, 3, 5),
                                 np.array([4, 2, 0], np.int32)], name="lengths"),
    Example({"outputCount": 5, "direction": "reverse"}, [Spec((4, 2, 3), FLOAT32), *_weights(4)], name="reverse"),
    Example({"outputCount": 5, "direction": "reverse", "layout": 1},
            [Spec((2, 4, 3), FLOAT32), *_weights(4), None, None, np.array([4, 2], np.int32)], name="reverse_lengths"),
    Example({"outputCount": 5, "clip": 0.5, "input_forget": 1, "activations": ("HardSigmoid", "Relu", "Elu")},
            [Spec((4, 2, 3), FLOAT32), *_weights(4), None, None, None, _array(6, 1, 15)], name="peepholes"),
    Example({"outputCount": 5}, [Spec((0, 2, 3), FLOAT32), *_weights(4)], name="no_steps"),
])
def lstm(op: Op, x: np.ndarray, w: np.ndarray, r: np.ndarray, bias: np.ndarray | None = None,
         h: np.ndarray | None = None, c: np.ndarray | None = None, lengths: np.ndarray | None = None,
         peepholes: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """Y [steps, directions, batch, hidden] and the last h and c [directions, batch, hidden].

    c' = f * c + i * tanh(z), h' = o * tanh(c'). `clip` limits what goes into the gates; `input_forget` makes f = 1 - i.
    """
    directions, _, hidden = r.shape
    steps = []
    clipped, free = functions(op, _LSTM_FUNCTIONS, directions), unclipped(op, _LSTM_FUNCTIONS, directions)
    for d in range(directions):
        peeps = np.zeros(3 * hidden) if peepholes is None else peepholes[d].astype(np.float64)
        gate, candidate, output = *clipped[d][:2], free[d][2]
        steps.append(_lstm_step(*_direction(w, r, bias, d), peeps, bool(op["input_forget"]), gate, candidate, output))
    return first_outputs(op, run(op, x, steps, [h, c], lengths, hidden))


def _rnn_step(w: np.ndarray, r: np.ndarray, b: np.ndarray, function: Function) -> Step:
    return lambda x, states: [function(x @ w + states[0] @ r + b)]


@register("RNN", param="LSTM", attrs=EXTRA, infer=_infer, examples=[
    Example({"outputCount": 5}, [Spec((4, 2, 3), FLOAT32), *_weights(1)]),
    Example({"outputCount": 5}, [Spec((4, 2, 3), FLOAT32), *_weights(1, 2), _array(4, 2, 2, 5)], name="bidirectional"),
    Example({"outputCount": 5, "direction": "reverse"},
            [Spec((4, 2, 3), FLOAT32), *_weights(1), None, np.array([1, 4], np.int32)], name="lengths"),
    Example({"outputCount": 5, "direction": "reverse", "activations": ("Relu",), "clip": 0.7},
            [Spec((4, 2, 3), FLOAT32), *_weights(1), None, np.array([1, 4], np.int32)], name="reverse_lengths"),
])
def rnn(op: Op, x: np.ndarray, w: np.ndarray, r: np.ndarray, bias: np.ndarray | None = None,
        h: np.ndarray | None = None, lengths: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """Y [steps, directions, batch, hidden] and the last h: h' = tanh(x W + h R + bias)."""
    directions, _, hidden = r.shape
    chosen = functions(op, ("Tanh",), directions)
    steps = [_rnn_step(*_direction(w, r, bias, d), chosen[d][0]) for d in range(directions)]
    return first_outputs(op, run(op, x, steps, [h], lengths, hidden))


def _gru_directions(op: Op) -> int:
    return 2 if op["isBidirectionalRNN"] or op["direction"] == "bidirectional" else 1


def _gru_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, directions = need(op, inputs, 0), _gru_directions(op)
    steps, batch, features = extents(op, x)
    hidden = op["numUnits"]
    sizes = Sizes(steps, batch, features, hidden, directions)
    backwards(op, directions)
    for d in range(directions):
        at = 1 + 5 * d
        expect(op, need(op, inputs, at), at, (features + hidden, 2 * hidden), "gate weight")
        expect(op, need(op, inputs, at + 2), at + 2, (features + hidden, hidden), "candidate weight")
        for k, (count, what) in {1: (2, "gate bias"), 3: (1, "candidate bias"), 4: (3, "recurrent bias")}.items():
            spec = optional(inputs, at + k)
            if spec is not None and spec.size != count * hidden:
                raise ShapeError(f"{op}: input {at + k} ({what}) is {spec}; expected shape [1, {count * hidden}]")
    at = 1 + 5 * directions
    expect_states(op, sizes, [(optional(inputs, at), at, "initial h")], optional(inputs, at + 1), at + 1)
    outputs = sizes.outputs(op, x, 1)
    if not op["keepAllOutputs"]:
        return outputs[1:]
    return outputs[:len(op.outputs)] if op.outputs else outputs


def _gru_step(parts: Sequence[np.ndarray | None], hidden: int, linear_before_reset: bool, gate: Function,
              candidate: Function) -> Step:
    sizes = (0, 2 * hidden, 0, hidden, 3 * hidden)
    wide = [np.zeros(n) if p is None else p.astype(np.float64) for p, n in zip(parts, sizes)]
    gate_weight, gate_bias, weight, bias, recurrent = wide[0], wide[1].ravel(), wide[2], wide[3].ravel(), wide[4].ravel()
    gate_bias = gate_bias + recurrent[:2 * hidden]
    own, own_bias = weight[len(weight) - hidden:], recurrent[2 * hidden:]
    weight = weight[:len(weight) - hidden]

    def step(x: np.ndarray, states: list[np.ndarray]) -> list[np.ndarray]:
        h = states[0]
        z, r = np.split(gate(np.concatenate([x, h], 1) @ gate_weight + gate_bias), 2, axis=1)
        past = r * (h @ own + own_bias) if linear_before_reset else (r * h) @ own + own_bias
        return [(1 - z) * candidate(x @ weight + bias + past) + z * h]

    return step


def _gru_weights(directions: int = 1, inputs: int = 3, hidden: int = 5) -> list[np.ndarray]:
    rows = inputs + hidden
    return [_array(10 * d + k, *shape) for d in range(directions) for k, shape in enumerate(
        [(rows, 2 * hidden), (1, 2 * hidden), (rows, hidden), (1, hidden), (1, 3 * hidden)])]


@register("RNNSequenceGRU", param="RNNParam", attrs=EXTRA, infer=_gru_infer, examples=[
    Example({"numUnits": 5, "keepAllOutputs": True}, [Spec((4, 2, 3), FLOAT32), *_gru_weights()]),
    Example({"numUnits": 5}, [Spec((4, 2, 3), FLOAT32), *_gru_weights()], name="last"),
    Example({"numUnits": 5, "keepAllOutputs": True, "isBidirectionalRNN": True, "linearBeforeReset": True},
            [Spec((4, 2, 3), FLOAT32), *_gru_weights(2), _array(30, 2, 2, 5)], name="bidirectional"),
    Example({"numUnits": 5, "keepAllOutputs": True, "direction": "reverse"},
            [Spec((4, 3, 3), FLOAT32), *_gru_weights(), None, np.array([4, 0, 3], np.int32)], name="lengths"),
    Example({"numUnits": 5, "keepAllOutputs": True, "isBidirectionalRNN": True, "linearBeforeReset": True},
            [Spec((4, 3, 3), FLOAT32), *_gru_weights(2), _array(30, 2, 3, 5), np.array([1, 4, 2], np.int32)],
            name="bidirectional_lengths"),
    Example({"numUnits": 5, "keepAllOutputs": True, "direction": "reverse", "layout": 1, "activations": ("Sigmoid", "Relu")},
            [Spec((2, 4, 3), FLOAT32), *_gru_weights(), None, np.array([4, 2], np.int32)], name="reverse_lengths"),
])
def gru(op: Op, x: np.ndarray, *rest: np.ndarray | None) -> np.ndarray | tuple[np.ndarray, ...]:
    """Y [steps, directions, batch, hidden] and the last h; without `keepAllOutputs` only the last h.

    h' = (1 - z) * tanh(candidate) + z * h. `linearBeforeReset`: the reset gate multiplies h times its weight, not h.
    """
    directions, hidden = _gru_directions(op), op["numUnits"]
    chosen = functions(op, _GRU_FUNCTIONS, directions)
    padded = [*rest, *[None] * (5 * directions + 2 - len(rest))]
    steps = [_gru_step(padded[5 * d:5 * d + 5], hidden, bool(op["linearBeforeReset"]), *chosen[d]) for d in range(directions)]
    y, last = run(op, x, steps, [padded[5 * directions]], padded[5 * directions + 1], hidden)
    return first_outputs(op, (y, last)) if op["keepAllOutputs"] else last
