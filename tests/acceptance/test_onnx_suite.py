"""ONNX's own conformance suite: its node, simple, light-model and PyTorch cases, on the reference backend and on cpu-x86.

What does not pass is listed, with the reason, in onnx_suite_exceptions.txt; it must be under 2 % of the inference cases.
"""

from __future__ import annotations

import os
import re
import unittest
from collections.abc import Iterator
from pathlib import Path

import onnx.backend.test
import pytest
from onnx_backend import MNNBackend

import mnn_core

BACKENDS = ("numpy", "cpu-x86")
#: Cases of the training domain, which inference engines do not have.
TRAINING = re.compile(r"^test_(adagrad|adam|momentum|nesterov_momentum|gradient)(_|$)")


def _exceptions() -> dict[str, str]:
    text = Path(__file__).with_name("onnx_suite_exceptions.txt").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


def _cases() -> dict[str, onnx.backend.test.runner.TestItem]:
    suite = onnx.backend.test.BackendTest(MNNBackend, __name__)
    found = {name.removesuffix("_cpu"): item for items in suite._test_items.values() for name, item in items.items()
             if name.endswith("_cpu")}
    return {name: item for name, item in sorted(found.items()) if not TRAINING.match(name)}


CASES, EXCEPTIONS = _cases(), _exceptions()


@pytest.fixture(autouse=True, scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The suite writes the inputs of its light models to a folder that this variable names."""
    before = os.environ.get("ONNX_HOME")
    os.environ["ONNX_HOME"] = str(tmp_path_factory.mktemp("onnx"))
    yield
    os.environ.pop("ONNX_HOME")
    if before is not None:
        os.environ["ONNX_HOME"] = before


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", [n for n in CASES if n not in EXCEPTIONS])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_case(name: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MNNBackend, "name", backend)
    CASES[name].func(unittest.TestCase())


@pytest.mark.parametrize("name", sorted(EXCEPTIONS))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_exception_is_one(name: str) -> None:
    """A case that passes, or that the suite does not have, is no exception any more."""
    with pytest.raises((AssertionError, TypeError, mnn_core.MNNError)):
        CASES[name].func(unittest.TestCase())


def test_exceptions_are_few() -> None:
    assert len(EXCEPTIONS) <= 0.02 * len(CASES)
    assert len(CASES) > 1900
