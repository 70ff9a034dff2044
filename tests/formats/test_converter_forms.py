"""Forms that MNN's own converter writes, and forms that its engine takes for something else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import peers
import pytest

import mnn_core as mnn
from mnn_core import Graph, Op, TensorInfo
from mnn_core.formats.blobs import constant_of

F = np.dtype(np.float32)


@pytest.mark.parametrize("shape", [(2, 6, 2, 3), (1, 4, 5), (3, 3), (2, 9, 1, 1)])
def test_constants_in_blocks_of_channels(shape: tuple[int, ...]) -> None:
    """NC4HW4: blocks of 4 channels outermost, then batch and plane, the channels of a block last; zeros fill the last block."""
    value = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    n, c, area = shape[0], shape[1], int(np.prod(shape[2:]))
    stored = np.zeros((-(-c // 4), n, area, 4), np.float32)
    for channel in range(c):
        stored[channel // 4, :, :, channel % 4] = value[:, channel].reshape(n, area)
    blob = {"dims": shape, "dataFormat": "NC4HW4", "dataType": "DT_FLOAT", "float32s": stored.reshape(-1)}
    np.testing.assert_array_equal(constant_of(blob, "c"), value)
    with pytest.raises(mnn.ModelFormatError, match="needs"):
        constant_of({**blob, "float32s": stored.reshape(-1)[:-1]}, "c")


@pytest.mark.parametrize("swapped", [False, True])
def test_a_select_of_floats_and_an_integer_zero(swapped: bool) -> None:
    """As in a Trilu of its converter; other integers beside floats stay an error."""
    branches = ["zero", "x"] if swapped else ["x", "zero"]
    graph = Graph([Op("Select", ["c", *branches], ["y"])],
                  [TensorInfo("c", np.dtype(np.int32), (3,)), TensorInfo("x", F, (3,))], [TensorInfo("y", F, (3,))],
                  {"zero": np.zeros((), np.int32)})
    feeds = {"c": np.int32([1, 0, 5]), "x": np.float32([1.5, 2.5, 3.5])}
    want = [0, 2.5, 0] if swapped else [1.5, 0, 3.5]
    assert mnn.load(graph, backend="numpy").run(feeds)["y"].tolist() == want
    graph.constants["zero"] = np.ones((), np.int32)
    with pytest.raises(mnn.ShapeError, match="do not mix"):
        mnn.load(graph, backend="numpy").run(feeds)


def test_a_reshape_to_a_scalar_runs_in_real_mnn(tmp_path: Path) -> None:
    """It crashed there when the file held no dims."""
    graph = Graph([Op("Reshape", ["x"], ["r"], {"dims": ()}), Op("BinaryOp", ["r", "x"], ["y"], {"opType": "ADD"})],
                  [TensorInfo("x", F, (1, 1))], [TensorInfo("y", F, (1, 1))])
    mnn.load(graph, backend="numpy").save(tmp_path / "m.mnn")
    feed = {"x": np.float32([[1.5]])}
    assert peers.run(tmp_path / "m.mnn", [feed], ["y"], tmp_path)[0][0].tolist() == [[3.0]]


@pytest.mark.parametrize("kind", ["LSTM", "RNN"])
def test_lengths_are_not_given_to_real_mnn(kind: str, tmp_path: Path) -> None:
    """Its layers would take them for something else and return rubbish; an Extra op it does not run."""
    gates = 4 if kind == "LSTM" else 1
    rng = np.random.default_rng(1)
    constants = {n: rng.standard_normal(s).astype(np.float32) for n, s in
                 (("w", (1, gates * 3, 2)), ("r", (1, gates * 3, 3)), ("b", (1, gates * 3)), ("h", (1, 2, 3)))}
    states = ["h", "h"] if kind == "LSTM" else ["h"]
    graph = Graph([Op(kind, ["x", "w", "r", "b", *states, "n"], ["y"], {"outputCount": 3})],
                  [TensorInfo("x", F, (4, 2, 2)), TensorInfo("n", np.dtype(np.int32), (2,))],
                  [TensorInfo("y", F, (4, 1, 2, 3))], constants)
    feed = {"x": rng.standard_normal((4, 2, 2)).astype(np.float32), "n": np.int32([4, 2])}
    model = mnn.load(graph, backend="numpy")
    model.save(tmp_path / "m.mnn")
    np.testing.assert_array_equal(mnn.load(tmp_path / "m.mnn", backend="numpy").run(feed)["y"], model.run(feed)["y"])
    with pytest.raises(peers.PeerError, match="exit code"):
        peers.run(tmp_path / "m.mnn", [feed], ["y"], tmp_path)
