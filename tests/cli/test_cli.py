"""The `mnn` command, as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx.parser
import pytest
from PIL import Image

from mnn_core.cli.main import main

MODEL = """<ir_version: 8, opset_import: ["" : 17]> m (float[n, 3, h, w] x) => (float[n, 3, h, w] y, int64[4] s)
{ z = Relu(x)  y = Sigmoid(z)  s = Shape(y) }"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(onnx.parser.parse_model(MODEL).SerializeToString())
    assert main(["convert", str(path), str(tmp_path / "m.mnn")]) == 0
    return tmp_path / "m.mnn"


def test_run_gives_numpy_values(model: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((1, 3, 4, 5)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    assert main(["run", str(model), "--input", str(tmp_path / "x.npy"), "--output", str(tmp_path / "out.npz")]) == 0
    with np.load(tmp_path / "out.npz") as out:
        np.testing.assert_allclose(out["y"], 1 / (1 + np.exp(-np.maximum(x, 0))), rtol=1e-6)
        assert out["s"].tolist() == [1, 3, 4, 5]
        assert out["s"].dtype == np.int64


def test_run_takes_images_and_text(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Image.new("RGB", (6, 2), (255, 0, 0)).save(tmp_path / "red.png")
    assert main(["run", str(model), "-i", f"x={tmp_path / 'red.png'}", "--bgr", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["y"]["shape"] == [1, 3, 2, 6]
    assert found["y"]["values"][0][2][0][0] == pytest.approx(1 / (1 + np.exp(-1)))
    assert found["y"]["values"][0][0][0][0] == 0.5
    (tmp_path / "x.txt").write_text("1 2 3")
    assert main(["run", str(model), "-i", str(tmp_path / "x.txt")]) == 3
    assert "x" in capsys.readouterr().err


def test_info_names_the_interface(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(model), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["inputs"] == [{"name": "x", "dtype": "float32", "shape": ["n", 3, "h", "w"]}]
    assert found["outputs"][1]["dtype"] == "int64"
    assert sum(found["operators"].values()) == 3


def test_bench_profile_and_placement(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", str(model), "--shape", "1,3,8,8", "--rounds", "3", "--backend", "numpy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rounds"] == 3
    assert main(["profile", str(model), "--shape", "1,3,8,8", "--backend", "numpy", "--json"]) == 0
    assert {p["backend"] for p in json.loads(capsys.readouterr().out)["placement"]} <= {"numpy", "core"}


def test_compare_agrees_with_onnxruntime(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(model.with_suffix(".onnx")), "--shape", "1,3,4,4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["reference"].startswith("onnxruntime")
    assert found["compared"] >= 2
    assert found["first_difference"] is None


def test_compare_names_the_first_wrong_tensor(model: Path, capsys: pytest.CaptureFixture[str],
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    from mnn_core.cli import compare

    honest = compare.capture
    monkeypatch.setattr(compare, "capture", lambda m, f: {k: v + (k != "x") for k, v in honest(m, f).items()})
    assert main(["compare", str(model.with_suffix(".onnx")), "--shape", "1,3,4,4", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["first_difference"]["tensor"] == "z"


def test_ops_lists_the_vocabulary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "--json"]) == 0
    found = {row["op"]: row for row in json.loads(capsys.readouterr().out)}
    assert found["Convolution"]["number"] == "12"
    assert main(["ops", "--framework", "onnx", "--json"]) == 0
    assert {"Conv", "LSTM", "If"} <= {row["operator"] for row in json.loads(capsys.readouterr().out)}


@pytest.mark.parametrize(("arguments", "code", "text"), [
    (["run", "absent.mnn"], 3, "absent.mnn"),
    (["convert", "net.caffemodel", "x.mnn"], 3, "no file 'net.caffemodel'"),
    (["convert", "CAFFE", "x.mnn"], 3, "pip install mnn-converter-caffe"),
    (["run", "MODEL", "--backend", "cuda"], 3, "pip install mnn-cuda"),
    (["run", "MODEL", "--shape", "q=1,2"], 3, "no input 'q'"),
    (["run", "MODEL", "--shape", "1,x"], 3, "whole numbers"),
    (["plugins", "info", "nonsense"], 3, "nonsense"),
])
def test_errors_say_what_is_wrong(arguments: list[str], code: int, text: str, model: Path,
                                  capsys: pytest.CaptureFixture[str]) -> None:
    caffe = model.with_name("net.caffemodel")
    caffe.touch()
    assert main([{"MODEL": str(model), "CAFFE": str(caffe)}.get(a, a) for a in arguments]) == code
    assert text in capsys.readouterr().err


def test_a_reader_that_leaves_is_no_error() -> None:
    with subprocess.Popen([sys.executable, "-m", "mnn_core.cli.main", "ops", "--json"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 0


def test_help_of_every_command_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("convert", "run", "info", "bench", "profile", "compare", "ops", "plugins"):
        with pytest.raises(SystemExit) as left:
            main([command, "--help"])
        assert left.value.code == 0
        assert f"example:\n  mnn {command}" in capsys.readouterr().out
