"""Model files: every form of constants, damaged and hostile ones, and what is refused."""

from __future__ import annotations

import random as rng
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import assert_same, convert, model, node, ours, random, theirs

import mnn_core as mnn

F = np.float32
HALVES = {TensorProto.FLOAT16: [0x3400, 0x3800, 0x3C00, 0x4000], TensorProto.BFLOAT16: [0x3E80, 0x3F00, 0x3F80, 0x4000]}


def tensor(kind: int, dims: list[int], **fields: Any) -> onnx.TensorProto:
    found = onnx.TensorProto(name="w", data_type=kind, dims=dims)
    for name, value in fields.items():
        if name == "raw_data":
            found.raw_data = value
        else:
            getattr(found, name).extend(value)
    return found


def with_initializer(initializer: onnx.TensorProto, kind: int = TensorProto.FLOAT) -> onnx.ModelProto:
    out = helper.make_tensor_value_info("y", kind, None)
    graph = helper.make_graph([node("Identity", "w", "y")], "g", [], [out], [initializer])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def value(proto: onnx.ModelProto, **options: Any) -> np.ndarray:
    return mnn.load(convert(proto, **options), backend="numpy").run({})["y"]


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("form", ["raw", "typed", "attribute", "folded"])
def test_half_precision_constants(kind: int, form: str) -> None:
    bits = HALVES[kind]
    fields: dict[str, Any] = {"raw_data": np.array(bits, np.uint16).tobytes()} if form == "raw" else {"int32_data": bits}
    proto = with_initializer(tensor(kind, [4], **fields), kind)
    want = [0.25, 0.5, 1, 2]
    if form in ("attribute", "folded"):
        proto = with_initializer(tensor(kind, [4], **fields), kind)
        constant = helper.make_node("Constant", [], ["w"], value=proto.graph.initializer[0])
        del proto.graph.initializer[:]
        proto.graph.node.insert(0, constant)
    if form == "folded":
        proto.graph.node[1].CopyFrom(node("Mul", "w w", "y"))
        want = [0.0625, 0.25, 1, 4]
    got = value(proto)
    assert got.tolist() == want
    assert got.dtype.name == ("float16" if kind == TensorProto.FLOAT16 else "bfloat16")


def test_four_bit_constants() -> None:
    raw = bytes([0x21, 0xF8, 0x07])
    assert value(with_initializer(tensor(TensorProto.INT4, [5], raw_data=raw), TensorProto.INT8)).tolist() == [1, 2, -8, -1, 7]
    assert value(with_initializer(tensor(TensorProto.UINT4, [5], int32_data=list(raw)), TensorProto.UINT8)).tolist() == \
        [1, 2, 8, 15, 7]


def test_wide_integers_saturate_and_keep_their_declared_dtype() -> None:
    got = value(with_initializer(tensor(TensorProto.INT64, [3], int64_data=[2**40, -2**63, 7]), TensorProto.INT64))
    assert got.tolist() == [2**31 - 1, -2**31, 7]
    assert got.dtype == np.int64


def test_sparse_constants() -> None:
    values = numpy_helper.from_array(F([5, 7]), "w")
    for indices in (np.array([1, 5]), np.array([[0, 1], [1, 2]])):
        sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(indices), [2, 3])
        proto = with_initializer(values)
        del proto.graph.initializer[:]
        proto.graph.sparse_initializer.append(sparse)
        assert value(proto).tolist() == [[0, 5, 0], [0, 0, 7]]
    sparse.dims[:] = [1 << 40, 1 << 20]
    with pytest.raises(mnn.ModelFormatError):
        convert_sparse(sparse, values)


def convert_sparse(sparse: onnx.SparseTensorProto, values: onnx.TensorProto) -> None:
    proto = with_initializer(values)
    del proto.graph.initializer[:]
    proto.graph.sparse_initializer.append(sparse)
    convert(proto)


@pytest.mark.parametrize("bad", [
    tensor(TensorProto.FLOAT, [4], raw_data=b"\0" * 15), tensor(TensorProto.FLOAT, [1 << 40, 1 << 40], raw_data=b"\0" * 16),
    tensor(TensorProto.FLOAT, [-1], raw_data=b""), tensor(TensorProto.FLOAT, [1 << 30]), tensor(TensorProto.FLOAT, [1] * 40),
    tensor(TensorProto.INT64, [2], int64_data=[1]),
])
def test_constants_that_do_not_fit_their_shape(bad: onnx.TensorProto) -> None:
    with pytest.raises(mnn.ModelFormatError, match="initializer 'w'"):
        convert(with_initializer(bad))


def external(folder: Path, location: str, **entries: int) -> Path:
    initializer = tensor(TensorProto.FLOAT, [4])
    initializer.data_location = TensorProto.EXTERNAL
    for key, text in {"location": location, **entries}.items():
        initializer.external_data.add(key=key, value=str(text))
    path = folder / "m.onnx"
    path.write_bytes(with_initializer(initializer).SerializeToString())
    return path


def test_external_data(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"head" + F([1, 2, 3, 4]).tobytes())
    path = external(tmp_path, "w.bin", offset=4, length=16)
    assert mnn.load(mnn.convert(path), backend="numpy").run({})["y"].tolist() == [1, 2, 3, 4]
    with pytest.raises(mnn.ModelFormatError, match="given as bytes"):
        convert(onnx.load(path, load_external_data=False))


@pytest.mark.parametrize(("location", "entries"), [
    ("../w.bin", {}), ("sub/../../w.bin", {}), ("/etc/hostname", {}), ("missing.bin", {}), ("", {}), ("link.bin", {}),
    ("..", {}), ("folder", {}), ("inner.bin", {"offset": 1}), ("inner.bin", {"offset": -4}), ("inner.bin", {"length": 8}),
    ("inner.bin", {"length": 1 << 60}),
])
def test_external_data_that_leaves_the_folder_or_the_file(tmp_path: Path, location: str, entries: dict[str, int]) -> None:
    folder = tmp_path / "model"
    (folder / "folder").mkdir(parents=True)
    (tmp_path / "w.bin").write_bytes(b"\0" * 16)
    (folder / "inner.bin").write_bytes(b"\0" * 16)
    (folder / "link.bin").symlink_to(tmp_path / "w.bin")
    with pytest.raises(mnn.ModelFormatError, match="initializer 'w'"):
        mnn.convert(external(folder, location, **entries))


def sample() -> bytes:
    """A model with a bit of everything."""
    body = """<ir_version: 8, opset_import: ["" : 17]> g (float[n, 2, 4, 4] x, bool q) => (float[m, k] y) {
      p = Constant <value_ints = [0, 0, 1, 1, 0, 0, 1, 1]> ()
      a = Pad (x, p)
      c = Conv <kernel_shape = [3, 3]> (a, w)
      r = Relu (c)
      i = If (q) <then_branch = t () => (float[m] s) { s = Flatten (r) },
                  else_branch = e () => (float[m] s) { f = Flatten (r)  s = Neg (f) }>
      y = Softmax (i)
    }"""
    proto = onnx.parser.parse_model(body)
    proto.graph.initializer.append(numpy_helper.from_array(random(3, 2, 3, 3), "w"))
    return proto.SerializeToString()


def test_prefixes_of_a_model_are_refused_or_harmless() -> None:
    data = sample()
    want = len(mnn.convert(data, converter="onnx").ops)
    for size in range(len(data)):
        with suppress(mnn.ModelFormatError, mnn.ConversionError):
            assert len(mnn.convert(data[:size], converter="onnx").ops) <= want


def test_flipped_bytes_raise_our_errors_only() -> None:
    data, dice = sample(), rng.Random(0)
    for _ in range(800):
        damaged = bytearray(data)
        for _ in range(dice.choice((1, 1, 2, 4))):
            damaged[dice.randrange(len(data))] = dice.randrange(256)
        with suppress(mnn.MNNError):
            mnn.convert(bytes(damaged), converter="onnx")


def test_all_that_is_unsupported_is_listed_and_nothing_written(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "com.what" : 1]> g (float[n] x) => (float[n] y) {
      a = com.what.Foo (x)  b = com.what.Foo (a)  c = com.what.Bar (b)  y = Pad <mode = "wrap"> (c, p) }"""
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.append(numpy_helper.from_array(np.array([1, 1]), "p"))
    for i, n in enumerate(proto.graph.node):
        n.name = f"node{i}"
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(mnn.ConversionError) as error:
        mnn.convert(path, tmp_path / "m.mnn")
    message = str(error.value)
    assert "com.what.Foo: 2 x ('node0', 'node1')" in message
    assert "com.what.Bar: 1 x ('node2')" in message
    assert "'wrap'" in message
    assert "node3" in message
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]


def test_unknown_operators_can_be_kept() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "com.what" : 1]> g (float[n] x) => (float[n] y) {
      y = com.what.Foo <k = 3, s = "text", v = [1.5]> (x) }"""
    op = convert(onnx.parser.parse_model(text), allow_custom_op=True).ops[0]
    assert (op.type, op["type"], op["engine"]) == ("Extra", "Foo", "ONNX")
    assert {a["key"] for a in op["attr"]} == {"k", "s", "v", "onnx_opset_version"}


def test_unused_nodes_need_no_conversion() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "com.what" : 1]> g (float[n] x) => (float[n] y) {
      a = com.what.Foo (x)  y = Abs (x) }"""
    assert [op.type for op in convert(onnx.parser.parse_model(text)).ops] == ["UnaryOp"]


def test_not_a_model_at_all(tmp_path: Path) -> None:
    for data in (b"", b"not a model", b"\x08\x07", bytes(range(256))):
        with pytest.raises(mnn.ModelFormatError):
            mnn.convert(data, converter="onnx")
    with pytest.raises(mnn.ConversionError, match="operator set 99"):
        convert(model(node("Abs", "x"), {"x": F([1])}, opset=99))


def test_interface_keeps_what_was_declared() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (int64[batch, 3] x, double[batch, n] z) => (bool[batch, 3] y) {
      a = Cast <to = 7> (z)  b = Slice (a, s, e, k)  y = Equal (x, b) }"""
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.extend(numpy_helper.from_array(np.array([v]), n) for n, v in (("s", 0), ("e", 3), ("k", 1)))
    proto.metadata_props.add(key="author", value="me")
    graph = convert(proto)
    assert [str(i) for i in graph.inputs] == ["x: int64[batch,3]", "z: float64[batch,n]"]
    assert str(graph.outputs[0]) == "y: bool[batch,3]"
    assert graph.metadata == {"author": "me"}


def test_initializers_that_are_inputs_too_are_constants() -> None:
    proto = model(node("Add", "x w"), {"x": F([1, 2]), "w": F([0, 0])}, constants={"w": F([3, 4])})
    assert [i.name for i in convert(proto).inputs] == ["x"]
    assert_same(ours(proto, {"x": F([1, 2])}), theirs(proto, {"x": F([1, 2])}))


def test_numbers_that_narrow_types_lack_are_told() -> None:
    for kind, fields in ((TensorProto.INT64, {"int64_data": [2**40]}), (TensorProto.DOUBLE, {"double_data": [1e300]})):
        proto = with_initializer(tensor(kind, [1], **fields), kind)
        proto.graph.node[0].CopyFrom(node("Add", "x w", "y"))
        proto.graph.input.append(helper.make_tensor_value_info("x", kind, [1]))
        with pytest.warns(mnn.NarrowingWarning, match="'w'"):
            mnn.convert(proto, converter="onnx")
    ends = helper.make_node("Slice", ["x", "start", "end"], ["y"])
    graph = helper.make_graph([ends], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["M"])],
                              [numpy_helper.from_array(np.array([0]), "start"),
                               numpy_helper.from_array(np.array([2**63 - 1]), "end")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mnn.convert(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), converter="onnx")
