"""What recurrent layers share: directions, sequence lengths, ONNX's activations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import GraphError, ShapeError
from ..ir import Op, Spec
from .unary import sigmoid

Function = Callable[[np.ndarray], np.ndarray]
#: (x [batch, input], states [batch, hidden]) -> new states, the first of which is the output of the step.
Step = Callable[[np.ndarray, "list[np.ndarray]"], "list[np.ndarray]"]

#: Further attributes of all recurrent ops; MNN itself knows none of them.
EXTRA: dict[str, Any] = {"direction": "", "clip": 0.0, "activations": (), "activation_alpha": (), "activation_beta": (),
                         "layout": 0}
_DIRECTIONS = {"": (False, True), "forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
#: Name -> (function of x, alpha, beta; default alpha; default beta); None where it has none.
_ACTIVATIONS: dict[str, tuple[Callable[[np.ndarray, float, float], np.ndarray], float | None, float | None]] = {
    "sigmoid": (lambda x, a, b: sigmoid(x), None, None),
    "tanh": (lambda x, a, b: np.tanh(x), None, None),
    "relu": (lambda x, a, b: np.maximum(x, 0), None, None),
    "softsign": (lambda x, a, b: x / (1 + np.abs(x)), None, None),
    "softplus": (lambda x, a, b: np.logaddexp(x, 0), None, None),
    "leakyrelu": (lambda x, a, b: np.where(x < 0, a * x, x), 0.01, None),
    "thresholdedrelu": (lambda x, a, b: np.where(x > a, x, 0), 1.0, None),
    "elu": (lambda x, a, b: np.where(x < 0, a * np.expm1(np.minimum(x, 0)), x), 1.0, None),
    "hardsigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5),
    "affine": (lambda x, a, b: a * x + b, 1.0, 0.0),
    "scaledtanh": (lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
}


@dataclass(frozen=True)
class Sizes:
    """Extents of a layer: steps, batch, input features, hidden units, directions."""

    steps: int
    batch: int
    inputs: int
    hidden: int
    directions: int

    def outputs(self, op: Op, x: Spec, states: int) -> list[Spec]:
        """Specs of Y and of `states` final states, in the op's layout."""
        if op["layout"]:
            y, state = (self.batch, self.steps, self.directions, self.hidden), (self.batch, self.directions, self.hidden)
        else:
            y, state = (self.steps, self.directions, self.batch, self.hidden), (self.directions, self.batch, self.hidden)
        return [x.with_shape(y), *(x.with_shape(state) for _ in range(states))]


def extents(op: Op, x: Spec) -> tuple[int, int, int]:
    """(steps, batch, features) of the input. Raises ShapeError."""
    if x.rank != 3 or x.dtype.kind != "f":
        order = "[batch, steps, features]" if op["layout"] else "[steps, batch, features]"
        raise ShapeError(f"{op}: input 0 is {x}; expected floats {order}")
    first, second, features = x.shape
    return (second, first, features) if op["layout"] else (first, second, features)


def expect(op: Op, spec: Spec | None, index: int, shape: Sequence[int], what: str) -> None:
    """Raises ShapeError unless an input, if it is there, has a shape."""
    if spec is not None and spec.shape != tuple(shape):
        raise ShapeError(f"{op}: input {index} ({what}) is {spec}; expected shape {list(shape)}")


def expect_states(op: Op, sizes: Sizes, states: Sequence[tuple[Spec | None, int, str]], lengths: Spec | None,
                  lengths_index: int) -> None:
    """Raises ShapeError unless initial states (spec, input, name) and sequence lengths fit."""
    lead = (sizes.batch, sizes.directions) if op["layout"] else (sizes.directions, sizes.batch)
    for spec, index, what in states:
        expect(op, spec, index, (*lead, sizes.hidden), what)
    expect(op, lengths, lengths_index, (sizes.batch,), "sequence lengths")


def backwards(op: Op, directions: int) -> tuple[bool, ...]:
    """Whether each direction runs from the end. Raises GraphError if `direction` does not fit the weights."""
    found = _DIRECTIONS.get(op["direction"])
    if found is None:
        raise GraphError(f"{op}: direction is {op['direction']!r}; expected forward, reverse or bidirectional")
    if directions not in (1, 2) or (op["direction"] and len(found) != directions):
        raise ShapeError(f"{op}: direction {op['direction']!r} with weights of {directions} directions; expected "
                         f"{len(found) if op['direction'] else '1 or 2'}")
    return found[:directions]


def functions(op: Op, defaults: Sequence[str], directions: int) -> list[list[Function]]:
    """The activation functions of each direction, clipped inputs and all. Raises GraphError for unknown names."""
    names = tuple(op["activations"]) or tuple(defaults) * directions
    if len(names) != len(defaults) * directions:
        raise GraphError(f"{op}: activations are {list(names)}; expected {len(defaults)} for each of {directions} directions")
    alphas, betas = list(op["activation_alpha"]), list(op["activation_beta"])
    made: list[Function] = []
    for name in names:
        if name.lower() not in _ACTIVATIONS:
            raise GraphError(f"{op}: activation {name!r} is not known; expected one of {', '.join(sorted(_ACTIVATIONS))}")
        function, alpha, beta = _ACTIVATIONS[name.lower()]
        a = alphas.pop(0) if alpha is not None and alphas else alpha
        b = betas.pop(0) if beta is not None and betas else beta
        made.append(_bound(function, float(a or 0), float(b or 0), float(op["clip"])))
    each = len(defaults)
    return [made[i * each:(i + 1) * each] for i in range(directions)]


def _bound(function: Callable[[np.ndarray, float, float], np.ndarray], alpha: float, beta: float, clip: float) -> Function:
    return lambda x: function(np.clip(x, -clip, clip) if clip > 0 else x, alpha, beta)


def unclipped(op: Op, defaults: Sequence[str], directions: int) -> list[list[Function]]:
    """As `functions`, for values that `clip` does not limit."""
    free = Op(op.type, op.inputs, op.outputs, {**op.attrs, "clip": 0.0}, op.name)
    return functions(free, defaults, directions)


def run(op: Op, x: np.ndarray, steps: Sequence[Step], states: Sequence[np.ndarray | None], lengths: np.ndarray | None,
        hidden: int) -> tuple[np.ndarray, ...]:
    """Y and the final states of all directions.

    states: initial ones as the op's inputs, None for zeros. A row ends at its own length: later outputs are 0, its state
    stays, and a reverse direction starts there.
    """
    wide = (x.swapaxes(0, 1) if op["layout"] else x).astype(np.float64)
    count, batch = wide.shape[:2]
    ends = np.full(batch, count) if lengths is None else lengths.astype(np.int64)
    if np.any((ends < 0) | (ends > count)):
        raise ShapeError(f"{op}: sequence lengths {ends.tolist()} do not fit {count} steps")
    time = np.arange(count)[:, None]
    flipped = np.where(time < ends, ends - 1 - time, time)
    y = np.zeros((count, len(steps), batch, hidden))
    finals = [np.zeros((len(steps), batch, hidden)) for _ in states]
    for d, (step, back) in enumerate(zip(steps, backwards(op, len(steps)))):
        rows = np.take_along_axis(wide, flipped[:, :, None], 0) if back else wide
        now = [np.zeros((batch, hidden)) if s is None else (s[:, d] if op["layout"] else s[d]).astype(np.float64)
               for s in states]
        out = np.zeros((count, batch, hidden))
        for t in range(count):
            alive = (t < ends)[:, None]
            new = step(rows[t], now)
            out[t] = np.where(alive, new[0], 0)
            now = [np.where(alive, n, old) for n, old in zip(new, now)]
        y[:, d] = np.take_along_axis(out, flipped[:, :, None], 0) if back else out
        for final, state in zip(finals, now):
            final[d] = state
    if op["layout"]:
        y, finals = y.transpose(2, 0, 1, 3), [f.swapaxes(0, 1) for f in finals]
    return tuple(np.ascontiguousarray(a).astype(x.dtype) for a in (y, *finals))
