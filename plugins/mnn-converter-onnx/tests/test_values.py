"""What is no plain tensor of numbers: text, sequences, optionals, and the types that numbers are only stored in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, parser

import mnn_core as mnn


def load(text: str, tmp_path: Path | None = None) -> mnn.Model:
    """A model in ONNX's text form, loaded; through a file if a folder is given."""
    graph = mnn.convert(parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\n{text}'), converter="onnx")
    if tmp_path is None:
        return mnn.load(graph, "numpy")
    mnn.load(graph, "numpy").save(tmp_path / "m.mnn")
    return mnn.load(tmp_path / "m.mnn", "numpy")


TEXT = """m (string[N] a, string[N] b) => (string[M] y, bool[N] same) {
    s = Constant <value_strings = ["-"]> ()
    left = StringConcat (a, s)
    joined = StringConcat (left, b)
    two = Concat <axis = 0> (joined, a)
    first = Constant <value_ints = [3, 0]> ()
    y = Gather (two, first)
    same = Equal (a, b)
}"""


@pytest.mark.parametrize("saved", [False, True])
def test_text_flows_through_plain_operators_and_files(saved: bool, tmp_path: Path) -> None:
    model = load(TEXT, tmp_path if saved else None)
    got = model.run({"a": ["x", "ä"], "b": np.array(["y", "ä"])})
    assert got["y"].tolist() == ["ä", "x-y"]
    assert got["same"].tolist() == [False, True]
    assert got["same"].dtype == np.bool_


def test_text_inputs_are_checked() -> None:
    model = load(TEXT)
    with pytest.raises(mnn.InputTypeError, match=r"'a' got int; expected a: string\[N\]"):
        model.run({"a": [1, 2], "b": ["x", "y"]})
    with pytest.raises(mnn.InputError, match="dimension 'N'"):
        model.run({"a": ["x"], "b": ["x", "y"]})


def test_text_is_refused_where_numbers_are_meant() -> None:
    with pytest.raises(mnn.ConversionError, match="Relu.*input 'X' is a string"):
        load("m (string[N] a) => (string[N] y) { y = Relu (a) }")


@pytest.mark.parametrize(("to", "given", "want"), [
    (TensorProto.FLOAT, ["1.5", "-INF", "1e-3"], [1.5, -np.inf, np.float32(1e-3)]),
    (TensorProto.INT64, ["-7", "12"], [-7, 12])])
def test_text_to_numbers(to: int, given: list[str], want: list[Any]) -> None:
    name = TensorProto.DataType.Name(to).lower()
    got = load(f"m (string[N] x) => ({name}[N] y) {{ y = Cast <to = {to}> (x) }}").run({"x": given})["y"]
    assert got.tolist() == want
    with pytest.raises(mnn.MNNError, match="could not convert|invalid literal"):
        load(f"m (string[N] x) => ({name}[N] y) {{ y = Cast <to = {to}> (x) }}").run({"x": ["text"]})


def test_numbers_to_text() -> None:
    got = load("m (float[N] x) => (string[N] y) { y = Cast <to = 8> (x) }").run({"x": [0.1, np.nan, -np.inf, 2]})["y"]
    assert got.tolist() == ["0.1", "NaN", "-INF", "2.0"]


SEQUENCE = """m (float[N, 2] x, int64 i) => (float[P, 2] y, seq(float[K, 2]) pieces, int64 n) {
    two = Constant <value_int = 2> ()
    all = SplitToSequence <axis = 0> (x, two)
    pieces = SequenceErase (all, i)
    n = SequenceLength (pieces)
    y = ConcatFromSequence <axis = 0> (pieces)
}"""


@pytest.mark.parametrize("saved", [False, True])
def test_sequences(saved: bool, tmp_path: Path) -> None:
    model = load(SEQUENCE, tmp_path if saved else None)
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    for i, rows in ((0, [2, 3, 4]), (-1, [0, 1, 2, 3]), (1, [0, 1, 4])):
        got = model.run({"x": x, "i": i})
        assert got["y"].tolist() == x[rows].tolist()
        assert [p.tolist() for p in got["pieces"]] == [x[r].tolist() for r in np.split(np.array(rows), range(2, len(rows), 2))
                                                       ] or i == 1
        assert got["n"] == 2
    with pytest.raises(mnn.MNNError, match="position 3 is outside of a sequence of 3"):
        model.run({"x": x, "i": 3})


def test_sequences_of_integers_keep_their_declared_type() -> None:
    model = load("m (seq(int64[N]) s) => (seq(int64[N]) t, int64[M] first) {"
                 " zero = Constant <value_int = 0> () first = SequenceAt (s, zero) t = SequenceInsert (s, first) }")
    got = model.run({"s": [np.array([1, 2]), np.array([3])]})
    assert [t.tolist() for t in got["t"]] == [[1, 2], [3], [1, 2]]
    assert {t.dtype for t in got["t"]} == {np.dtype(np.int64)} == {got["first"].dtype}
    with pytest.raises(mnn.InputTypeError, match=r"'s' got float64"):
        model.run({"s": [np.array([0.5])]})
    with pytest.raises(mnn.InputTypeError, match="expected s: sequence"):
        model.run({"s": np.array([1])})


def test_optionals() -> None:
    model = load("m (optional(float[N]) x) => (bool there, float[M] y) { there = OptionalHasElement (x)"
                 " y = If (there) <then_branch = g () => (float[M] a) { a = OptionalGetElement (x) },"
                 " else_branch = h () => (float[M] b) { b = Constant <value_floats = [7.0]> () }> }")
    assert model.run({"x": None})["y"].tolist() == [7]
    got = model.run({"x": [1, 2]})
    assert got["y"].tolist() == [1, 2]
    assert bool(got["there"]) is True


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int4", "uint4", "int2"])
@pytest.mark.parametrize("saved", [False, True])
def test_storage_types(name: str, saved: bool, tmp_path: Path) -> None:
    """Stored numbers in, stored numbers out: they are read, moved and cast without a change."""
    dtype = np.dtype(getattr(ml_dtypes, name))
    number = onnx.helper.np_dtype_to_tensor_dtype(dtype)
    kind = TensorProto.DataType.Name(number).lower()
    model = load(f"m ({kind}[N] x) => (float[N] f, {kind}[N] back, {kind}[N] same) {{ f = Cast <to = 1> (x)"
                 f" back = Cast <to = {number}> (f) same = Identity (x) }}", tmp_path if saved else None)
    x = np.array([0, 1, -2, 1] if not name.startswith("uint") else [0, 1, 3, 15]).astype(dtype)
    got = model.run({"x": x})
    assert got["f"].tolist() == x.astype(np.float32).tolist()
    for key in ("back", "same"):
        assert got[key].dtype == dtype
        np.testing.assert_array_equal(got[key].astype(np.float32), x.astype(np.float32))


def test_numbers_that_a_storage_type_lacks_are_refused() -> None:
    model = load("m (float8e4m3fn[N] x) => (float[N] y) { y = Cast <to = 1> (x) }")
    with pytest.raises(mnn.InputTypeError, match=r"expected float8_e4m3fn.*1\.03"):
        model.run({"x": np.float32([1, 1.03])})
    assert model.run({"x": [1.03]})["y"].tolist() == [1.0]
