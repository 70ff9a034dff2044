"""Runs cases on the engine, in every way."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np

import mnn_core as mnn

from .cases import Case, differs

BACKENDS = ("numpy", "cpu-x86")


class Fault(AssertionError):
    """A result that is not right."""


def check(case: Case) -> None:
    """Converts with and without optimisation, and runs on both CPU backends, of some cases from a file too. Raises Fault."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mnn.PlacementWarning)
        for level in (0, 1):
            try:
                graph = mnn.convert(case.model, converter="onnx", optimize_level=level)
            except mnn.MNNError as error:
                raise Fault(f"converted with optimize_level={level}: {type(error).__name__}: {error}") from error
            for backend in BACKENDS:
                where = f"backend={backend!r}, optimize_level={level}"
                _compare(case, mnn.load(graph, backend=backend, threads=1), where)
            if case.through_file:
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / "m.mnn"
                    mnn.load(graph, backend="numpy").save(path)
                    _compare(case, mnn.load(path, backend=BACKENDS[level], threads=1), f"{where}, from a file")


def _compare(case: Case, model: mnn.Model, where: str) -> None:
    try:
        got = model.run(case.feeds)
    except Exception as error:
        raise Fault(f"{where}: {type(error).__name__}: {error}") from error
    for name, (want, tolerance) in case.wants.items():
        wrong = differs(np.asarray(got[name]), want, tolerance)
        if wrong:
            raise Fault(f"{where}: output {name!r}: {wrong}")
