"""What we write runs in the real MNN, also where its own op is wrong; files of it survive reading and writing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import onnxruntime
import peers
import pytest
from same import assert_same_value

import mnn_core as mnn
from mnn_core.formats import QuantizedWeight, read_mnn, write_mnn

SHAPES = {"x": (2, 4, 6, 7), "y": (2, 4, 6, 7), "w": (6, 4, 3, 3), "wg": (6, 2, 3, 3), "wd": (4, 1, 3, 3), "wt": (4, 3, 2, 2),
          "b": (6,)}

#: Name -> (its inputs, ONNX text that makes "o").
CASES = {
    "less": ("x, y", "c = Less(x, y)  o = Cast<to=1>(c)"),
    "where": ("x", "n = NonZero(x)  t = Transpose(n)  o = Cast<to=1>(t)"),
    "scatter": ("x, y", "i = Constant<value=int64[2,1] {1, 0}>()  o = ScatterND(x, i, y)"),
    "computed weight": ("x, w", "o = Conv(x, w)"),
    "computed weight and bias": ("x, w, b", "o = Conv<pads=[1, 0, 1, 0]>(x, w, b)"),
    "computed weight in groups": ("x, wg, b", "o = Conv<group=2>(x, wg, b)"),
    "computed depthwise weight": ("x, wd", "o = Conv<group=4, strides=[2, 1]>(x, wd)"),
    "computed transposed weight": ("x, wt", "o = ConvTranspose<strides=[2, 2]>(x, wt)"),
    "computed transposed weight in groups": ("x, wt", "o = ConvTranspose<group=2>(x, wt)"),
    "constant transposed weight in groups": (
        "x", "a = Constant<value_float=0.5>()  s = Constant<value=int64[4] {4, 3, 2, 2}>() "
             "w = Expand(a, s)  o = ConvTranspose<group=2, strides=[1, 2]>(x, w)"),
}


@pytest.mark.parametrize("name", CASES)
def test_ops_that_need_care(name: str, tmp_path: Path) -> None:
    inputs, text = CASES[name]
    names = inputs.split(", ")
    rng = np.random.default_rng(3)
    feed = {n: rng.standard_normal(SHAPES[n]).astype(np.float32) for n in names}
    feed["x"][0, 0] = 0
    kind = "float[n, 4]" if name == "where" else "float[n, c, h, l]"
    declared = ", ".join(f"float[{','.join(map(str, SHAPES[n]))}] {n}" for n in names)
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> m ({declared}) => ({kind} o) {{ {text} }}')
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    want = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feed)[0]
    mnn.convert(tmp_path / "m.onnx", tmp_path / "m.mnn")
    ((theirs,),) = peers.run(tmp_path / "m.mnn", [feed], ["o"], tmp_path)
    np.testing.assert_allclose(theirs, want, atol=1e-4)
    np.testing.assert_allclose(mnn.load(tmp_path / "m.mnn", backend="numpy").run(feed)["o"], want, atol=1e-4)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ONNX file with convolutions of every kind, a Gemm and a constant."""
    rng = np.random.default_rng(0)
    proto = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]> m (float[1, 32, 8, 8] x) => (float[1, 10] o) {
        a = Conv<pads=[1, 1, 1, 1]>(x, w, b)  c = Relu(a)  d = Conv<group=32>(c, v)  e = ConvTranspose<strides=[2, 2]>(d, u)
        f = Mul(e, k)  g = GlobalAveragePool(f)  h = Flatten(g)  o = Gemm<transB=1>(h, t) }""")
    shapes = {"w": (32, 32, 3, 3), "b": (32,), "v": (32, 1, 3, 3), "u": (32, 64, 2, 2), "k": (1, 64, 12, 12), "t": (10, 64)}
    proto.graph.initializer.extend(
        onnx.numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n) for n, s in shapes.items())
    path = tmp_path_factory.mktemp("network") / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


@pytest.mark.parametrize("options", [
    [], ["--fp16"], ["--weightQuantBits", "8"],
    ["--weightQuantBits", "4", "--weightQuantBlock", "32", "--weightQuantAsymmetric=1"],
    ["--weightQuantBits", "4", "--weightQuantBlock", "32", "--weightQuantAsymmetric"], ["--weightQuantBits", "3"],
    ["--saveExternalData"], ["--saveExternalData", "--weightQuantBits", "4"], ["--saveExternalData", "--fp16"],
], ids=" ".join)
def test_its_files_survive(options: list[str], network: Path, tmp_path: Path) -> None:
    """Read and written again, a file gives the very same numbers there, and its weights have the very same bytes."""
    theirs, again = tmp_path / "theirs.mnn", tmp_path / "again.mnn"
    peers.convert(network, {theirs: options})
    graph = read_mnn(theirs)
    write_mnn(graph, again, save_external_data="--saveExternalData" in options)
    feed = {"x": np.random.default_rng(1).standard_normal((1, 32, 8, 8)).astype(np.float32)}
    before, after = (peers.run(path, [feed], ["o"], tmp_path)[0][0] for path in (theirs, again))
    np.testing.assert_array_equal(after, before)
    first, second = (sorted((dict(c.quan) for c in g.constants.values() if isinstance(c, QuantizedWeight)),
                            key=lambda q: bytes(q["buffer"])) for g in (graph, read_mnn(again)))
    assert len(first) == len(second) == (4 if "--weightQuantBits" in options else 0)
    assert_same_value(tuple(first), tuple(second), "weights")
