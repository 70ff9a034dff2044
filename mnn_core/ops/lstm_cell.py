"""LSTMBlockCell: one step of TensorFlow's LSTM."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import need
from ._rules import FLOAT32, as_array, first_outputs
from .registry import Example, register
from .unary import sigmoid


def _f(*shape: int) -> Spec:
    return Spec(shape, FLOAT32)


def _cell_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, cell = need(op, inputs, 0), need(op, inputs, 1)
    if x.rank != 2 or cell.rank != 2 or x.dtype.kind != "f":
        raise ShapeError(f"{op}: expected an input and a state of floats with a rank of 2, found {x} and {cell}")
    (batch, size), hidden = x.shape, cell.shape[1]
    wanted: dict[int, tuple[int, ...]] = {
        1: (batch, hidden), 2: (batch, hidden), 3: (size + hidden, 4 * hidden), 7: (4 * hidden,)}
    wanted.update(dict.fromkeys((4, 5, 6), (hidden,)) if op["use_peephole"] else {})
    for i, shape in wanted.items():
        if need(op, inputs, i).shape != shape:
            raise ShapeError(f"{op}: input {i} is {need(op, inputs, i)}; expected {list(shape)}")
    specs = [cell.without_value()] * 7
    return specs[: len(op.outputs)] if op.outputs else specs


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
