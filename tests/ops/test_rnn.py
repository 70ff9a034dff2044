"""Recurrent layers against onnxruntime."""

from itertools import product

import numpy as np
import pytest
from ops.definitions import apply
from ops.ort import run

from mnn_core.errors import ShapeError

RNG = np.random.default_rng(4)
T, B, N, H = 5, 3, 4, 3
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


class Case:
    """A layer with random weights, run by onnxruntime and by our op."""

    def __init__(self, kind: str, direction: str = "forward", bias: bool = True, states: bool = False,
                 lengths: list[int] | None = None, peepholes: bool = False, size: tuple[int, int] = (T, B),
                 **attrs: object) -> None:
        self.kind, self.direction, self.attrs = kind, direction, attrs
        d, n = DIRECTIONS[direction], GATES[kind] * H
        self.x, self.w, self.r = f(*size, N), f(d, n, N), f(d, n, H)
        self.b = f(d, 2 * n) if bias else None
        self.states = [f(d, size[1], H) if states else None for _ in range(2 if kind == "LSTM" else 1)]
        self.lengths = None if lengths is None else np.array(lengths, np.int32)
        self.peepholes = f(d, 3 * H) if peepholes else None

    def oracle(self) -> list[np.ndarray]:
        inputs = [self.x, self.w, self.r, self.b, self.lengths, *self.states]
        if self.peepholes is not None:
            inputs.append(self.peepholes)
        while inputs[-1] is None:
            inputs.pop()
        outputs = 3 if self.kind == "LSTM" else 2
        return run(self.kind, inputs, opset=14, outputs=outputs, hidden_size=H, direction=self.direction, **self.attrs)

    def ours(self) -> tuple[np.ndarray, ...]:
        names = {"activations": "activations", "activation_alpha": "activationAlpha", "activation_beta": "activationBeta",
                 "clip": "clip", "input_forget": "inputForget", "linear_before_reset": "linearBeforeReset"}
        attrs = {names[k]: v for k, v in self.attrs.items()} | ({"reverse": True} if self.direction == "reverse" else {})
        if self.kind == "GRU":
            return self._gru(attrs)
        b = None if self.b is None else self.b[:, :self.b.shape[1] // 2] + self.b[:, self.b.shape[1] // 2:]
        inputs = [self.x, self.w, self.r, b, *self.states, self.lengths]
        if self.kind == "LSTM":
            inputs.append(self.peepholes)
        return apply(self.kind, {"outputCount": H, **attrs}, *inputs, outputs=3 if self.kind == "LSTM" else 2)

    def _gru(self, attrs: dict) -> tuple[np.ndarray, ...]:
        inputs: list = [self.x]
        for d in range(DIRECTIONS[self.direction]):
            w, r = self.w[d].T, self.r[d].T
            b = np.zeros(6 * H, np.float32) if self.b is None else self.b[d]
            both = np.concatenate([w, r])
            inputs += [both[:, :2 * H], b[None, :2 * H], both[:, 2 * H:], b[None, 2 * H:3 * H], b[None, 3 * H:]]
        attrs = {"numUnits": H, "keepAllOutputs": True, "isBidirectionalRNN": self.direction == "bidirectional", **attrs}
        return apply("RNNSequenceGRU", attrs, *inputs, *self.states, self.lengths, outputs=2)

    def check(self) -> None:
        wanted = self.oracle()
        for i, (got, want) in enumerate(zip(self.ours(), wanted)):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6, err_msg=f"output {i}")


@pytest.mark.parametrize(("kind", "direction", "states"), list(product(GATES, DIRECTIONS, (False, True))))
@pytest.mark.parametrize("lengths", [None, [4, 1, 5]])
def test_directions_states_and_lengths(kind: str, direction: str, states: bool, lengths: list | None) -> None:
    """onnxruntime#4187, onnx-tensorflow#342: reverse starts at each row's own end."""
    Case(kind, direction, states=states, lengths=lengths).check()
    Case(kind, direction, states=states, lengths=lengths, bias=False).check()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_gru_linear_before_reset(direction: str) -> None:
    Case("GRU", direction, states=True, lengths=[4, 2, 5], linear_before_reset=1).check()
    case = Case("GRU", direction, lengths=[4, 2, 3], linear_before_reset=0)
    assert (case.ours()[0][2:, :, 1] == 0).all()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_lstm_peepholes_and_input_forget(direction: str) -> None:
    Case("LSTM", direction, states=True, peepholes=True).check()
    Case("LSTM", direction, states=True, input_forget=1).check()


@pytest.mark.parametrize("kind", GATES)
def test_clip(kind: str) -> None:
    Case(kind, states=True, clip=0.3).check()


def test_activations() -> None:
    """alibaba/MNN#2239: activations that are not the default ones."""
    Case("GRU", activations=["Sigmoid", "Relu"], states=True).check()
    Case("GRU", "bidirectional", activations=["HardSigmoid", "Softsign", "Sigmoid", "LeakyRelu"],
         activation_alpha=[0.3, 0.2], activation_beta=[0.4]).check()
    Case("LSTM", activations=["HardSigmoid", "Relu", "ScaledTanh"], activation_alpha=[0.25, 0.8],
         activation_beta=[0.5, 0.7]).check()
    Case("LSTM", activations=["Sigmoid", "Elu", "Affine"], activation_alpha=[0.5, 0.8], activation_beta=[0.1]).check()
    for name in ("Relu", "Softplus", "ThresholdedRelu"):
        Case("RNN", activations=[name], activation_alpha=[0.5]).check()


def test_lstm_in_reverse() -> None:
    """The values of onnxruntime#4187."""
    x = np.arange(3, dtype=np.float32).reshape(3, 1, 1)
    y, h, c = apply("LSTM", {"outputCount": 1, "reverse": True}, x, np.ones((1, 4, 1), np.float32),
                    np.zeros((1, 4, 1), np.float32), outputs=3)
    np.testing.assert_allclose(y.reshape(-1), [.264502, .604343, .608283], atol=1e-6)
    np.testing.assert_allclose([h.item(), c.item()], [.264502, .588761], atol=1e-6)


def test_no_steps_and_no_rows() -> None:
    case = Case("LSTM", states=True, size=(0, 2))
    y, h, c = case.ours()
    assert y.shape == (0, 1, 2, H)
    np.testing.assert_array_equal(h, case.states[0])
    np.testing.assert_array_equal(c, case.states[1])
    assert [a.shape for a in Case("GRU", size=(4, 0)).ours()] == [(4, 1, 0, H), (1, 0, H)]


def test_last_output_alone() -> None:
    case = Case("GRU", states=True)
    inputs = [case.x, *(f(*s) for s in ((N + H, 2 * H), (1, 2 * H), (N + H, H), (1, H), (1, 3 * H)))]
    both = apply("RNNSequenceGRU", {"numUnits": H, "keepAllOutputs": True}, *inputs, outputs=2)
    np.testing.assert_array_equal(apply("RNNSequenceGRU", {"numUnits": H}, *inputs), both[1])


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


@pytest.mark.parametrize(("change", "said"), [
    ({"x": (5, 4)}, "steps, batch"), ({"w": (1, 12, 5)}, "the weight"), ({"r": (1, 12, 4)}, "recurrent weight"),
    ({"b": (1, 20)}, "bias"), ({"w": (3, 12, 4)}, "expected"), ({"h": (1, 2, 3)}, "first state"),
    ({"attrs": {"activations": ("Tanh",)}}, "activations"), ({"attrs": {"activations": ("Tanh", "Tanh", "Moo")}}, "unknown"),
    ({"attrs": {"outputCount": 9}}, "outputCount"),
])
def test_wrong_shapes(change: dict, said: str) -> None:
    shapes = {"x": (5, 3, 4), "w": (1, 12, 4), "r": (1, 12, 3), "b": (1, 12), "h": (1, 3, 3)} | change
    with pytest.raises(ShapeError, match=said):
        apply("LSTM", shapes.pop("attrs", {}), *(f(*s) for s in shapes.values()), outputs=3)
