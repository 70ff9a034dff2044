"""Recurrent layers in graphs: stacks with states in and out, and inside an If; transposed convolutions before a batch norm."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import mnn_core as mnn

STACK = """<ir_version: 8, opset_import: ["" : 17]>
m (float[t, b, 3] x, float[2, b, 4] h, float[2, b, 4] c, bool p) => (float[t, b, 4] y, float[2, b, 4] hn, float[2, b, 4] cn) {
  one = Constant <value_ints = [1, 1]> ()  axis = Constant <value_ints = [1]> ()
  h0, h1 = Split <axis = 0> (h, one)  c0, c1 = Split <axis = 0> (c, one)
  y0, hn0, cn0 = LSTM <hidden_size = 4> (x, w0, r0, b0, , h0, c0)
  s0 = Squeeze (y0, axis)
  BRANCH
  hn = Concat <axis = 0> (hn0, hn1)  cn = Concat <axis = 0> (cn0, cn1)
}"""
LAYER = "y1, hn1, cn1 = LSTM <hidden_size = 4> (s0, w1, r1, b1, , h1, c1)  y = Squeeze (y1, axis)"
BRANCH = """y, hn1, cn1 = If (p) <
  then_branch = g1 () => (float[t, b, 4] ya, float[1, b, 4] ha, float[1, b, 4] ca) {
    yq, ha, ca = LSTM <hidden_size = 4> (s0, w1, r1, b1, , h1, c1)  ya = Squeeze (yq, axis) },
  else_branch = g2 () => (float[t, b, 4] yb, float[1, b, 4] hb, float[1, b, 4] cb) {
    yb = Neg (s0)  hb = Identity (h1)  cb = Identity (c1) }>"""


def weights(*shape: int, seed: int) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * 0.5).astype(np.float32)


def check(text: str, constants: dict[str, np.ndarray], feeds: list[dict[str, np.ndarray]], tolerance: float = 1e-5) -> None:
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(v, n) for n, v in constants.items())
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    for backend in ("numpy", "cpu"):
        model = mnn.load(mnn.convert(proto, converter="onnx"), backend=backend)
        for feed in feeds:
            known = {i.name: feed[i.name] for i in session.get_inputs()}
            for ours, theirs in zip(model.run({i.name: feed[i.name] for i in model.inputs}).values(), session.run(None, known)):
                np.testing.assert_allclose(ours, theirs, atol=tolerance * max(1, np.abs(theirs).max()))


@pytest.mark.parametrize("second", [LAYER, BRANCH], ids=["stack", "in_if"])
def test_two_layers_with_states(second: str) -> None:
    constants = {"w0": weights(1, 16, 3, seed=1), "r0": weights(1, 16, 4, seed=2), "b0": weights(1, 32, seed=3),
                 "w1": weights(1, 16, 4, seed=4), "r1": weights(1, 16, 4, seed=5), "b1": weights(1, 32, seed=6)}
    feeds = [{"x": weights(t, b, 3, seed=7), "h": weights(2, b, 4, seed=8), "c": weights(2, b, 4, seed=9), "p": np.array(p)}
             for t, b, p in ((5, 2, True), (1, 1, False), (5, 2, False), (3, 4, True))]
    check(STACK.replace("BRANCH", second), constants, feeds)


@pytest.mark.parametrize("group", [1, 2, 4])
def test_batch_norm_after_a_grouped_transposed_convolution(group: int) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> m (float[n, 4, h, w] x) => (float[n, c, ho, wo] y) {
      t = ConvTranspose <group = GROUP, strides = [2, 1], output_padding = [1, 0], pads = [1, 0, 1, 1]> (x, k, bias)
      y = BatchNormalization (t, s, o, mean, var) }""".replace("GROUP", str(group))
    outputs = 2 * group
    constants = {"k": weights(4, 2, 3, 3, seed=1), "bias": weights(outputs, seed=2), "s": weights(outputs, seed=3),
                 "o": weights(outputs, seed=4), "mean": weights(outputs, seed=5), "var": np.abs(weights(outputs, seed=6)) + 0.5}
    check(text, constants, [{"x": weights(2, 4, 5, 6, seed=7)}, {"x": weights(1, 4, 3, 3, seed=8)}])
