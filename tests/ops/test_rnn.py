"""Recurrent layers against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from ops.definitions import apply
from ops.ort import run

from mnn_core.errors import GraphError, ShapeError

RNG = np.random.default_rng(0)
T, B, IN, H = 4, 2, 3, 5
X = RNG.standard_normal((T, B, IN)).astype(np.float32)
LENS = np.array([4, 2], np.int32)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def normal(*shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) * 0.7).astype(np.float32)


def mnn_form(kind: str, w: np.ndarray, r: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    """ONNX's weights as MNN wants them."""
    if kind != "GRU":
        return [w, r, b[:, :b.shape[1] // 2] + b[:, b.shape[1] // 2:]]
    parts = []
    for wd, rd, bd in zip(w, r, b):
        both = np.concatenate([wd, rd], 1).T
        parts += [both[:, :2 * H], bd[None, :2 * H], both[:, 2 * H:], bd[None, 2 * H:3 * H], bd[None, 3 * H:]]
    return parts


def check(kind: str, direction: str = "forward", *, lens: np.ndarray | None = None, states: bool = False,
          peepholes: bool = False, **attrs: Any) -> None:
    d, gates, layout = (2 if direction == "bidirectional" else 1), GATES[kind], attrs.get("layout", 0)
    w, r, b = normal(d, gates * H, IN), normal(d, gates * H, H), normal(d, 2 * gates * H)
    count = 2 if kind == "LSTM" else 1
    first = [normal(d, B, H) if states else None for _ in range(count)]
    x = X
    p = [normal(d, 3 * H) if peepholes else None] if kind == "LSTM" else []
    opset = 14 if not layout else 22
    want = run(kind, [x, w, r, b, lens, *first, *p], opset=opset, outputs=count + 1, hidden_size=H, direction=direction,
               **{k: v for k, v in attrs.items() if k != "layout"})
    if layout:  # onnxruntime has no layout 1: transposed here
        x = x.swapaxes(0, 1)
        first = [None if f is None else f.swapaxes(0, 1) for f in first]
        want = [want[0].transpose(2, 0, 1, 3), *(s.swapaxes(0, 1) for s in want[1:])]
    own = {k: tuple(v) if isinstance(v, list) else v for k, v in attrs.items()} | {"direction": direction}
    lbr = own.pop("linear_before_reset", 0)
    if kind == "GRU":
        own |= {"numUnits": H, "isBidirectionalRNN": d == 2, "linearBeforeReset": bool(lbr), "keepAllOutputs": True}
    got = apply({"GRU": "RNNSequenceGRU"}.get(kind, kind), own, x, *mnn_form(kind, w, r, b), *first, lens, *p,
                outputs=count + 1)
    for g, v in zip(got, want):
        np.testing.assert_allclose(g, v, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_directions_states_and_lengths(kind: str, direction: str) -> None:
    check(kind, direction)
    check(kind, direction, states=True, lens=LENS)
    check(kind, direction, states=True, layout=1)


def test_options() -> None:
    check("LSTM", "bidirectional", peepholes=True)
    check("LSTM", input_forget=1)
    check("LSTM", clip=0.4)
    check("LSTM", activations=["HardSigmoid", "Softsign", "Elu"], activation_alpha=[0.3, 0.9], activation_beta=[0.4])
    check("GRU", linear_before_reset=1, lens=LENS)
    check("GRU", clip=0.4, activations=["Sigmoid", "Relu"])
    check("RNN", "bidirectional", activations=["Relu", "LeakyRelu"], activation_alpha=[0.2])
    for name in ("ScaledTanh", "Affine", "ThresholdedRelu", "Softplus", "HardSigmoid"):
        check("RNN", activations=[name], activation_alpha=[0.5], activation_beta=[0.25])


def test_reverse_lstm_values() -> None:
    x, w = np.arange(3, dtype=np.float32).reshape(3, 1, 1), np.ones((1, 4, 1), np.float32)
    y, h, c = apply("LSTM", {"direction": "reverse"}, x, w, w * 0, outputs=3)
    np.testing.assert_allclose(y.ravel(), [.264502, .604343, .608283], atol=1e-6)
    np.testing.assert_allclose([h.item(), c.item()], [.264502, .588761], atol=1e-6)


def test_what_does_not_fit() -> None:
    w, r = normal(1, 4 * H, IN), normal(1, 4 * H, H)
    with pytest.raises(ShapeError, match=r"input 1 \(weight\).*expected shape \[1, 20, 4\]"):
        apply("LSTM", {}, normal(T, B, IN + 1), w, r, outputs=3)
    with pytest.raises(ShapeError, match="bidirectional"):
        apply("LSTM", {"direction": "bidirectional"}, X, w, r, outputs=3)
    with pytest.raises(GraphError, match="Swish"):
        apply("LSTM", {"activations": ("Swish",) * 3}, X, w, r, outputs=3)
    with pytest.raises(ShapeError, match=r"lengths \[9, 1\]"):
        apply("LSTM", {}, X, w, r, None, None, None, np.array([9, 1], np.int32), outputs=3)
