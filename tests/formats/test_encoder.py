"""The FlatBuffer encoder against the flatbuffers package, and hostile JSON of MNN's form."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from flatbuffers import number_types
from flatbuffers.table import Table
from samples import small

from mnn_core.errors import GraphError, ModelFormatError
from mnn_core.formats import encoder, read_json, write_mnn
from mnn_core.formats.encoder import Encoder
from mnn_core.formats.mnn_json import dump
from mnn_core.formats.tables import Decoder
from mnn_core.formats.whole import release
from mnn_core.ir.schema import TABLES

SLOTS = {table: {f.name: 4 + 2 * f.slot for f in TABLES[table]} for table in ("Blob", "Net", "Op")}


def root(data: bytes) -> Table:
    return Table(bytearray(data), int.from_bytes(data[:4], "little"))


def test_another_reader_finds_what_was_written() -> None:
    values = np.random.default_rng(0).standard_normal(5000).astype(np.float32)
    wide = np.array([2**40, -3], np.int64)
    data = Encoder().finish("Blob", {"dims": (50, 100), "dataType": "DT_FLOAT", "float32s": values, "int64s": wide,
                                     "strings": ("a", "caf\u00e9", "a")})
    table, slots = root(data), SLOTS["Blob"]
    at = table.Offset(slots["float32s"])
    np.testing.assert_array_equal(table.GetVectorAsNumpy(number_types.Float32Flags, at), values)
    np.testing.assert_array_equal(table.GetVectorAsNumpy(number_types.Int64Flags, table.Offset(slots["int64s"])), wide)
    np.testing.assert_array_equal(table.GetVectorAsNumpy(number_types.Int32Flags, table.Offset(slots["dims"])), [50, 100])
    place = table.Vector(table.Offset(slots["strings"]))
    assert [table.String(place + 4 * i) for i in range(3)] == [b"a", "caf\u00e9".encode(), b"a"]
    assert table.Vector(table.Offset(slots["int64s"])) % 8 == 0  # aligned from the start of the file
    assert len(data) % 8 == 0


def test_large_vectors_are_not_copied() -> None:
    values = np.zeros(10_000, np.float32)
    chunks = Encoder().chunks("Blob", {"float32s": values})
    (large,) = [c for c in chunks if isinstance(c, memoryview)]
    assert np.shares_memory(np.frombuffer(large, np.float32), values)


def test_files_beyond_2_gib_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "MAX_BYTES", 10_000)
    with pytest.raises(GraphError, match="save it with external weights"):
        Encoder().finish("Blob", {"float32s": np.zeros(10_000, np.float32)})


@pytest.mark.parametrize("seed", range(20))
def test_damaged_json_is_refused(seed: int) -> None:
    rng = random.Random(seed)
    whole = dump(write_mnn(small()))
    assert write_mnn(read_json(whole)) is not None
    wrong = [None, -1, 2**40, "x", [], {}, [1, 2], 1.5, True, {"a": 1}, ["x"], 10**30]
    for _ in range(20):
        data = json.loads(whole)
        at = data
        while isinstance(at, (dict, list)) and at:
            key = rng.choice(list(at) if isinstance(at, dict) else range(len(at)))
            if rng.random() < 0.4 or not isinstance(at[key], (dict, list)) or not at[key]:
                at[key] = rng.choice(wrong)
                break
            at = at[key]
        try:
            read_json(json.dumps(data))
        except ModelFormatError:
            continue


def test_json_holds_what_the_file_holds() -> None:
    data = write_mnn(small())
    again = json.loads(dump(data))
    net = Decoder(data, "m").root("Net")
    assert [n["type"] for n in again["oplists"]] == [n["type"] for n in net["oplists"]]
    floats = [n["main"]["float32s"] for n in again["oplists"] if "float32s" in n.get("main", {})]
    for got, node in zip(floats, [n for n in net["oplists"] if "float32s" in n.get("main", {})]):
        np.testing.assert_array_equal(np.float32(got), node["main"]["float32s"])


def test_arrays_of_users_are_left_alone(tmp_path: Path) -> None:
    """Releasing the pages of a private map would lose what was written to it."""
    np.zeros(5000, np.float32).tofile(tmp_path / "w.bin")
    own = np.memmap(tmp_path / "w.bin", np.float32, "c")
    own[:] = 7
    release(own[:])
    assert (own == 7).all()
    mapped = np.memmap(tmp_path / "w.bin", np.float32, "r")
    release(mapped[10:])
    assert (mapped == 0).all()
