"""The test library, and shorthands to make programs of its kernels."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mnn_core as mnn
from mnn_core.runtime import NativeKernel, NativeLibrary, Program, ProgramTensor, SharedStore, Step, TensorDesc

SOURCE = Path(__file__).with_name("kernels.c")
NAMES = {"float32": "f32", "float64": "f64", "int64": "i64", "int32": "i32"}


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Compiles the test library with preprocessor definitions; returns its path."""
    def compiled(*defines: str) -> str:
        path = tmp_path_factory.mktemp("kernels") / "kernels.so"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", f"-I{mnn.get_include()}", *(f"-D{d}" for d in defines), str(SOURCE),
                        "-o", str(path)], check=True)
        return str(path)

    return compiled


class Kit:
    """Descriptions, kernels and programs in few words."""

    def __init__(self, library: NativeLibrary) -> None:
        self.library = library

    @staticmethod
    def desc(*shape: int, dtype: Any = np.float32) -> TensorDesc:
        return TensorDesc(shape, dtype)

    def kernel(self, op: str, ins: Sequence[TensorDesc | None], outs: Sequence[TensorDesc],
               constants: Sequence[np.ndarray | None] | None = None, *, threads: int = 1, shared: SharedStore | None = None,
               row: int = 0, **attrs: Any) -> NativeKernel:
        """The row-th kernel for an op on these types, prepared."""
        types = [None if d is None else NAMES[d.dtype.name] for d in ins]
        found = self.library.rows(op, types, [NAMES[d.dtype.name] for d in outs])[row]
        given = list(constants) if constants is not None else [None] * len(ins)
        return found.prepare(attrs, list(ins), list(outs), given, threads, shared or SharedStore(), op)

    def program(self, op: str, ins: Sequence[TensorDesc], out: TensorDesc, **how: Any) -> Program:
        """A program of one step."""
        tensors = [ProgramTensor(d, ("input", i)) for i, d in enumerate(ins)] + [ProgramTensor(out, ("output", 0))]
        step = Step(self.kernel(op, ins, [out], **how), tuple(range(len(ins))), (len(ins),), "step")
        return Program(tensors, [step], list(range(len(ins))), [len(ins)], 0)

    def chain(self, kernels: Sequence[Any], x: TensorDesc) -> Program:
        """Kernels one after the other on tensors like x; between them two pieces of arena memory in turn."""
        bytes_of = int(np.prod(x.shape)) * x.dtype.itemsize
        room = -(-bytes_of // 64) * 64
        places: list[tuple] = [("input", 0), *(("arena", i % 2 * room) for i in range(len(kernels) - 1)), ("output", 0)]
        steps = [Step(k, (i,), (i + 1,), f"step{i}") for i, k in enumerate(kernels)]
        return Program([ProgramTensor(x, p) for p in places], steps, [0], [len(kernels)], 2 * room)


@pytest.fixture(scope="session")
def kit(build: Callable[..., str]) -> Kit:
    return Kit(NativeLibrary(build()))
