"""Scan of both forms, recurrent layers inside bodies, names and initializers of bodies; in memory and through a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx_cases import assert_same, check, convert, model, node, ours, theirs

import mnn_core as mnn

F = np.float32
Feed = dict[str, np.ndarray]


def agree(text: str, tmp_path: Path, feeds: list[Feed], constants: Feed | None = None) -> None:
    """Our results, with and without optimisation and from a saved file, against onnxruntime's."""
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(v, n) for n, v in (constants or {}).items())
    mnn.convert(proto, tmp_path / "m.mnn", converter="onnx")
    loaded = [mnn.load(convert(proto, level), backend="numpy") for level in (0, 1)]
    loaded += [mnn.load(tmp_path / "m.mnn", backend=backend) for backend in ("numpy", "cpu")]
    for feed in feeds:
        want = theirs(proto, feed)
        for each in loaded:
            assert_same(list(each.run({i.name: feed[i.name] for i in each.inputs}).values()), want)


def weights(seed: int, *shape: int) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * 0.5).astype(F)


SCAN_8 = """<ir_version: 3, opset_import: ["" : 8]>
g (INPUTS float[b, 2] s, float[b, t, 2] x, float[b, t, 3] z) => (float[b, 2] final, float[b, t, 2] run, float[b, t, 3] all) {
  final, run, all = Scan <num_scan_inputs = 2, directions = [0, 1], body = body (float[2] s, float[2] v, float[3] w) =>
      (float[2] s2, float[2] o, float[3] p) {
    s2 = Add (s, v)  o = Mul (s2, v)  q = ReduceSum <keepdims = 1> (s2)  p = Mul (w, q) }> (LENGTHS, s, x, z)
}"""


@pytest.mark.parametrize("lengths", [None, [3, 1]])
def test_the_first_scan_has_a_batch_and_lengths(lengths: list[int] | None, tmp_path: Path) -> None:
    feeds = {"s": weights(1, 2, 2), "x": weights(2, 2, 3, 2), "z": weights(3, 2, 3, 3)}
    text = SCAN_8.replace("INPUTS", "").replace("LENGTHS", "")
    if lengths is not None:
        feeds["n"] = np.array(lengths, np.int64)
        text = SCAN_8.replace("INPUTS", "int64[b] n,").replace("LENGTHS", "n")
    got = dict(zip(("final", "run", "all"), ours(onnx.parser.parse_model(text), feeds)))
    want = {"final": feeds["s"].copy(), "run": np.zeros((2, 3, 2), F), "all": np.zeros((2, 3, 3), F)}
    for row, n in enumerate(lengths or [3, 3]):
        for t in range(n):
            want["final"][row] += feeds["x"][row, t]
            want["run"][row, t] = want["final"][row] * feeds["x"][row, t]
            want["all"][row, t] = feeds["z"][row, n - 1 - t] * want["final"][row].sum()
    for name, value in want.items():
        np.testing.assert_allclose(got[name], value, atol=1e-6, err_msg=name)
    if lengths is None:
        agree(text, tmp_path, [feeds])


RECURRENT = {"LSTM": 4, "GRU": 3, "RNN": 1}


@pytest.mark.parametrize("kind", RECURRENT)
def test_a_recurrent_layer_inside_a_branch(kind: str, tmp_path: Path) -> None:
    """Its weights are the branch's own, or captured; the branches give different shapes."""
    gates = RECURRENT[kind]
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g (bool p, float[t, b, 3] x, float[2, b, 4] h) => (float[d, b, e] y) {{
      y = If (p) <
        then_branch = yes () => (float[t, b, 8] r) <float[2, {gates * 4}, 3] w> {{
          q, last = {kind} <hidden_size = 4, direction = "bidirectional"> (x, w, rw, bias, , h)
          o = Transpose <perm = [0, 2, 1, 3]> (q)  s = Constant <value_ints = [0, 0, 8]> ()  r = Reshape (o, s) }},
        else_branch = no () => (float[2, b, 4] r) {{
          q, r = {kind} <hidden_size = 4, direction = "bidirectional"> (x, w2, rw) }}>
    }}"""
    own = weights(1, 2, gates * 4, 3)
    filled = text.replace("w>", f"w = {{{', '.join(str(float(v)) for v in own.ravel())}}}>")
    constants = {"w2": weights(2, 2, gates * 4, 3), "rw": weights(3, 2, gates * 4, 4), "bias": weights(4, 2, gates * 8)}
    feeds = [{"p": np.array(p), "x": weights(5, t, b, 3), "h": weights(6, 2, b, 4)}
             for p, t, b in ((True, 3, 2), (False, 3, 2), (True, 1, 1), (False, 5, 1))]
    agree(filled, tmp_path, feeds, constants)


@pytest.mark.parametrize("kind", RECURRENT)
def test_a_recurrent_layer_inside_a_loop_keeps_its_state(kind: str, tmp_path: Path) -> None:
    cell, gates = kind == "LSTM", RECURRENT[kind]

    def also(c: str) -> str:
        return c if cell else ""

    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (int64 n, float[t, b, 3] x, float[1, b, 4] h{also(", float[1, b, 4] c")}) => (float[1, b, 4] hn, float[k, t, b, 4] all) {{
      yes = Constant <value = bool {{1}}> ()  axis = Constant <value_ints = [1]> ()
      hn, {also("cn, ")}all = Loop (n, yes, h{also(", c")}) <
        body = body (int64 i, bool go, float[1, b, 4] h{also(", float[1, b, 4] c")})
            => (bool go2, float[1, b, 4] h2, {also("float[1, b, 4] c2, ")}float[t, b, 4] o) {{
          go2 = Identity (go)  q, h2{also(", c2")} = {kind} <hidden_size = 4> (x, w, r, bias, , h{also(", c")})
          o = Squeeze (q, axis) }}>
    }}"""
    constants = {"w": weights(1, 1, gates * 4, 3), "r": weights(2, 1, gates * 4, 4), "bias": weights(3, 1, gates * 8)}
    feeds = [{"n": np.array(n), "x": weights(4, t, b, 3), "h": weights(5, 1, b, 4), "c": weights(6, 1, b, 4)}
             for n, t, b in ((3, 2, 2), (1, 1, 1), (2, 4, 3))]
    agree(text, tmp_path, [{k: v for k, v in f.items() if k != "c" or cell} for f in feeds], constants)


def test_three_layers_with_relu_and_states(tmp_path: Path) -> None:
    """As Keras writes GRU(activation="relu"), stacked; all layers' last states come out."""
    layer = """q{i}, h{i} = GRU <hidden_size = 4, activations = ["Sigmoid", "Relu"], linear_before_reset = 1> (
      {x}, w{i}, r{i}, b{i}, , g{i})  s{i} = Squeeze (q{i}, axis) """
    layers = "".join(layer.format(i=i, x="x" if i == 0 else f"s{i - 1}") for i in range(3))
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[t, b, 4] x, float[3, b, 4] h) => (float[t, b, 4] s2, float[3, b, 4] hn) {{
      axis = Constant <value_ints = [1]> ()  g0, g1, g2 = Split <axis = 0> (h)
      {layers} hn = Concat <axis = 0> (h0, h1, h2) }}"""
    shapes = {"w": (1, 12, 4), "r": (1, 12, 4), "b": (1, 24)}
    constants = {f"{n}{i}": weights(i + 3 * k, *shapes[n]) for i in range(3) for k, n in enumerate("wrb")}
    agree(text, tmp_path, [{"x": weights(18, t, b, 4), "h": weights(19, 3, b, 4)} for t, b in ((1, 1), (6, 2))], constants)


@pytest.mark.parametrize("opset", [1, 3, 6])
@pytest.mark.parametrize("kind", RECURRENT)
def test_recurrent_layers_of_the_first_operator_sets(kind: str, opset: int) -> None:
    """onnxruntime starts at set 7, whose definition they share."""
    constants = {"w": weights(1, 1, RECURRENT[kind] * 4, 3), "r": weights(2, 1, RECURRENT[kind] * 4, 4)}
    feeds = {"x": weights(3, 2, 2, 3)}
    options = {"output_sequence": 1} if opset == 1 else {}
    proto = model(node(kind, "x w r", "y h", hidden_size=4, **options), feeds, ("y", "h"), opset, constants)
    newer = model(node(kind, "x w r", "y h", hidden_size=4), feeds, ("y", "h"), 7, constants)
    assert_same(ours(proto, feeds), theirs(newer, feeds))


NAMES = """<ir_version: 8, opset_import: ["" : 17]> g (float[2] x, int64 n) => (float[2] y, float[k, 2] all, float[2] z) {
  yes = Constant <value = bool {1}> ()  h = Neg (x)
  y, all = Loop (n, yes, x) <body = b (int64 i, bool c, float[2] h) => (bool c2, float[2] z, float[2] y) {
    c2 = Identity (c)  y = Mul (h, h)  z = Add (y, x) }>
  z = Add (y, h) }"""


def test_names_of_a_body_equal_to_outer_ones(tmp_path: Path) -> None:
    agree(NAMES, tmp_path, [{"x": F([0.5, -1]), "n": np.array(n)} for n in (1, 3)])
    y, every, z = ours(onnx.parser.parse_model(NAMES), {"x": F([0.5, -1]), "n": np.array(0)})
    assert y.tolist() == [0.5, -1]
    assert every.shape == (0, 2)
    assert z.tolist() == [0, 0]


@pytest.mark.parametrize("operator", ["Loop", "Scan"])
def test_a_body_input_that_is_also_an_initializer_is_refused(operator: str) -> None:
    loop = """Loop (n, yes, x) <body = b (int64 i, bool c, float[2] s) => (bool c2, float[2] s2) <float[2] s = {1, 2}> {
      c2 = Identity (c)  s2 = Add (s, s) }>"""
    scan = """Scan <num_scan_inputs = 1, body = b (float[2] s, int64 i) => (float[2] s2) <float[2] s = {1, 2}> {
      s2 = Add (s, s) }> (x, m)"""
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g (float[2] x, int64 n, int64[k] m) => (float[2] y) {{
      yes = Constant <value = bool {{1}}> ()  y = {loop if operator == "Loop" else scan} }}"""
    with pytest.raises(mnn.ModelFormatError, match="'s' is both an input and an initializer"):
        convert(onnx.parser.parse_model(text))


@pytest.mark.parametrize(("shape", "wanted"), [((0, 4), [2, 0, 2]), ((2, 6), [3, 4]), ((3, 0), [0, 5])])
def test_reshape_with_allowzero_to_sizes_known_at_run_time(shape: tuple[int, ...], wanted: list[int]) -> None:
    """As PyTorch's newer exporter writes every view; a 0 stands for itself."""
    check(node("Reshape", "x s", allowzero=1), {"x": np.ones(shape, F), "s": np.array(wanted, np.int64)})
