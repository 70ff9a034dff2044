"""onnxruntime's DynamicQuantizeLSTM: weights are integers; inputs, and states at every step, are rounded to 8 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import need
from ._recurrent import EXTRA, Sizes, Step, backwards, expect, expect_states, extents, functions, run, unclipped
from ._rules import FLOAT32, as_array, first_outputs, optional
from .registry import Example, register
from .rnn import _lstm_step

_FUNCTIONS = ("Sigmoid", "Tanh", "Tanh")


def rounded(x: np.ndarray) -> np.ndarray:
    """x as 8-bit numbers over its range, 0 included, stand for it (ONNX's DynamicQuantizeLinear), in float64."""
    low, high = np.float32(x.min(initial=0)), np.float32(x.max(initial=0))
    scale = np.float32(high - low) / np.float32(255) or np.float32(1)
    zero = np.rint(np.clip(-low / scale, 0, 255))
    codes = np.clip(np.rint(x.astype(np.float32) / scale) + zero, 0, 255)
    return (codes - zero).astype(np.float64) * np.float64(scale)


def _infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    steps, batch, features = extents(op, need(op, inputs, 0))
    w, r = need(op, inputs, 1), need(op, inputs, 2)
    if r.rank != 3 or r.shape[2] != 4 * r.shape[1]:
        raise ShapeError(f"{op}: input 2 (recurrent weight) is {r}; expected [directions, hidden, 4 * hidden]")
    directions, hidden, columns = r.shape
    sizes = Sizes(steps, batch, features, hidden, directions)
    backwards(op, directions)
    expect(op, w, 1, (directions, features, columns), "weight")
    expect(op, optional(inputs, 3), 3, (directions, 2 * columns), "bias")
    expect_states(op, sizes, [(optional(inputs, 5 + k), 5 + k, f"initial {name}") for k, name in enumerate("hc")],
                  optional(inputs, 4), 4)
    expect(op, optional(inputs, 7), 7, (directions, 3 * hidden), "peepholes")
    for i in range(8, 12):
        spec = need(op, inputs, i)
        if spec.shape not in ((directions,), (directions, columns)):
            raise ShapeError(f"{op}: input {i} is {spec}; expected [{directions}] or [{directions}, {columns}]")
    outputs = sizes.outputs(op, need(op, inputs, 0), 2)
    return outputs[:len(op.outputs)] if op.outputs else outputs


def _weights(codes: np.ndarray, scale: np.ndarray, zero: np.ndarray, d: int) -> np.ndarray:
    return (codes[d].astype(np.float64) - zero[d]) * scale[d]


def _rounding(step: Step) -> Step:
    return lambda x, states: step(x, [rounded(states[0]), *states[1:]])


def _example(directions: int) -> list[np.ndarray | Spec | None]:
    rng = np.random.default_rng(directions)
    codes = [rng.integers(-127, 128, (directions, rows, 20)).astype(np.int8) for rows in (3, 5)]
    scale = np.full((directions,), 0.005, np.float32)
    zero = np.zeros(directions, np.int8)
    return [Spec((4, 2, 3), FLOAT32), *codes, rng.standard_normal((directions, 40)).astype(np.float32), None, None, None, None,
            scale, zero, scale, zero]


@register("com.microsoft.DynamicQuantizeLSTM", attrs={**EXTRA, "input_forget": 0}, infer=_infer, examples=[
    Example({}, _example(1), 1e-4), Example({"direction": "bidirectional"}, _example(2), 1e-4, "bidirectional"),
])
def dynamic_quantize_lstm(
        op: Op, x: np.ndarray, w: np.ndarray, r: np.ndarray, bias: np.ndarray | None, lengths: np.ndarray | None,
        h: np.ndarray | None, c: np.ndarray | None, peepholes: np.ndarray | None, w_scale: np.ndarray, w_zero: np.ndarray,
        r_scale: np.ndarray, r_zero: np.ndarray) -> tuple[np.ndarray, ...]:
    """As LSTM, of W [directions, input, 4 * hidden] and R [directions, hidden, 4 * hidden] as integers with scales and zeros.

    bias [directions, 8 * hidden] has the parts of the input, then of the recurrence; scales and zero points are [directions] or
    [directions, 4 * hidden].
    """
    directions, hidden, columns = r.shape
    clipped, free = functions(op, _FUNCTIONS, directions), unclipped(op, _FUNCTIONS, directions)
    steps = []
    for d in range(directions):
        added = np.zeros(columns) if bias is None else bias[d, :columns].astype(np.float64) + bias[d, columns:]
        peeps = np.zeros(3 * hidden) if peepholes is None else peepholes[d].astype(np.float64)
        gate, candidate = clipped[d][:2]
        steps.append(_rounding(_lstm_step(_weights(w, w_scale, w_zero, d), _weights(r, r_scale, r_zero, d), added, peeps,
                                          bool(op["input_forget"]), gate, candidate, free[d][2])))
    made = run(op, rounded(x), steps, [h, c], lengths, hidden)
    return first_outputs(op, tuple(as_array(a, FLOAT32) for a in made))
