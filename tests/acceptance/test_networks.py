"""Trained networks and the zoo: converted, saved, loaded and run, they give what onnxruntime gives."""

from __future__ import annotations

from pathlib import Path

import networks
import numpy as np
import pytest

import mnn_core as mnn

TOLERANCE = 1e-4  # of the largest output


@pytest.mark.parametrize("backend", ["cpu-x86", "numpy"])
@pytest.mark.parametrize("name", networks.NAMES)
def test_network_agrees_with_onnxruntime(name: str, backend: str, network_folder: Path) -> None:
    """strict: no op runs on another backend than asked for."""
    model = mnn.load(networks.converted(name, network_folder), backend=backend, strict=True)
    for feed, want in zip(networks.feeds(name), networks.expected(name, network_folder)):
        got = model.run(feed)
        assert len(got) == len(want)
        for (key, ours), theirs in zip(got.items(), want):
            assert ours.dtype == theirs.dtype, key
            assert ours.shape == theirs.shape, key
            error = np.abs(ours.astype(np.float64) - theirs).max() / max(np.abs(theirs).max(), 1e-6)
            assert error <= TOLERANCE, f"{key}: {error:.2e}"
