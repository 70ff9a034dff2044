"""LSTM, GRU and RNN in every form against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_cases import check, node, random

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS, BATCH, SIZE, HIDDEN = 5, 3, 4, 6


def layer(kind: str, direction: str, lengths: Any = None, state: bool = True, peepholes: bool = False,
          **attrs: Any) -> list[np.ndarray]:
    d, g = 2 if direction == "bidirectional" else 1, GATES[kind]
    constants = {"w": random(d, g * HIDDEN, SIZE), "r": random(d, g * HIDDEN, HIDDEN, seed=1) * np.float32(0.3),
                 "b": random(d, 2 * g * HIDDEN, seed=2)}
    names, outputs = ["x", "w", "r", "b", "_", "_", "_", "_"], ["y", "yh"]
    if lengths is not None:
        constants["l"], names[4] = np.int32(lengths), "l"
    if state:
        constants["h"], names[5] = random(d, BATCH, HIDDEN, seed=3), "h"
    if kind == "LSTM":
        outputs.append("yc")
        if state:
            constants["c"], names[6] = random(d, BATCH, HIDDEN, seed=4), "c"
        if peepholes:
            constants["p"], names[7] = random(d, 3 * HIDDEN, seed=5), "p"
    used = names[:6] if kind != "LSTM" else names
    operator = node(kind, " ".join(used), " ".join(outputs), hidden_size=HIDDEN, direction=direction, **attrs)
    return check(operator, {"x": random(STEPS, BATCH, SIZE, seed=6)}, outputs, constants=constants)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_plain(kind: str, direction: str) -> None:
    layer(kind, direction)
    layer(kind, direction, state=False)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
def test_sequence_lengths(kind: str, direction: str) -> None:
    y = layer(kind, direction, lengths=[5, 2, 3])[0]
    assert not y[2:, :, 1].any()
    assert y[:2, :, 1].any()


@pytest.mark.parametrize("reset", [0, 1])
def test_gru_forms(reset: int) -> None:
    layer("GRU", "forward", linear_before_reset=reset)
    layer("GRU", "bidirectional", lengths=[4, 2, 5], linear_before_reset=reset, clip=0.5)
    layer("GRU", "forward", activations=["Sigmoid", "Relu"], linear_before_reset=reset)


def test_lstm_forms() -> None:
    layer("LSTM", "bidirectional", peepholes=True)
    layer("LSTM", "forward", input_forget=1, clip=0.7)
    layer("LSTM", "forward", activations=["HardSigmoid", "Softsign", "Elu"], activation_alpha=[0.3, 0.9])


def test_lstm_reverse_values() -> None:
    constants = {"w": np.ones((1, 4, 1), np.float32), "r": np.zeros((1, 4, 1), np.float32)}
    x = np.float32([0, 1, 2]).reshape(3, 1, 1)
    y, yh, yc = check(node("LSTM", "x w r", "y yh yc", hidden_size=1, direction="reverse"), {"x": x}, ("y", "yh", "yc"),
                      constants=constants)
    np.testing.assert_allclose(y.ravel(), [.264502, .604343, .608283], atol=1e-6)
    np.testing.assert_allclose([yh.item(), yc.item()], [.264502, .588761], atol=1e-6)


@pytest.mark.parametrize("kind", GATES)
def test_weights_of_unknown_size_as_inputs(kind: str) -> None:
    g = GATES[kind]
    check(node(kind, "x w r", "_ yh", hidden_size=HIDDEN), {"x": random(STEPS, BATCH, SIZE), "w": random(1, g * HIDDEN, SIZE),
                                                            "r": random(1, g * HIDDEN, HIDDEN)}, ("yh",))
