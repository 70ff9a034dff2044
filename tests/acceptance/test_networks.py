"""Trained networks and the zoo: converted, saved, loaded and run, they give what onnxruntime gives."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import networks
import numpy as np
import onnxruntime
import pytest

import mnn_core as mnn

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import zoo

TOLERANCE = 1e-4  # of the largest output
NAMES = [*networks.NETWORKS, *(f"zoo/{name}" for name in zoo.MODELS)]


@functools.cache
def source(name: str, folder: Path) -> Path:
    if name.startswith("zoo/"):
        return Path(zoo.build(name[4:], folder))
    return networks.network(name)


def feeds(name: str) -> list[dict[str, np.ndarray]]:
    return [{"input": zoo.sample_input(name[4:])}] if name.startswith("zoo/") else networks.feeds(name)


@functools.cache
def expected(name: str, folder: Path) -> list[list[np.ndarray]]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(source(name, folder)), options, providers=["CPUExecutionProvider"])
    return [session.run(None, feed) for feed in feeds(name)]


@functools.cache
def converted(name: str, folder: Path) -> Path:
    target = folder / f"{name.replace('/', '_')}.mnn"
    mnn.convert(source(name, folder), target)
    return target


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("networks")


@pytest.mark.parametrize("backend", ["cpu-x86", "numpy"])
@pytest.mark.parametrize("name", NAMES)
def test_network_agrees_with_onnxruntime(name: str, backend: str, folder: Path) -> None:
    model = mnn.load(converted(name, folder), backend=backend, strict=True)
    for feed, want in zip(feeds(name), expected(name, folder)):
        got = model.run(feed)
        assert len(got) == len(want)
        for (key, ours), theirs in zip(got.items(), want):
            assert ours.dtype == theirs.dtype, key
            assert ours.shape == theirs.shape, key
            error = np.abs(ours.astype(np.float64) - theirs).max() / max(np.abs(theirs).max(), 1e-6)
            assert error <= TOLERANCE, f"{key}: {error:.2e}"
