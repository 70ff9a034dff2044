"""What is written is read back the same: graphs, attributes, metadata, unknown ops; in .mnn and in JSON."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import peers
import pytest
from samples import feed, small

import mnn_core as mnn
from mnn_core import Graph, Op, Region, TensorInfo
from mnn_core.formats import QuantizedWeight, read_json, read_mnn, write_json, write_mnn

F32 = np.dtype(np.float32)


def results(graph: Graph) -> dict[str, np.ndarray]:
    return mnn.load(graph, backend="numpy").run(feed())


@pytest.mark.parametrize("again", [lambda g: read_mnn(write_mnn(g)), lambda g: read_json(write_json(g)),
                                   lambda g: read_json(write_json(read_mnn(write_mnn(g))))], ids=["mnn", "json", "both"])
def test_everything_survives(again) -> None:
    before, after = small(), again(small())
    assert after.metadata == before.metadata
    assert after.inputs == before.inputs
    assert [(o.name, o.dtype) for o in after.outputs] == [(o.name, o.dtype) for o in before.outputs]
    assert set(after.subgraphs) == {"then", "else"}
    assert any(isinstance(c, QuantizedWeight) for c in after.constants.values())
    want, got = results(before), results(after)
    for name in want:
        assert got[name].dtype == want[name].dtype
        np.testing.assert_array_equal(got[name], want[name])


def test_real_mnn_gives_the_same(tmp_path: Path) -> None:
    write_mnn(small(), tmp_path / "m.mnn")
    want = results(small())
    ((y, s),) = peers.run(tmp_path / "m.mnn", [feed()], ["y", "s"], tmp_path)
    np.testing.assert_allclose(y, want["y"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(s, want["s"], rtol=1e-4, atol=1e-5)


def test_identity_and_text_of_a_file_are_kept() -> None:
    graph = small()
    graph.extra.update(mnn_uuid="a-b-c", bizCode="shop", sourceType="TENSORFLOW")
    after = read_mnn(write_mnn(graph))
    assert {k: after.extra[k] for k in ("mnn_uuid", "bizCode", "sourceType")} == {
        "mnn_uuid": "a-b-c", "bizCode": "shop", "sourceType": "TENSORFLOW"}
    assert read_mnn(write_mnn(after)).extra == after.extra


def test_unknown_ops_survive_and_only_running_them_is_an_error(tmp_path: Path) -> None:
    graph = Graph(ops=[Op("Unknown<9999>", ["x"], ["a"], {"axis": 3}, "strange", "Axis"),
                       Op("Extra", ["a"], ["b"], {"type": "Thing", "engine": "Other", "attr": ({"key": "k", "i": 7},)}, "odd",
                          "Extra"),
                       Op("Svd", ["b"], ["c"], {}, "known_to_mnn_only")],
                  inputs=[TensorInfo("x", F32, (2,))], outputs=[TensorInfo("c", F32, (2,))])
    after = read_mnn(write_mnn(read_mnn(write_mnn(graph))))
    assert [(op.type, op.name) for op in after.ops] == [
        ("Unknown<9999>", "strange"), ("Extra", "odd"), ("Svd", "known_to_mnn_only")]
    assert after.ops[0].attrs["axis"] == 3
    assert after.ops[1].attrs["attr"][0]["i"] == 7
    with pytest.raises(mnn.UnsupportedOpError, match="strange"):
        mnn.load(after, backend="numpy").run({"x": np.ones(2, np.float32)})


def test_custom_attributes_of_every_kind() -> None:
    values = {"i": -5, "f": 0.5, "s": "größe", "b": True, "ints": (1, -2), "floats": (0.25, 2.0), "texts": ("a", ""),
              "array": np.arange(6, dtype=np.int32).reshape(2, 3), "big": 2**40}
    mnn.register_op("test.Kinds", attrs=dict.fromkeys(values))(lambda op, x: x)
    graph = Graph(ops=[Op("test.Kinds", ["x"], ["y"], dict(values))], inputs=[TensorInfo("x", F32, (2,))],
                  outputs=[TensorInfo("y", F32, (2,))])
    (op,) = read_mnn(write_mnn(graph)).ops
    assert op.type == "test.Kinds"
    np.testing.assert_array_equal(op.attrs.pop("array"), values.pop("array"))
    assert int(op.attrs.pop("big")) == values.pop("big")
    assert op.attrs == values


def test_rasters_with_many_dimensions(tmp_path: Path) -> None:
    x = np.arange(48, dtype=np.float32).reshape(2, 2, 3, 4)
    region = Region(0, (2, 3, 4, 2), 0, (24, 4, 1, 12), 0, (24, 8, 2, 1))
    graph = Graph(ops=[Op("Raster", ["x"], ["y"], {"regions": (region,), "shape": (2, 3, 4, 2), "fill": None})],
                  inputs=[TensorInfo("x", F32, (2, 2, 3, 4))], outputs=[TensorInfo("y", F32, (2, 3, 4, 2))])
    write_mnn(graph, tmp_path / "m.mnn")
    expected = x.transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(mnn.load(tmp_path / "m.mnn", backend="numpy").run({"x": x})["y"], expected)
    ((theirs,),) = peers.run(tmp_path / "m.mnn", [{"x": x}], ["y"], tmp_path)
    np.testing.assert_array_equal(theirs, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64, np.int32, np.uint8, np.int8, np.bool_])
def test_declared_types_come_back(dtype: type) -> None:
    graph = Graph(ops=[Op("Identity", ["x"], ["y"])], inputs=[TensorInfo("x", np.dtype(dtype), (2, None), ("rows", None))],
                  outputs=[TensorInfo("y", np.dtype(dtype), (2, None))])
    model = mnn.load(write_mnn(graph), backend="numpy")
    x = np.array([[1, 0, 1]] * 2).astype(dtype)
    y = model.run({"x": x})["y"]
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, x)


def test_json_that_is_none_is_refused(tmp_path: Path) -> None:
    for text in ("", "[]", "{}", '{"ops": 3}', "\0"):
        (tmp_path / "m.json").write_text(text)
        with pytest.raises(mnn.ModelFormatError, match=r"m\.json"):
            read_json(tmp_path / "m.json")
