"""LSTMBlockCell against onnxruntime."""

import numpy as np
import pytest
from ops.definitions import apply
from ops.ort import run

from mnn_core.errors import ShapeError

RNG = np.random.default_rng(4)
B, N, H = 3, 4, 3


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("peephole", [False, True])
def test_lstm_block_cell_is_a_step_of_an_lstm(peephole: bool) -> None:
    x, c, h, w, b, p = f(B, N), f(B, H), f(B, H), f(N + H, 4 * H), f(4 * H), [f(H) for _ in range(3)]
    attrs = {"forget_bias": 0.0, "cell_clip": -1.0, "use_peephole": peephole}
    results = apply("LSTMBlockCell", attrs, x, c, h, w, *p, b, outputs=7)
    i, z, forget, o = np.split(np.concatenate([w, b[None]]), 4, axis=1)  # ONNX has i, o, f, c, and peepholes i, o, f
    both = np.concatenate([i, o, forget, z], 1)
    peeps = [np.concatenate([p[0], p[2], p[1]])[None]] if peephole else []
    bias = np.concatenate([both[-1], np.zeros(4 * H, np.float32)])[None]
    _, want_h, want_c = run("LSTM", [x[None], both[:N].T[None], both[N:-1].T[None], bias, None, h[None], c[None], *peeps],
                            opset=14, outputs=3, hidden_size=H)
    np.testing.assert_allclose(results[1], want_c[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(results[6], want_h[0], rtol=1e-5, atol=1e-6)


def test_cell_is_limited() -> None:
    inputs = [f(B, N), 9 * f(B, H), f(B, H), f(N + H, 4 * H), f(H), f(H), f(H), f(4 * H)]
    cell = apply("LSTMBlockCell", {"cell_clip": 0.5}, *inputs, outputs=7)[1]
    assert np.abs(cell).max() == 0.5
    with pytest.raises(ShapeError, match="input 3"):
        apply("LSTMBlockCell", {}, *inputs[:3], f(N, 4 * H), *inputs[4:], outputs=7)
