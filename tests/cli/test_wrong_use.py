"""Wrong files, names and targets: the `mnn` command says what is wrong, exits with 3, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from mnn_core.cli.main import main

MODEL = """<ir_version: 8, opset_import: ["" : 17]> m (float[n, 3, h, w] x) => (float[n, 3, h, w] y) { y = Relu(x) }"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    data = onnx.parser.parse_model(MODEL).SerializeToString()
    for name in ("m.onnx", "m\u00f6del \u6a21.onnx"):
        Path(name).write_bytes(data)
    assert main(["convert", "m.onnx", "m.mnn"]) == 0
    for name in ("dir.mnn", "dir.onnx"):
        Path(name).mkdir()
    for name in ("empty.mnn", "empty.onnx", "empty.json", "empty.npy", "a.file"):
        Path(name).touch()
    Path("list.json").write_text("[1, 2]")
    Path("text.txt").write_text("hello")
    Path("junk.npz").write_bytes(b"PK\3\4junk")
    Path("junk.jpg").write_bytes(b"\xff\xd8junk")
    np.save("objects.npy", np.array([object()]), allow_pickle=True)
    return tmp_path


def state(folder: Path) -> dict[str, bytes | None]:
    return {str(p): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


@pytest.mark.parametrize("command", ["run", "info", "bench", "compare", "profile", "convert"])
@pytest.mark.parametrize("file", ["nope.mnn", "nope.onnx", "dir.mnn", "dir.onnx", "empty.mnn", "empty.onnx", "empty.json",
                                  "list.json", "a.file", "text.txt", ".", ""])
def test_files_that_are_no_models(command: str, file: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = state(folder)
    assert main([command, file, *(["out.mnn"] if command == "convert" else [])]) == 3
    assert f"mnn {command}: " in capsys.readouterr().err
    assert state(folder) == before


@pytest.mark.parametrize("command", ["run", "bench", "compare", "profile"])
@pytest.mark.parametrize("options", [
    ["--input", "empty.npy"], ["--input", "objects.npy"], ["--input", "junk.npz"], ["--input", "junk.jpg"],
    ["--input", "none.npy"], ["--input", "."], ["--input", "text.txt"], ["--input", "x="], ["--input", "m.onnx"],
    ["--shape=-1,3,2,2"], ["--shape", "99999999,3,99999,9999"], ["--shape", "1,3"],
    ["--shape", "1,3,2,2", "--threads", "0"],
], ids=" ".join)
def test_inputs_that_are_none(command: str, options: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "m.mnn", *options]) == 3
    assert f"mnn {command}: " in capsys.readouterr().err


@pytest.mark.parametrize("target", ["dir.mnn", "no/out.mnn", "no/out.json", ".", "", "m.onnx", "a.file/out.mnn"])
@pytest.mark.parametrize("options", [[], ["--save-external-data"]], ids=["plain", "external"])
def test_targets_that_cannot_be_written(target: str, options: list[str], folder: Path) -> None:
    before = state(folder)
    assert main(["convert", "m.onnx", target, *options]) == 3
    assert state(folder) == before


def test_results_that_cannot_be_written(folder: Path) -> None:
    before = state(folder)
    assert main(["run", "m.mnn", "--shape", "1,3,2,2", "--output", "no/out.npz"]) == 3
    assert state(folder) == before


def test_a_zero_byte_is_wrong_usage(folder: Path) -> None:
    assert main(["run", "m\0.mnn"]) == 2


def test_names_in_any_script_and_conversion_in_place(folder: Path) -> None:
    assert main(["convert", "m\u00f6del \u6a21.onnx", "\u51fa.mnn"]) == 0
    for name in ("\u51fa.mnn", "m\u00f6del \u6a21.onnx"):
        assert main(["run", name, "--shape", "1,3,2,2"]) == 0
    assert main(["convert", "m.mnn", "m.mnn"]) == 0
    assert main(["run", "m.mnn", "--shape", "1,3,2,2"]) == 0
