"""Every way in which a file can be wrong that someone thought of, each by name; see test_hostile.py for chance."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import flatbuffers
import fuzz_mnn
import models
import numpy as np
import pytest

from mnn_core import Graph, ModelFormatError, Op, TensorInfo
from mnn_core.formats import read_mnn, write_mnn
from mnn_core.formats.encoder import Encoder
from mnn_core.formats.tables import Decoder

F32 = np.dtype(np.float32)


def file_of(*nodes: dict[str, Any], tensors: tuple[str, ...] = ("x", "y"), **net: Any) -> bytes:
    """A file of an input "x" and of ops as their tables."""
    first = {"type": "Input", "name": "x", "outputIndexes": (0,), "main_type": "Input", "main": {"dims": (1, 4)}}
    return Encoder().finish("Net", {"oplists": (first, *nodes), "tensorName": tensors, **net})


def const(dims: tuple[int, ...], **blob: Any) -> dict[str, Any]:
    return {"type": "Const", "name": "y", "outputIndexes": (1,), "main_type": "Blob",
            "main": {"dims": dims, "dataType": "DT_FLOAT", **blob}}


def conv(common: dict[str, Any], **table: Any) -> dict[str, Any]:
    return {"type": "Convolution", "name": "c", "inputIndexes": (0,), "outputIndexes": (1,), "main_type": "Convolution2D",
            "main": {"common": {"outputCount": 4, **common}, **table}}


def packed(kind: int, buffer: bytes, **quan: Any) -> dict[str, Any]:
    return conv({}, quanParameter={"type": kind, "buffer": np.frombuffer(buffer, np.int8), **quan})


@pytest.mark.parametrize("make", [models.convolutions, models.branches, models.copies])
def test_every_prefix_is_refused(make):
    data = write_mnn(make())
    assert fuzz_mnn.read(data) is not None
    assert all(fuzz_mnn.read(data[:end]) is None for end in range(len(data)))


def test_damage_is_refused_or_harmless():
    rng, good = np.random.default_rng(1), fuzz_mnn.seeds()
    accepted = sum(fuzz_mnn.read(fuzz_mnn.damaged(good[i % len(good)], rng)) is not None for i in range(10_000))
    assert 100 < accepted < 9000  # the damage is neither nothing nor everything


@pytest.mark.parametrize("dims", [(2**31 - 1,) * 3, (65536, 65536), (2**16, 2**16, 2**16, 2**16), (-1, 4), (3,), (1,) * 40])
def test_constants_whose_data_do_not_fill_their_shape(dims):
    with pytest.raises(ModelFormatError, match="y: (impossible shape|a constant of shape)"):
        read_mnn(file_of(const(dims, float32s=np.ones(4, np.float32))))


@pytest.mark.parametrize(("node", "message"), [
    (conv({"kernelX": 3, "kernelY": 3}, weight=np.ones(5, np.float32), bias=np.ones(4, np.float32)), "stores 5 weights"),
    (conv({"kernelX": 2**30, "kernelY": 2**30}, weight=np.ones(4, np.float32)), "stores 4 weights"),
    (conv({"kernelX": -1}, weight=np.ones(4, np.float32)), "kernel"),
    (conv({"outputCount": 0}, weight=np.ones(4, np.float32)), "0 output channels"),
    (conv({}, weight=np.ones(4, np.float32), bias=np.ones(3, np.float32)), "3 biases for 4"),
    (conv({}), "has no weights"),
    (packed(1, b"\2\4\0\1\0"), "end after 5 bytes"),
    (packed(1, b"\2\xff\xff\xff\xff\2\0\1\0"), "do not fit in 1 bytes"),
    (packed(2, b"\2\xff\xff\xff\xff\1\0\0\0\2\0"), "4294836225 weights are said"),
    (packed(3, bytes(7)), "7 bytes"),
    (packed(4, bytes(4), alpha=np.ones(3, np.float32)), "3 scales do not divide 4"),
    (packed(4, bytes(4), alpha=np.ones(5, np.float32), readType=1), "5 scales do not divide 4"),
    (packed(9, bytes(4)), "unknown type 9"),
    (packed(0, b"", weightSize=2**30, index=np.ones(1, np.uint32), alpha=np.ones(1, np.float32)), "1073741824 weights are"),
    (packed(0, b"", weightSize=4, index=np.array([4], np.uint32), alpha=np.ones(1, np.float32)), "positions up to 4 of 4"),
])
def test_weights_that_do_not_fit(node, message):
    with pytest.raises(ModelFormatError, match=message):
        read_mnn(file_of(node))


def relu(source: int, target: int) -> dict[str, Any]:
    return {"type": "ReLU", "name": f"r{target}", "inputIndexes": (source,), "outputIndexes": (target,), "main_type": "Relu",
            "main": {}}


@pytest.mark.parametrize(("nodes", "message"), [
    ((relu(1, 2), relu(2, 1)), "reads '.' *, which no earlier op"),
    ((relu(0, 1), relu(0, 1)), "exists already"),
    ((relu(0, 0),), "exists already"),
    ((relu(7, 1),), "tensor 7 of 3"),
    ((relu(0, -1),), "tensor -1 of 3"),
    ((relu(0, 1), {"type": "Const", "name": "k", "main_type": "Blob", "main": {}}), "has no output"),
    (({"type": "Const", "outputIndexes": (1,), "main_type": "Relu", "main": {}},), "holds a Relu"),
    (({"type": "Raster", "inputIndexes": (0,), "outputIndexes": (1,), "main_type": "Extra",
       "main": {"attr": ({"key": "region", "i": 4},)}},), "must be lists of integers"),
])
def test_graphs_that_are_no_graphs(nodes, message):
    with pytest.raises(ModelFormatError, match=message):
        read_mnn(file_of(*nodes, tensors=("x", "y", "z")))


@pytest.mark.parametrize("text", ["", "[", "[" * 100_000, '{"inputs": {"x": {"dtype": "O"}}, "outputs": {}}', '{"inputs": 1}',
                                  '{"inputs": {}, "outputs": {"y": {"shape": [Infinity]}}}',
                                  '{"inputs": {}, "outputs": {"y": {"shape": [-3]}}}',
                                  '{"inputs": {"x": {"dim_names": [1]}}, "outputs": {}}'])
def test_damaged_interface(text):
    table = {"type": "Meta", "attr": ({"key": "mnn_core.interface", "s": text},)}
    info = {"buffer": np.frombuffer(Encoder().finish("Extra", table), np.int8)}
    with pytest.raises(ModelFormatError, match="mnn_core.interface"):
        read_mnn(file_of(relu(0, 1), extraInfo=info, outputName=("y",)))


def test_unknown_parameter_table():
    data = bytearray(file_of(relu(0, 1)))
    decoder = Decoder(bytes(data), "m")
    decoder.root("Net")
    for at in range(len(data)):  # the byte that says Relu
        if data[at] == models.parameter_number("Relu"):
            changed = bytes(data[:at] + b"\xfa" + data[at + 1 :])
            try:
                read_mnn(changed)
            except ModelFormatError as error:
                if "written by a newer one" in str(error):
                    return
    raise AssertionError("nothing was said of the unknown table")


@pytest.mark.parametrize("kind", ["LayerNorm", "Shape", "Reshape", "ArgMax", "ConvertTensor", "Pooling", "Concat"])
@pytest.mark.parametrize(("inputs", "outputs"), [((0,), ()), ((), (1,)), ((), ())])
def test_ops_without_tensors(kind, inputs, outputs):
    """Some are refused, some are not; nothing else happens."""
    fuzz_mnn.read(file_of({"type": kind, "inputIndexes": inputs, "outputIndexes": outputs}))


def nested(depth: int) -> bytes:
    """A file whose Const has an attribute in an attribute in an attribute."""
    attribute: dict[str, Any] = {"key": "k", "i": 1}
    for _ in range(depth):
        attribute = {"key": "k", "func": {"name": "f", "attr": (attribute,)}}
    return file_of({"type": "Extra", "inputIndexes": (0,), "outputIndexes": (1,), "main_type": "Extra",
                    "main": {"attr": (attribute,)}})


def aliased(count: int, inner: int) -> bytes:
    """A file whose list of ops names one op over and over; that op has a vector of integers."""
    b = flatbuffers.Builder(1024)
    vector = b.CreateNumpyVector(np.full(inner, 1_000_000, np.int32))
    b.StartObject(9)
    b.PrependUOffsetTRelativeSlot(0, vector, 0)
    op = b.EndObject()
    b.StartVector(4, count, 4)
    for _ in range(count):
        b.PrependUOffsetTRelative(op)
    ops = b.EndVector()
    b.StartObject(16)
    for slot in range(16):
        b.PrependUOffsetTRelativeSlot(slot, ops, 0)
    b.Finish(b.EndObject())
    return bytes(b.Output())


def test_nesting_is_bounded():
    with pytest.raises(ModelFormatError, match="more than 64 deep"):
        read_mnn(nested(80))


@pytest.mark.parametrize(("count", "inner"), [(100_000, 10), (1000, 100_000), (10, 200_000)])
def test_small_files_stay_small(count, inner):
    """One table or vector named many times costs no more than it honestly could."""
    code = ("import sys, resource, mnn_core.formats as f\n"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "try: f.read_mnn(sys.stdin.buffer.read())\n"
            "except f.reader.ModelFormatError as e: print(e, file=sys.stderr)\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)")
    data = aliased(count, inner)
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True, timeout=60)
    assert b"model:" in done.stderr
    assert int(done.stdout) < 200_000  # KiB


def external(tmp_path: Path, numbers: tuple[int, ...], where: str | None = None, name: str = "m.mnn") -> Path:
    node = const((2,), external=numbers)
    if where is not None:
        node["externalPath"] = where
    (tmp_path / name).write_bytes(file_of(node))
    return tmp_path / name


def test_external_weights_are_found(tmp_path):
    (tmp_path / "m.mnn.weight").write_bytes(b"?" + np.array([1, 2], np.float32).tobytes())
    np.testing.assert_array_equal(read_mnn(external(tmp_path, (1, 8))).constants["y"], [1, 2])
    (tmp_path / "other").write_bytes(np.array([3, 4], np.float32).tobytes())
    np.testing.assert_array_equal(read_mnn(external(tmp_path, (0, 8), "other")).constants["y"], [3, 4])


@pytest.mark.parametrize("numbers", [(0, 9), (-1, 8), (2**62, 8), (0, 2**62), (5, 8), (0, -8), (0, 4), (0, 7)])
def test_external_weights_outside_of_their_file(tmp_path, numbers):
    (tmp_path / "m.mnn.weight").write_bytes(bytes(8))
    with pytest.raises(ModelFormatError, match="m.mnn"):
        read_mnn(external(tmp_path, numbers))


def test_external_paths_stay_in_the_folder(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret").write_bytes(bytes(8))
    (inside / "link").symlink_to(tmp_path / "secret")
    (inside / "circle").symlink_to(inside / "circle")
    os.mkfifo(inside / "fifo")
    for where in ("../secret", "sub/../../secret", str(tmp_path / "secret"), "link", "circle", "fifo", "missing", ".",
                  "/dev/zero", "x\0y", "a" * 5000, "../inside/link"):
        with pytest.raises(ModelFormatError, match="m.mnn: "):
            read_mnn(external(inside, (0, 8), where))
    (inside / "m.mnn.weight").symlink_to(tmp_path / "secret")
    with pytest.raises(ModelFormatError, match="outside of the model's folder"):
        read_mnn(external(inside, (0, 8)))


def test_failed_writes_leave_nothing(tmp_path, monkeypatch):
    target = tmp_path / "m.mnn"
    target.write_bytes(b"old")
    graph = models.convolutions()
    with pytest.raises(OSError, match="missing"):
        write_mnn(graph, tmp_path / "missing" / "m.mnn")

    def full(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="disk full"):
        write_mnn(graph, target, save_external_data=True)
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["m.mnn"]


def test_numbers_that_no_field_holds():
    graph = Graph([Op("ReLU", ["x"], ["y"], {"slope": "steep"})], [TensorInfo("x", F32, (1,))], [TensorInfo("y", F32, None)])
    with pytest.raises(ValueError, match=r"Relu.slope cannot hold 'steep'|Relu.slope is 'steep'"):
        write_mnn(graph)
