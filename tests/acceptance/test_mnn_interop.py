"""Both directions with the real MNN 3.6.1: its files run here, our files run there, with the same results."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import peers
import pytest
from test_networks import NAMES, converted, expected, feeds, source

import mnn_core as mnn

TOLERANCE = 1e-3  # of the largest output
VARIANTS = {
    "plain": [],
    "fp16": ["--fp16"],
    "int8": ["--weightQuantBits", "8"],
    "int4-block32": ["--weightQuantBits", "4", "--weightQuantBlock", "32", "--weightQuantAsymmetric"],
    "external": ["--saveExternalData"],
}
#: Networks on which the real MNN is wrong (it differs from onnxruntime by more than rounding): there, right is what
#: onnxruntime says, and only the float variants can be checked.
WRONG_THERE = {"vad_sequence": "an LSTM with an initial state and a dynamic length"}


def names_of(name: str, folder: Path) -> list[str]:
    return [o.name for o in mnn.load(converted(name, folder), backend="numpy").outputs]


@functools.cache
def real_files(name: str, folder: Path) -> dict[str, Path]:
    targets = {v: folder / f"{name.replace('/', '_')}.{v}.real.mnn" for v in VARIANTS}
    peers.convert(source(name, folder), {targets[v]: options for v, options in VARIANTS.items()})
    return targets


def assert_close(ours: np.ndarray, theirs: np.ndarray, what: str) -> None:
    assert ours.shape == theirs.shape, what
    scale = max(float(np.abs(theirs).max(initial=0)), 1e-6)
    error = float(np.abs(ours.astype(np.float64) - theirs).max(initial=0)) / scale
    assert error <= TOLERANCE, f"{what}: {error:.2e}"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("interop")


@pytest.mark.parametrize("name", NAMES)
def test_files_of_real_mnn_run_here(name: str, folder: Path, tmp_path: Path) -> None:
    for variant, path in real_files(name, folder).items():
        model = mnn.load(path)
        if name not in WRONG_THERE:
            wanted = peers.run(path, feeds(name), names_of(name, folder), tmp_path)
        elif variant in ("plain", "fp16", "external"):
            wanted = expected(name, folder)
        else:
            wanted = [[]] * len(feeds(name))
        for feed, want in zip(feeds(name), wanted):
            got = model.run(feed)
            for key, theirs in zip(names_of(name, folder), want):
                assert_close(got[key], theirs, f"{variant}, {key}")


@pytest.mark.parametrize("name", NAMES)
def test_our_files_run_in_real_mnn(name: str, folder: Path, tmp_path: Path) -> None:
    wanted = expected(name, folder)
    results = peers.run(converted(name, folder), feeds(name), names_of(name, folder), tmp_path)
    for got, want in zip(results, wanted):
        for key, theirs, right in zip(names_of(name, folder), got, want):
            assert_close(theirs, right, key)
