"""Backends whose kernels lie in a native library: such a plugin's class names the library, and that is all it needs."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from ..errors import BackendError
from ..ir import Op, Spec
from ..runtime import KernelRow, NativeLibrary, SharedStore
from .base import BackendConfig, Device, KernelBackend, PythonKernel, Segment, Support

_libraries: dict[tuple[str, str | None], NativeLibrary] = {}
_lock = threading.Lock()
_LETTERS = {"f": "f", "i": "i", "u": "u"}


def type_name(dtype: np.dtype) -> str:
    """The name of an element type in kernel tables: "f32", "u8", "bool"."""
    return "bool" if dtype.kind == "b" else f"{_LETTERS.get(dtype.kind, '?')}{dtype.itemsize * 8}"


class NativeBackend(KernelBackend):
    """Runs the kernels of a library with the interface `mnn/kernel.h`.

    library_path: the file.
    """

    library_path: ClassVar[str]
    option_names: ClassVar[Mapping[str, str]] = {"isa": "use the kernels of this instruction set, and of those below it"}

    @classmethod
    def library(cls, isa: str | None = None) -> NativeLibrary:
        """The library, opened once in a process. Raises BackendError if it cannot be loaded or lacks the isa."""
        with _lock:
            key = (cls.library_path, isa)
            if key not in _libraries:
                _libraries[key] = NativeLibrary(cls.library_path, isa=isa) if isa else NativeLibrary(cls.library_path)
            return _libraries[key]

    @classmethod
    def probe(cls) -> list[Device]:
        isas = [isa for isa in cls.library().isas if isa]
        return [Device(cls.id, f"host CPU ({isas[0] if isas else 'generic'})", {"isas": tuple(isas)})]

    def __init__(self, device: Device, config: BackendConfig) -> None:
        super().__init__(device, config)
        isa = config.options.get("isa")
        known = device.capabilities.get("isas", ())
        if isa is not None and isa not in known:
            raise BackendError(f"backend {self.id!r}: this machine has no instruction set {isa!r}; it has: {', '.join(known)}")
        self.native = self.library(isa)
        self.shared = SharedStore()

    @classmethod
    def op_types(cls) -> set[str]:
        return cls.library().op_types()

    def packed_bytes(self) -> int:
        return self.shared.nbytes

    def rows(self, op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> list[KernelRow]:
        """Kernel rows for an op on these types, best first."""
        return self.native.rows(op.type, [None if s is None else type_name(s.dtype) for s in inputs],
                                [type_name(s.dtype) for s in outputs])

    def supports(self, op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Support:
        if self.rows(op, inputs, outputs):
            return Support(True)  # a row may still decline when it is prepared; then the next backend is asked
        types = ", ".join("absent" if s is None else type_name(s.dtype) for s in inputs)
        return Support(False, f"no {op.type} kernel for types ({types})")

    def kernel(self, op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> PythonKernel | Support:
        """The kernel as a function on plain arrays, for tests; plans use the rows themselves."""
        support = self.supports(op, inputs, outputs)
        if not support.ok:
            return support
        named = {n: s for n, s in zip((*op.inputs, *op.outputs), (*inputs, *outputs)) if n and s is not None}
        constants = {n: s.value for n, s in named.items() if s.value is not None}
        free = [n for n in dict.fromkeys(op.inputs) if n and n not in constants]
        made = [n for n in op.outputs if n]
        program = self.compile(Segment([op], named, constants, free, made))

        def run(ins: Sequence[np.ndarray | None], outs: Sequence[np.ndarray]) -> None:
            given = dict(zip(op.inputs, ins))
            arrays = [a for a in (given[n] for n in free) if a is not None]
            for out, value in zip(outs, program.run(arrays)):
                out[...] = value

        return run
