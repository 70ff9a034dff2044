"""Every example of every op: it survives saving, and damage to its file is noticed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import numpy as np
import pytest

import mnn_core as mnn
from mnn_core import Graph, Op, Region, TensorInfo
from mnn_core.formats import read_json, read_mnn, write_json, write_mnn

conformance = importlib.import_module("mnn_core.testing.conformance")
F32 = np.dtype(np.float32)


def cases() -> Iterator[tuple[str, Graph, dict[str, np.ndarray], tuple[np.ndarray, ...]]]:
    """(name, graph of the one op, its inputs, its results) of each example whose results are not random."""
    for name, definition, example in conformance.examples():
        if not definition.pure:
            continue
        arrays = conformance._arrays(example)
        op = Op(definition.type, [""] * len(arrays), [], dict(example.attrs), name="example")
        results = definition.compute(op, *arrays)
        results = results if isinstance(results, tuple) else (results,)
        graph = conformance._graph(definition, example, arrays, len(results))
        yield name, graph, {i.name: arrays[int(i.name[1:])] for i in graph.inputs}, results


@pytest.mark.parametrize("again", [lambda g: read_mnn(write_mnn(g)), lambda g: read_json(write_json(g))], ids=["mnn", "json"])
def test_ops_survive_saving(again) -> None:
    for name, graph, feed, results in cases():
        after = again(graph)
        found = mnn.load(after, backend="numpy").run(feed)
        for want, got in zip(results, found.values()):
            assert got.dtype == want.dtype, name
            finite = want[np.isfinite(want)]
            tolerance = 3e-7 * float(np.abs(finite).max(initial=1)) if want.dtype.kind == "f" else 0  # attributes are rounded
            np.testing.assert_allclose(got, want, rtol=0, atol=tolerance, err_msg=name)
        twice = again(after)
        assert [(o.type, o.attrs.keys()) for o in twice.ops] == [(o.type, o.attrs.keys()) for o in after.ops], name


def test_sources_of_rasters_stay_single() -> None:
    parts = (Region(0, (3,), 0, (1,), 0, (1,)), Region(1, (2,), 0, (1,), 3, (1,)), Region(0, (3,), 2, (-1,), 5, (1,)))
    graph = Graph([Op("Raster", ["x", "y"], ["z"], {"regions": parts, "shape": (8,), "fill": None})],
                  [TensorInfo("x", F32, (3,)), TensorInfo("y", F32, (2,))], [TensorInfo("z", F32, (8,))])
    (op,) = read_mnn(write_mnn(graph)).ops
    assert op.inputs == ["x", "y"]
    assert [r.source for r in op["regions"]] == [0, 1, 0]


def test_rasters_are_cut_along_their_shortest_dimension() -> None:
    region = Region(0, (1000, 2, 5, 7), 0, (70, 35, 7, 1), 0, (70, 35, 7, 1))
    graph = Graph([Op("Raster", ["x"], ["y"], {"regions": (region,), "shape": (70000,), "fill": None})],
                  [TensorInfo("x", F32, (70000,))], [TensorInfo("y", F32, (70000,))])
    after = read_mnn(write_mnn(graph))
    assert [r.size for r in after.ops[0]["regions"]] == [(1000, 5, 7)] * 2
    x = np.arange(70000, dtype=np.float32)
    np.testing.assert_array_equal(mnn.load(after, backend="numpy").run({"x": x})["y"], x)


@pytest.mark.parametrize(("op", "shape"), [
    (Op("Slice", ["x"], ["y", "z"], {"axis": 1, "slicePoints": (2**31 - 1,), "sourceType": "TENSORFLOW"}), (1, 2, 4, 4)),
    (Op("Padding", ["x", "pads"], ["y"], {"mode": "REFLECT"}), (1, 2, 4, 4)),
], ids=["slice", "padding"])
def test_huge_numbers_are_refused_at_once(op: Op, shape: tuple[int, ...]) -> None:
    graph = Graph([op], [TensorInfo("x", F32, shape)], [TensorInfo("y", F32, None)],
                  {"pads": np.full(8, 2**31 - 9, np.int32)} if "pads" in op.inputs else {})
    with pytest.raises(mnn.MNNError, match="y"):
        mnn.load(graph, backend="numpy").run({"x": np.zeros(shape, np.float32)})


@pytest.mark.parametrize("kind", ["MAXPOOL", "AVEPOOL"])
def test_kernels_far_larger_than_the_image(kind: str) -> None:
    op = Op("Pooling", ["x"], ["y"], {"kernelX": 2**30, "kernelY": 2**30, "padType": "SAME", "type": kind})
    x = np.random.default_rng(0).standard_normal((1, 2, 3, 4)).astype(np.float32)
    graph = Graph([op], [TensorInfo("x", F32, x.shape)], [TensorInfo("y", F32, None)])
    y = mnn.load(graph, backend="numpy").run({"x": x})["y"]
    whole = x.max((2, 3), keepdims=True) if kind == "MAXPOOL" else x.mean((2, 3), keepdims=True)
    np.testing.assert_allclose(y, np.broadcast_to(whole, y.shape), rtol=1e-6)
