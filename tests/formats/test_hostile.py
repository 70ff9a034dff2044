"""Any file is hostile: damaged files raise ModelFormatError, quickly and without much memory, and nothing else."""

from __future__ import annotations

import contextlib
import os
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from samples import feed, small

import mnn_core as mnn
from mnn_core.formats import read_mnn, write_mnn


@pytest.fixture(scope="module")
def good() -> bytes:
    return write_mnn(small())


def load_and_run(data: bytes) -> None:
    """What a user would do with a file: it works, or it raises an MNNError."""
    graph = read_mnn(data)
    with contextlib.suppress(mnn.MNNError):
        model = mnn.load(graph, backend="numpy")
        model.prepare({"x": feed()["x"].shape})
        if model.memory().arena < 50e6:  # padding of 65,537 is valid, and takes its time
            model.run(feed())


def test_every_prefix_is_refused(good: bytes) -> None:
    for length in range(len(good)):
        with pytest.raises(mnn.ModelFormatError):
            read_mnn(good[:length])


def test_random_byte_flips_raise_only_format_errors(good: bytes) -> None:
    rng = np.random.default_rng(0)
    read = 0
    for _ in range(10_000):
        data = bytearray(good)
        for at in rng.integers(0, len(data), rng.integers(1, 4)):
            data[at] ^= 1 << int(rng.integers(8))
        try:
            graph = read_mnn(bytes(data))
            for constant in graph.constants.values():
                if not isinstance(constant, np.ndarray):
                    constant.decode()
            read += 1
        except mnn.ModelFormatError:
            continue
    assert 0 < read < 10_000


def test_flipped_files_that_load_run_or_raise_our_errors(good: bytes) -> None:
    rng = np.random.default_rng(1)
    for _ in range(700):
        data = bytearray(good)
        data[int(rng.integers(len(data)))] ^= int(rng.integers(1, 256))
        try:
            load_and_run(bytes(data))
        except mnn.ModelFormatError:
            continue


def test_memory_of_a_refused_file_is_bounded(good: bytes) -> None:
    tracemalloc.start()
    try:
        for at in range(0, len(good) - 4, 16):
            data = bytearray(good)
            data[at : at + 4] = b"\xff\xff\xff\x7f"
            try:
                read_mnn(bytes(data))
            except mnn.ModelFormatError:
                continue
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


def test_vectors_that_contain_themselves_end() -> None:
    """A table whose vector of tables points at the table again, many times over."""
    count = 2000
    # One field (slot 10: subgraphs), whose vector has `count` offsets to a SubGraphProto that is the same table.
    vtable = struct.pack("<HH", 4 + 2 * 11, 8) + b"\0" * 20 + struct.pack("<H", 4)
    table_at = 4 + len(vtable)
    vector_at = table_at + 8
    body = struct.pack("<i", table_at - 4) + struct.pack("<I", vector_at - (table_at + 4))
    offsets = b"".join(struct.pack("<I", (table_at - (vector_at + 4 + 4 * i)) & 0xFFFFFFFF) for i in range(count))
    data = struct.pack("<I", table_at) + vtable + body + struct.pack("<I", count) + offsets
    with pytest.raises(mnn.ModelFormatError):
        read_mnn(data)


def test_weights_shorter_than_their_shape() -> None:
    graph = small()
    data = write_mnn(graph)
    # outputCount 5 -> 7: the 135 weights do not fill 7 channels of 3x3 kernels.
    found = read_mnn(data)
    assert found.constants["conv.weight"].shape == (5, 3, 3, 3)
    table = {"kernelX": 3, "kernelY": 3, "outputCount": 7, "weight": graph.constants["w"].reshape(-1), "bias": np.zeros(7)}
    from mnn_core.formats.encoder import Encoder

    common = {k: table.pop(k) for k in ("kernelX", "kernelY", "outputCount")}
    net = {"tensorName": ("x", "y"), "oplists": (
        {"type": "Input", "outputIndexes": (0,), "main_type": "Input", "main": {"dims": (1, 3, 8, 8)}},
        {"type": "Convolution", "inputIndexes": (0,), "outputIndexes": (1,), "main_type": "Convolution2D",
         "main": {"common": common, **table}})}
    with pytest.raises(mnn.ModelFormatError, match="135 weights.*7 output channels"):
        read_mnn(Encoder().finish("Net", net))


@pytest.mark.parametrize("blob", [
    {"dims": (2**30, 2**30), "float32s": np.ones(4, np.float32)},
    {"dims": (-1, 4), "float32s": np.ones(4, np.float32)},
    {"dims": (5,), "float32s": np.ones(4, np.float32)},
    {"dims": (0,), "float32s": np.ones(4, np.float32)},
    {"dims": (3,), "dataType": "DT_STRING", "strings": ("a", "b")},
])
def test_constants_that_do_not_fill_their_shape(blob: dict) -> None:
    from mnn_core.formats.encoder import Encoder

    net = {"tensorName": ("c",), "oplists": ({"type": "Const", "outputIndexes": (0,), "main_type": "Blob", "main": blob},)}
    with pytest.raises(mnn.ModelFormatError, match="c: "):
        read_mnn(Encoder().finish("Net", net))


@pytest.mark.parametrize(("node", "text"), [
    ({"type": "ReLU", "inputIndexes": (0,), "outputIndexes": (9,)}, "tensor 9 of 2"),
    ({"type": "ReLU", "inputIndexes": (-7,), "outputIndexes": (1,)}, "tensor -7 of 2"),
    ({"type": "ReLU", "inputIndexes": (1,), "outputIndexes": (1,)}, "no earlier op"),
    ({"type": "ReLU", "inputIndexes": (0,), "outputIndexes": (0,)}, "exists already"),
])
def test_graphs_that_do_not_fit_together(node: dict, text: str) -> None:
    from mnn_core.formats.encoder import Encoder

    net = {"tensorName": ("x", "y"), "oplists": (
        {"type": "Input", "outputIndexes": (0,), "main_type": "Input", "main": {"dims": (1, 3)}}, node)}
    with pytest.raises(mnn.ModelFormatError, match=text):
        read_mnn(Encoder().finish("Net", net))


def external_model(folder: Path) -> Path:
    write_mnn(small(), folder / "m.mnn", save_external_data=True)
    return folder / "m.mnn"


def test_external_weights(tmp_path: Path) -> None:
    path = external_model(tmp_path)
    expected = mnn.load(small(), backend="numpy").run(feed())["y"]
    np.testing.assert_array_equal(mnn.load(path, backend="numpy").run(feed())["y"], expected)
    with pytest.raises(mnn.ModelFormatError, match="not from bytes"):
        read_mnn(path.read_bytes())
    weights = tmp_path / "m.mnn.weight"
    data = weights.read_bytes()
    weights.write_bytes(data[:-1])
    with pytest.raises(mnn.ModelFormatError, match="outside of their file"):
        read_mnn(path)
    weights.unlink()
    with pytest.raises(mnn.ModelFormatError, match="external weights .* are not there"):
        read_mnn(path)


def test_external_weights_must_stay_in_the_folder(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    path = external_model(inside)
    weights = inside / "m.mnn.weight"
    os.replace(weights, tmp_path / "elsewhere")
    weights.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(mnn.ModelFormatError, match="outside of the model's folder"):
        read_mnn(path)


@pytest.mark.parametrize("where", ["../elsewhere", "/etc/passwd", "sub/../../elsewhere"])
def test_paths_of_external_weights_in_files(tmp_path: Path, where: str) -> None:
    from mnn_core.formats.encoder import Encoder

    (tmp_path / "elsewhere").write_bytes(b"\0" * 64)
    inside = tmp_path / "inside"
    inside.mkdir()
    blob = {"dims": (4,), "external": (0, 16)}
    net = {"tensorName": ("c",), "oplists": (
        {"type": "Const", "outputIndexes": (0,), "main_type": "Blob", "main": blob, "externalPath": where},)}
    (inside / "m.mnn").write_bytes(Encoder().finish("Net", net))
    with pytest.raises(mnn.ModelFormatError, match="outside of the model's folder"):
        read_mnn(inside / "m.mnn")


def test_files_that_are_no_models(tmp_path: Path) -> None:
    for content in (b"", b"x", b"\0" * 64, os.urandom(4096), b'{"a": 1}'):
        (tmp_path / "m.mnn").write_bytes(content)
        with pytest.raises(mnn.ModelFormatError, match=r"m\.mnn"):
            read_mnn(tmp_path / "m.mnn")
    with pytest.raises(FileNotFoundError):
        read_mnn(tmp_path / "absent.mnn")


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    graph = small()
    graph.ops.append(mnn.Op("ReLU", ["nowhere"], ["z"]))
    with pytest.raises(mnn.GraphError, match="nowhere"):
        write_mnn(graph, tmp_path / "m.mnn")
    assert list(tmp_path.iterdir()) == []
