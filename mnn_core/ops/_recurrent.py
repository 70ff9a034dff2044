"""What the recurrent layers share: activations, the loop over time, directions and sequence lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from .unary import sigmoid

Activation = Callable[[np.ndarray], np.ndarray]
#: (what the input adds to all gates, states) -> new states, the hidden one first.
Step = Callable[[np.ndarray, list[np.ndarray]], list[np.ndarray]]

_PLAIN: dict[str, Activation] = {
    "sigmoid": sigmoid, "tanh": np.tanh, "relu": lambda x: np.maximum(x, 0),
    "softsign": lambda x: x / (1 + np.abs(x)), "softplus": lambda x: np.logaddexp(x, 0),
}
#: Activations with one or two parameters, and their defaults.
_WITH_ALPHA: dict[str, tuple[Callable[..., np.ndarray], tuple[float, ...]]] = {
    "affine": (lambda x, a, b: a * x + b, (1.0, 0.0)),
    "leakyrelu": (lambda x, a: np.where(x >= 0, x, a * x), (0.01,)),
    "thresholdedrelu": (lambda x, a: np.where(x > a, x, 0), (1.0,)),
    "scaledtanh": (lambda x, a, b: a * np.tanh(b * x), (1.0, 1.0)),
    "hardsigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), (0.2, 0.5)),
    "elu": (lambda x, a: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))), (1.0,)),
}

#: Attributes beyond MNN's tables, with the values that mean MNN's own behaviour. Files with others hold Extra ops.
ATTRIBUTES = {"reverse": False, "activations": (), "activationAlpha": (), "activationBeta": (), "clip": 0.0}


def activations(op: Op, directions: int, defaults: Sequence[str]) -> list[list[Activation]]:
    """The functions of each direction. Names are ONNX's, in any case; alphas and betas are used up in order.

    Raises ShapeError for unknown names or another number of them.
    """
    names = [n.lower() for n in op["activations"]] or [n.lower() for n in defaults] * directions
    if len(names) != len(defaults) * directions:
        raise ShapeError(f"{op}: {len(names)} activations; expected {len(defaults)} for each of {directions} directions")
    parameters = [iter(op["activationAlpha"]), iter(op["activationBeta"])]
    found = []
    for name in names:
        if name in _PLAIN:
            found.append(_PLAIN[name])
        elif name in _WITH_ALPHA:
            function, values = _WITH_ALPHA[name]
            found.append(_bound(function, [next(p, v) for p, v in zip(parameters, values)]))
        else:
            known = ", ".join(sorted({**_PLAIN, **_WITH_ALPHA}))
            raise ShapeError(f"{op}: unknown activation {name!r}; expected one of {known}")
    return [found[i * len(defaults):(i + 1) * len(defaults)] for i in range(directions)]


def _bound(function: Callable[..., np.ndarray], values: list[float]) -> Activation:
    return lambda x: function(x, *(np.float32(v) for v in values))


def clipped(op: Op, x: np.ndarray) -> np.ndarray:
    """The input of an activation, limited to -clip..clip if `clip` is set."""
    return np.clip(x, -op["clip"], op["clip"]) if op["clip"] else x


def scan(x: np.ndarray, states: list[np.ndarray], step: Step, reverse: bool,
         lengths: np.ndarray | None) -> tuple[np.ndarray, list[np.ndarray]]:
    """Steps through x (T, B, gates): all hidden states (T, B, H) in the order of the input, and the last states (B, H).

    reverse: each row of the batch from its own last step back. Steps from a row's length on are 0 and change no state.
    """
    count = x.shape[0]
    limit = np.full(x.shape[1], count) if lengths is None else np.asarray(lengths).reshape(-1)
    order = np.arange(count)[:, None]
    order = np.where(order < limit, limit - 1 - order, order) if reverse else np.broadcast_to(order, x.shape[:2])
    x = np.take_along_axis(x, order[..., None], 0) if reverse else x
    out = np.zeros((count, *states[0].shape), x.dtype)
    for t in range(count):
        new = [s.astype(x.dtype, copy=False) for s in step(x[t], states)]
        if lengths is None:
            states, out[t] = new, new[0]
            continue
        valid = (t < limit)[:, None]
        states = [np.where(valid, n, s) for n, s in zip(new, states)]
        out[t] = np.where(valid, new[0], 0)
    return (np.take_along_axis(out, order[..., None], 0) if reverse else out), states


def initial(state: np.ndarray | None, direction: int, batch: int, hidden: int, dtype: np.dtype) -> np.ndarray:
    """One direction of a state (d, B, H); zeros if it is absent."""
    return np.zeros((batch, hidden), dtype) if state is None else state.reshape(-1, batch, hidden)[direction]


def is_reverse(op: Op, direction: int) -> bool:
    """The second of two directions runs in reverse, and the only one if `reverse` is set."""
    return direction == 1 or bool(op["reverse"])


def joined(results: Sequence[tuple[np.ndarray, list[np.ndarray]]]) -> tuple[np.ndarray, ...]:
    """Directions together: (T, d, B, H), and (d, B, H) for each state."""
    sequences = np.stack([r[0] for r in results], 1)
    return (sequences, *(np.stack(states) for states in zip(*(r[1] for r in results))))


def check_sequence(op: Op, x: Spec) -> None:
    """Raises ShapeError unless x is (T, B, I) of floats."""
    if x.rank != 3 or x.dtype.kind != "f":
        raise ShapeError(f"{op}: expected an input (steps, batch, size) of floats, found {x}")


def check_input(op: Op, spec: Spec | None, shape: Sequence[int], what: str) -> None:
    """Raises ShapeError unless an input is absent or has a shape, sizes of 1 in front not counting."""
    if spec is None:
        return
    found, wanted = list(spec.shape), list(shape)
    while len(found) > len(wanted) and found[0] == 1:
        found = found[1:]
    if found != wanted:
        raise ShapeError(f"{op}: {what} is {spec}; expected {wanted}")
