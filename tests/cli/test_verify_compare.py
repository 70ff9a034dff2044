"""Verified conversion and `mnn compare`: a fault in our engine is found, named, and nothing is written."""

from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

import mnn_core as mnn
from mnn_core.cli.main import main
from mnn_core.ops import registry
from mnn_core.testing import verify
from mnn_core.testing.differences import difference


def build(path: Path, text: str, **weights: tuple[int, ...]) -> Path:
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> m {text}')
    rng = np.random.default_rng(1)
    proto.graph.initializer.extend(
        numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n) for n, s in weights.items())
    path.write_bytes(proto.SerializeToString())
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return build(tmp_path / "m.onnx", """(float[n, 16] x, int64[n] i) => (float[n, 8] y, float[n, 16] z) {
        a = MatMul(x, w)  b = Relu(a)  c = Softmax(b)  y = Add(c, b)  e = Gather(t, i)  z = Mul(e, x) }""",
                 w=(16, 8), t=(12, 16))


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Softmax is wrong by 0.01 in one place, on the NumPy backend, which alone is used."""
    monkeypatch.setattr("mnn_core.testing.verify.verify", functools.partial(verify.verify, backend="numpy"))
    right = registry._registry["Softmax"]

    def wrong(op: mnn.Op, x: np.ndarray) -> np.ndarray:
        y = right.compute(op, x)
        y[-1, 3] += np.float32(0.01)
        return y

    monkeypatch.setitem(registry._registry, "Softmax", dataclasses.replace(right, compute=wrong))


def test_a_good_conversion_is_verified(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = model.with_suffix(".mnn")
    assert main(["convert", str(model), str(target), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verification"]["passed"]
    assert found["verification"]["tensor"] in ("y", "z")
    assert found["verification"]["error"] < 1e-5
    assert found["not_in_mnn"] == []
    assert main(["convert", str(model), str(target), "--shape", "x=5,16", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verification"]["inputs"] == {"x": [5, 16], "i": [5]}
    assert main(["convert", str(model), str(target), "--no-verify", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verification"] is None


def test_a_wrong_conversion_is_not_written(model: Path, faulty: None, capsys: pytest.CaptureFixture[str]) -> None:
    target = model.with_suffix(".mnn")
    with pytest.raises(mnn.ConversionError, match=r"output 'y' differs from onnxruntime by 0\..*\n.*\n.*\n.*worst at \[0, 3\]"):
        mnn.convert(model, target, verify=True)
    assert main(["convert", str(model), str(target)]) == 1
    assert "verification failed, and nothing was written: output 'y' differs" in capsys.readouterr().err
    assert not target.exists()
    assert main(["convert", str(model), str(target), "--keep"]) == 1
    assert "output 'y' differs" in capsys.readouterr().err
    assert target.exists()


def test_what_cannot_be_verified_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = build(tmp_path / "r.onnx", "(float[3] x) => (float[3] y) { r = RandomNormalLike(x)  y = Add(x, r) }")
    assert main(["convert", str(random), str(tmp_path / "r.mnn")]) == 0
    assert "gives other values in every run" in capsys.readouterr().err
    assert main(["convert", str(random), str(tmp_path / "r.mnn"), "--verify"]) == 3
    assert main(["convert", str(tmp_path / "r.mnn"), str(tmp_path / "s.mnn"), "--verify"]) == 3
    assert "nothing to verify" in capsys.readouterr().err


def test_compare_finds_the_first_wrong_op(model: Path, faulty: None, tmp_path: Path,
                                          capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "report.html"
    arguments = ["compare", str(model), "--shape", "x=3,16", "--shape", "i=3", "--backend", "numpy"]
    assert main([*arguments, "--json", "--html", str(page)]) == 1
    found = json.loads(capsys.readouterr().out)["first_difference"]
    assert found["tensor"] == "c"
    assert found["op"].startswith("Softmax")
    assert found["worst"] == [2, 3]
    assert found["absolute"] == pytest.approx(0.01, rel=1e-3)
    assert main(arguments) == 1
    told = capsys.readouterr().out
    assert "made by Softmax" in told
    assert "its input 'b': error" in told
    text = page.read_text()
    assert "The first difference is tensor <b>c</b>" in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    svg = ElementTree.fromstring(text[text.index("<svg"): text.index("</svg>") + 6])
    boxes = {g[0].text.split(":")[0]: g[1].get("fill") for g in svg.iter("{http://www.w3.org/2000/svg}g")}
    colors = {kind.split(" ")[0]: color for kind, color in boxes.items()}
    assert colors["Softmax"] == "#f6c7c2"
    assert colors["ReLU"] == "#cfe8d5"


@pytest.mark.parametrize("options", [["--fp16"], ["--weight-quant-bits", "8"], ["--weight-quant-bits", "4"]], ids=" ".join)
def test_compare_with_packed_weights(options: list[str], model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(model), *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 1e-6 < found["worst"] < found["tolerance"]
    assert main(["compare", str(model), *options, "--tolerance", "1e-7"]) == 1


def test_compare_files_with_each_other_and_with_their_source(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain, small = model.with_name("plain.mnn"), model.with_name("small.mnn")
    mnn.convert(model, plain)
    mnn.convert(model, small, weight_quant_bits=8)
    assert main(["compare", str(plain), "--against", str(model)]) == 0
    assert main(["compare", str(small), "--against", str(plain), "--json"]) == 0
    found = json.loads(capsys.readouterr().out.partition("\n")[2])
    assert 1e-6 < found["worst"] < 0.2
    assert main(["compare", str(small), "--against", str(plain), "--tolerance", "1e-6"]) == 1
    assert main(["compare", str(small)]) == 0  # the same weights on two backends


def test_differences() -> None:
    nan, inf = np.nan, np.inf
    same = difference("t", np.float32([nan, inf, 1]), np.float32([nan, inf, 1]))
    assert same.error == 0
    found = difference("t", np.float32([[1, 2], [3, 5]]), np.float32([[1, 2], [3, 4]]))
    assert (found.error, found.absolute, found.worst, found.values) == (0.25, 1.0, (1, 1), (5.0, 4.0))
    assert difference("t", np.zeros((2, 1)), np.zeros(2)).error == inf
    assert difference("t", np.float32([nan]), np.float32([1])).error == inf
    assert difference("t", np.int32([2]), np.int64([2])).error == 0


def test_operators_that_the_reference_lacks_are_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    @mnn.register_op("verify.Twice", onnx="verify.Twice")
    def twice(op: mnn.Op, x: np.ndarray) -> np.ndarray:
        return 2 * x

    try:
        model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17, "verify" : 1]> m (float[3] x) => (float[3] y) '
                                        "{ y = verify.Twice(x) }")
        (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
        assert main(["convert", str(tmp_path / "m.onnx"), str(tmp_path / "m.mnn")]) == 0
        told = capsys.readouterr().err
        assert "not verified: onnxruntime cannot load" in told
        assert "the real MNN cannot run: verify.Twice" in told
        with pytest.raises(mnn.ConversionError, match="not verified: onnxruntime cannot load"):
            mnn.convert(tmp_path / "m.onnx", tmp_path / "n.mnn", verify=True)
        assert not (tmp_path / "n.mnn").exists()
    finally:
        del registry._registry["verify.Twice"]


def test_what_is_near_zero_is_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sigmoid far below 0: onnxruntime's ends at 0, or has few exact digits."""
    source = build(tmp_path / "s.onnx", """(float[n, 64] x) => (float[n, 64] y)
        { c = Constant<value_float=-16.0>()  a = Add(x, c)  y = Sigmoid(a) }""")
    assert main(["convert", str(source), str(tmp_path / "s.mnn")]) == 0
    assert main(["compare", str(source)]) == 0
    assert difference("t", np.float32([1.00002]), np.float32([1])).within(1e-4)
    assert not difference("t", np.float32([1.00002]), np.float32([1])).within(1e-5)


def test_models_with_branches_are_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = build(tmp_path / "b.onnx", """(float[n, 4] x, bool c) => (float[n, 4] y)
        { y = If(c) <then_branch = t () => (float[n, 4] u) { u = Relu(x) },
                     else_branch = e () => (float[n, 4] v) { v = Neg(x) }> }""")
    assert main(["convert", str(source), str(tmp_path / "b.mnn"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verification"]["passed"]
