"""What a backend is. A plugin subclasses Backend (whole segments) or KernelBackend (one kernel an op, on the host)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..errors import BackendError
from ..ir import Constant, Op, Spec


class Support(NamedTuple):
    """Whether a backend runs an op, and if not, why not."""

    ok: bool
    reason: str = ""


@dataclass(frozen=True)
class Device:
    """Something that a backend can run on."""

    id: str
    name: str
    capabilities: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class BackendConfig:
    """How a model wants to be run; the arguments of `mnn_core.load`.

    threads: upper bound of worker threads. precision: "low", "normal" or "high". memory, power: the same words.
    options: backend-specific settings; a backend refuses the ones that it does not know.
    """

    threads: int
    precision: str = "normal"
    memory: str = "normal"
    power: str = "normal"
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Segment:
    """A run of ops with known shapes that one backend executes.

    specs has every tensor that the ops touch; constants those that are known and not computed by the ops.
    """

    ops: Sequence[Op]
    specs: Mapping[str, Spec]
    constants: Mapping[str, Constant]
    inputs: Sequence[str]
    outputs: Sequence[str]


class Executable(ABC):
    """A compiled segment."""

    @abstractmethod
    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Runs once; arrays in the order of the segment's inputs and outputs. May be called by several threads at once."""


class Backend(ABC):
    """One class per plugin, light to import.

    id: the public name, `backend="id"`. priority: the greater one is preferred by `backend="cpu"`/`"auto"`. host: it works on
    host memory. option_names: the options that it knows, each with a line that says what it does.
    """

    id: ClassVar[str]
    priority: ClassVar[int] = 0
    host: ClassVar[bool] = False
    option_names: ClassVar[Mapping[str, str]] = {}

    @classmethod
    @abstractmethod
    def probe(cls) -> list[Device]:
        """The devices that a session could really be made on now; empty if there is none. Raises what went wrong."""

    def __init__(self, device: Device, config: BackendConfig) -> None:
        unknown = [name for name in config.options if name not in self.option_names]
        if unknown:
            known = "; ".join(f"{name!r}: {what}" for name, what in self.option_names.items())
            raise BackendError(f"backend {self.id!r} has no option {unknown[0]!r}; it has {known or 'none'}")
        self.device, self.config = device, config

    @classmethod
    def op_types(cls) -> set[str]:
        """Types of the ops that the backend has kernels of its own for; for people (`mnn ops --backend`)."""
        return set()

    @abstractmethod
    def supports(self, op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Support:
        """Whether this backend runs the op on these shapes and types."""

    @abstractmethod
    def compile(self, segment: Segment) -> Executable:
        """Prepares a segment all of whose ops it supports."""

    def packed_bytes(self) -> int:
        """Bytes of weights that it holds in forms of its own."""
        return 0


#: A kernel in Python: reads input arrays (None: absent), fills the output arrays. Runs with the GIL.
PythonKernel = Callable[[Sequence["np.ndarray | None"], Sequence[np.ndarray]], None]


class KernelBackend(Backend):
    """A host backend that has one kernel for each op.

    Such a plugin answers `kernel(...)` only: all planning (arena, layouts, steps) is the core's, and the steps of
    several kernel backends share one program.
    """

    host = True

    @abstractmethod
    def kernel(self, op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> PythonKernel | Support:
        """A kernel for the op on these shapes and types, or Support(False, why not). Input specs of constants have values."""

    def supports(self, op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Support:
        found = self.kernel(op, inputs, outputs)
        return found if isinstance(found, Support) else Support(True)

    def compile(self, segment: Segment) -> Executable:
        from ..plan.compile import compile_host  # late: backends are imported by plan

        return compile_host(segment, [self])
