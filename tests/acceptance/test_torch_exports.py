"""Networks exported from PyTorch by both exporters: converted, saved, loaded and run, they give what onnxruntime gives."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
import peers
import pytest
import torch_exports as exports

import mnn_core as mnn

TOLERANCE = 1e-4  # of the largest output
HALF = 1e-2  # for networks in 16-bit floats, which onnxruntime rounds to after each node


@functools.cache
def expected(name: str) -> list[list[np.ndarray]]:
    """What onnxruntime gives for each of a network's feeds."""
    name = exports.SAME.get(name, name)
    return [session(exports.path(name)).run(None, feed) for feed in exports.feeds(name)]


def session(path: Path | bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def distance(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Largest difference, of the largest value; inf for other shapes."""
    if ours.shape != theirs.shape:
        return float("inf")
    scale = max(float(np.abs(theirs).max(initial=0)), 1e-6)
    return float(np.abs(ours.astype(np.float64) - theirs).max(initial=0)) / scale


def run(model: mnn.Model, feed: exports.Feed) -> dict[str, np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mnn.PlacementWarning)
        return model.run(feed)


def check(model: mnn.Model, feeds: Iterable[exports.Feed], wanted: Iterable[Sequence[np.ndarray]], tolerance: float) -> None:
    for feed, want in zip(feeds, wanted, strict=True):
        got = run(model, feed)
        for (key, ours), theirs in zip(got.items(), want, strict=True):
            assert ours.dtype == theirs.dtype, key
            assert distance(ours, theirs) <= tolerance, (key, ours.shape, theirs.shape, distance(ours, theirs))


@pytest.mark.parametrize("name", exports.NAMES)
def test_export_agrees_with_onnxruntime(name: str, tmp_path: Path) -> None:
    """Converted at once, and saved and loaded."""
    graph = mnn.convert(exports.path(name), tmp_path / "saved.mnn")
    for model in (mnn.load(graph, backend="numpy"), mnn.load(tmp_path / "saved.mnn", backend="cpu-x86")):
        check(model, exports.feeds(name), expected(name), HALF if name.endswith("half") else TOLERANCE)


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("name", [n for n in exports.NAMES if n.endswith(("ts17", "dyn18"))])
def test_other_levels_of_optimisation(name: str, level: int) -> None:
    model = mnn.load(mnn.convert(exports.path(name), optimize_level=level), backend="cpu-x86")
    check(model, exports.feeds(name), expected(name), TOLERANCE)


#: Kinds of network that the real MNN crashes on when it is given a second size (pooling in 3-D): it runs once for each feed.
ONE_SIZE = ("styler", "video")
#: What the real MNN cannot do with our files: start of a name -> what it says, and why.
CANNOT = {
    "packed": "Can't compute size for 512",  # sequence lengths, stored as Extra ops
    "rnn_states_ts": "Can't compute size for 512",  # activation relu, likewise
    "script_ts17": "Can't compute size for 512",  # sequences of tensors, likewise
    "video": "wrong by",  # pooling in 3-D of batches
    "warp": "wrong by",  # grid_sample with reflection
}
#: What the real MNN does not convert itself, or gets wrong then: start of a name -> what it says.
CANNOT_ITSELF = {
    **dict.fromkeys(("bert_fused", "vit_fused", "decoder_fused", "vit_dyn23", "decoder_dyn23", "translator_dyn23", "control",
                     "styler_dyn"), "These Op Not Support"),
    "detector_dyn": "Not support 1 input for Max op",
    **dict.fromkeys(("lstm_states", "script", "decoder_raw"), "Broad cast error"),
    **dict.fromkeys(("packed", "rnn_states_ts", "styler_ts", "video", "warp", "decoder_half", "index_dyn", "index_ts17",
                     "index_raw"), "wrong by"),
}


@dataclass
class Peer:
    """What the real MNN made of our files ("ours") and of its own conversions ("own"): results of each feed, or what failed."""

    folder: Path
    results: dict[tuple[str, str], list[list[np.ndarray]] | str]

    def verdict(self, kind: str, name: str) -> str:
        """"" for right results; else what is wrong."""
        got = self.results[kind, name]
        if isinstance(got, str):
            return got
        worst = max(distance(a, b) for feed, want in zip(got, expected(name), strict=True)
                    for a, b in zip(feed, want, strict=True))
        return "" if worst <= (HALF if name.endswith("half") else 1e-3) else f"wrong by {worst}"


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Peer:
    folder = tmp_path_factory.mktemp("peer")
    for name in exports.NAMES:
        mnn.convert(exports.path(name), folder / f"{name}.ours.mnn")
    failed = peers.convert_many({exports.path(n): folder / f"{n}.own.mnn" for n in exports.NAMES}, folder)
    found: dict[tuple[str, str], list[list[np.ndarray]] | str] = {("own", n): t for n, t in zip(exports.NAMES, failed) if t}
    jobs, about = [], []
    for name in exports.NAMES:
        outputs, feeds = [o.name for o in session(exports.path(name)).get_outputs()], exports.feeds(name)
        parts = [[feed] for feed in feeds] if name.startswith(ONE_SIZE) else [feeds]
        for kind in ("ours", "own"):
            if (kind, name) not in found:
                jobs += [(folder / f"{name}.{kind}.mnn", part, outputs) for part in parts]
                about += [(kind, name)] * len(parts)
    for key, got in zip(about, peers.run_many(jobs, folder)):
        before = found.setdefault(key, [])
        found[key] = before if isinstance(before, str) else got if isinstance(got, str) else before + got
    return Peer(folder, found)


@pytest.mark.parametrize("name", exports.NAMES)
def test_our_file_runs_in_real_mnn(name: str, peer: Peer) -> None:
    said = next((text for start, text in CANNOT.items() if name.startswith(start)), None)
    verdict = peer.verdict("ours", name)
    assert said in verdict if said else not verdict


@pytest.mark.parametrize("name", exports.NAMES)
def test_its_own_conversion_runs_here(name: str, peer: Peer) -> None:
    """Where it is right there, it is right here; where it is wrong, both are wrong alike, or only the real MNN is."""
    said = next((text for start, text in CANNOT_ITSELF.items() if name.startswith(start)), None)
    verdict = peer.verdict("own", name)
    assert said in verdict if said else not verdict
    if not verdict:
        model, names = mnn.load(peer.folder / f"{name}.own.mnn"), [o.name for o in session(exports.path(name)).get_outputs()]
        for feed, want in zip(exports.feeds(name), expected(name)):
            stored = {n: v.astype(np.float32) if v.dtype == np.float16 else v for n, v in feed.items()}
            got = run(model, stored)
            assert max(distance(got[n], w) for n, w in zip(names, want)) <= (HALF if name.endswith("half") else TOLERANCE)
