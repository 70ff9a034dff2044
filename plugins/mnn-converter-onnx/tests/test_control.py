"""If, Loop, Scan, and functions."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx_cases import assert_same, convert, ours, theirs

import mnn_core as mnn

F = np.float32


def run(text: str, **feeds: np.ndarray) -> list[np.ndarray]:
    proto = onnx.parser.parse_model(text)
    want = theirs(proto, feeds)
    for level in (0, 1):
        got = ours(proto, feeds, level)
        assert_same(got, want)
    return got


LOOP = """<ir_version: 8, opset_import: ["" : 17]> g (int64 m) => (int64 final, int64[k] scan) {
  start = Constant <value = int64 {10}> ()
  yes = Constant <value = bool {1}> ()
  final, scan = Loop (m, yes, start) <body = b (int64 i, bool c, int64 s) => (bool c2, int64 s2, int64 s3) {
    c2 = Identity (c)  s2 = Add (s, i)  s3 = Identity (s2) }>
}"""


def test_loop_stacks_the_value_of_each_turn() -> None:
    final, scan = run(LOOP, m=np.array(5))
    assert final == 20
    assert scan.tolist() == [10, 11, 13, 16, 20]


def test_loop_of_no_turns() -> None:
    model = mnn.load(convert(onnx.parser.parse_model(LOOP)), backend="numpy")
    got = model.run({"m": np.array(0)})
    assert got["final"] == 10
    assert got["scan"].shape == (0,)


def test_loop_stops_early_and_captures() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[2] x, float limit) => (float[2] y) {
      yes = Constant <value = bool {1}> ()
      half = Constant <value = float {0.5}> ()
      h = Mul (x, half)
      y = Loop (, yes, x) <body = b (int64 i, bool c, float[2] s) => (bool c2, float[2] z) {
        z = Add (s, h)  t = ReduceMax <keepdims = 0> (z)  c2 = Less (t, limit) }>
    }"""
    assert run(text, x=F([1, 2]), limit=F(6))[0].tolist() == [3.0, 6.0]
    shadowing = onnx.parser.parse_model(text.replace("float[2] z", "float[2] x").replace("z = ", "x = ").replace("(z)", "(x)"))
    feeds = {"x": F([1, 2]), "limit": F(6)}
    assert ours(shadowing, feeds)[0].tolist() == [3.0, 6.0]  # a name of the body does not overwrite one outside


def test_if_with_branches_of_different_shapes_and_nested() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (bool a, bool b, float[n] x) => (float[m] y) {
      y = If (a) <
        then_branch = t () => (float[p] r) { r = If (b) <
          then_branch = tt () => (float[p] r) { r = Concat <axis = 0> (x, x) },
          else_branch = te () => (float[p] r) { two = Constant <value = float {2.0}> ()  r = Mul (x, two) }> },
        else_branch = e () => (float[n] r) { r = Neg (x) }>
    }"""
    x = F([1, 2])
    for a in (True, False):
        for b in (True, False):
            run(text, a=np.array(a), b=np.array(b), x=x)


def test_if_of_a_constant_is_inlined() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[n] x) => (float[n] y) {
      a = Constant <value = bool {0}> ()
      y = If (a) <then_branch = t () => (float[n] r) { r = Abs (x) }, else_branch = e () => (float[n] r) { r = Neg (x) }>
    }"""
    assert [op.type for op in convert(onnx.parser.parse_model(text)).ops] == ["UnaryOp"]
    run(text, x=F([1, -2]))


@pytest.mark.parametrize("attributes", ["", ", scan_input_directions = [1], scan_output_directions = [1]",
                                        ", scan_input_axes = [1], scan_output_axes = [1]"])
def test_scan(attributes: str) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g (float[2] s, float[a, b] x) => (float[2] final, float[c, d] all) {{
      final, all = Scan <num_scan_inputs = 1{attributes}, body = b (float[2] s, float[2] v) => (float[2] s2, float[2] o) {{
        s2 = Add (s, v)  o = Mul (s2, v) }}> (s, x)
    }}"""
    x = np.arange(6, dtype=F).reshape(3, 2)
    run(text, s=F([1, 2]), x=x.T.copy() if "axes" in attributes else x)


def test_functions_of_the_model() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "local" : 1]> g (float[n] x) => (float[n] y) { h = local.twice (x)
      y = local.scaled <k = 3.0> (h) }
      <domain: "local", opset_import: ["" : 17]> twice (a) => (b) { b = Add (a, a) }
      <domain: "local", opset_import: ["" : 17, "local" : 1]> scaled <k> (a) => (b) { f = Constant <value_float: float = @k> ()
        c = local.twice (a)  b = Mul (c, f) }"""
    assert run(text, x=F([1, -2]))[0].tolist() == [12, -24]
    recursive = text.replace("b = Add (a, a)", "b = local.twice (a)").replace('"" : 17]>', '"" : 17, "local" : 1]>')
    with pytest.raises(mnn.ModelFormatError, match="calls itself"):
        convert(onnx.parser.parse_model(recursive))


def test_nodes_in_any_order() -> None:
    head = '<ir_version: 8, opset_import: ["" : 17]> g (float[n] x) => (float[n] y) '
    proto = onnx.parser.parse_model(head + "{ a = Abs (x)  b = Neg (a)  y = Exp (b) }")
    nodes = list(proto.graph.node)
    del proto.graph.node[:]
    proto.graph.node.extend(nodes[::-1])
    np.testing.assert_allclose(ours(proto, {"x": F([1, -2])})[0], np.exp([-1, -2]), rtol=1e-6)


def test_a_cycle_and_a_missing_tensor() -> None:
    head = '<ir_version: 8, opset_import: ["" : 17]> g (float[n] x) => (float[n] y) '
    with pytest.raises(mnn.ModelFormatError, match="depends on its own output"):
        convert(onnx.parser.parse_model(head + "{ a = Add (x, y)  y = Neg (a) }"))
    with pytest.raises(mnn.ModelFormatError, match="'q' is read"):
        convert(onnx.parser.parse_model(head + "{ y = Add (x, q) }"))


@pytest.mark.parametrize("trips", [0, 1, 4])
def test_variables_that_a_loop_never_changes_are_captured(trips: int) -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        m (float[2, 2] x, int64 n) => (float[2, 2] y, float[2, 2] same, float[K, 2, 2] all)
        <float[2, 2] w = {0.5, -0.25, 0.125, 1.0}> {
            y, same, all = Loop (n, , x, w) <body = b (int64 i, bool c, float[2, 2] s, float[2, 2] v)
                => (bool d, float[2, 2] t, float[2, 2] u, float[2, 2] scan) {
                d = Identity (c) t = MatMul (s, v) u1 = Identity (v) u = Identity (u1) scan = Add (t, v) }>
        }""")
    graph = mnn.convert(model, converter="onnx")
    loop = next(op for op in graph.ops if op.type == "While")
    body = graph.subgraphs[loop["body_graph"]]
    product = next(op for op in body.ops if op.type in ("MatMul", "Convolution"))
    assert product.inputs[1] in body.constants
    feeds = {"x": np.arange(4, dtype=np.float32).reshape(2, 2), "n": np.array(trips)}
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    for got, right in zip(mnn.load(graph).run(feeds).values(), want):
        np.testing.assert_allclose(got, right, rtol=1e-6)
