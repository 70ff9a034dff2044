"""Compiling a segment for host backends: kernels, layouts and memory become one program.

Native and Python kernels of several backends stand side by side in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backends.base import Backend, Executable, KernelBackend, Segment, Support
from ..backends.native import NativeBackend
from ..ir import Op, Region, Spec, decoded, schema
from ..report import Key
from ..runtime import Declined, KernelRow, Program, ProgramTensor, Step, TensorDesc
from . import memory
from .joins import Join, channel_parts
from .layout import PLAIN, Fit, fit, ranked, stored_bytes
from .place import Placement, unsupported
from .raster import is_identity

if TYPE_CHECKING:
    from .units import Controls


class HostExecutable(Executable):
    """A program with what is known about it. keys: for each step (op, type, backend, kernel)."""

    def __init__(self, program: Program, placements: Sequence[Placement], keys: Sequence[Key], arena_bytes: int) -> None:
        self.program, self.placements, self.keys, self.arena_bytes = program, placements, keys, arena_bytes

    def run(self, inputs: Sequence[np.ndarray], controls: Controls | None = None) -> list[np.ndarray]:
        if controls is None:
            return self.program.run(inputs)
        if controls.events is None:
            return self.program.run(inputs, cancel=controls.cancel)
        outputs, seconds = self.program.run(inputs, cancel=controls.cancel, profile=True)
        controls.events += [(key, s * 1e3) for key, s in zip(self.keys, seconds)]
        return outputs


@dataclass
class _Step:
    kernel: Any
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    key: Key
    inplace: tuple[int, ...] = ()


def compile_host(segment: Segment, backends: Sequence[Backend]) -> HostExecutable:
    """Compiles a segment for kernel backends, in order of preference.

    Raises UnsupportedOpError with every backend's reason for an op that none of them runs.
    """
    builder = _Builder(segment, [b for b in backends if isinstance(b, KernelBackend)])
    for op in segment.ops:
        builder.add(op)
    return builder.finish()


class _Builder:
    def __init__(self, segment: Segment, backends: Sequence[KernelBackend]) -> None:
        self.segment, self.backends = segment, backends
        self.specs: dict[str, Spec] = dict(segment.specs)
        self.descs: list[TensorDesc] = []
        self.names: list[str] = []
        self.sizes: list[int] = []
        self.arrays: dict[int, np.ndarray] = {}
        self.forms: dict[str, dict[int, int]] = {}  # tensor name -> form -> index
        self.fixed: dict[int, memory.Home] = {}
        self.views: list[tuple[int, int]] = []
        self.steps: list[_Step] = []
        self.joins: list[Join] = []
        self.placements: list[Placement] = []
        for number, name in enumerate(segment.inputs):
            self.fixed[self._new(name, PLAIN)] = memory.Home("input", number)

    def _new(self, name: str, form: int) -> int:
        spec, index = self.specs[name], len(self.descs)
        self.descs.append(_desc(spec, form))
        self.names.append(name)
        self.sizes.append(stored_bytes(spec, form))
        self.forms.setdefault(name, {})[form] = index
        return index

    def _have(self, name: str) -> dict[int, int]:
        """Forms in which a tensor exists. Constants come into being here, when first asked for."""
        if name not in self.forms:
            value = self.segment.constants.get(name, self.specs[name].value)
            if value is None:
                raise AssertionError(f"tensor {name!r} of the segment is made by no op before it is read")
            index = self._new(name, PLAIN)
            self.arrays[index] = np.require(decoded(value), requirements=["C", "A"]).reshape(self.specs[name].shape)
            self.fixed[index] = memory.Home("const", index)
        return self.forms[name]

    def _constant(self, name: str) -> np.ndarray | None:
        if not name or (name not in self.segment.constants and self.specs[name].value is None):
            return None
        return self.arrays[self._have(name)[PLAIN]]

    def _get(self, name: str, form: int) -> int:
        """A tensor in a form; converts it, if need be by way of plain."""
        have = self._have(name)
        if form in have:
            return have[form]
        start = PLAIN if form else next(iter(have))
        source = self._get(name, start)
        op = Op("ConvertLayout", [name], [name], name=name)
        spec = self.specs[name]
        for backend in [b for b in self.backends if isinstance(b, NativeBackend)]:
            for row in backend.rows(op, [spec], [spec]):
                reads, writes = row.layout_of_input(0, 1), row.layout_of_output(0)
                if (reads, writes) == (("b", "p") if start else ("p", "b")) and row.block == (start or form):
                    kernel = self._prepare(row, op, Fit((start,), (form,), 0), backend)
                    if not isinstance(kernel, str):
                        target = self._new(name, form)
                        self.steps.append(_Step(kernel, (source,), (target,), (name, op.type, backend.id, row.name)))
                        return target
        raise unsupported(op, [spec], {b.id: f"no layout conversion from block {start} to {form}" for b in self.backends})

    def add(self, op: Op) -> None:
        """Adds an op's step, and conversions before it."""
        if is_identity(op, self.specs):
            self._alias(op)
        elif not self._join(op):
            self.placements.append(self._run(op))

    def _run(self, op: Op) -> Placement:
        """Adds the step of the first backend that has a kernel for the op."""
        ins = [self._spec_with_value(name) for name in op.inputs]
        outs = [self.specs[name] for name in op.outputs if name]
        reasons: dict[str, str] = {}
        for backend in self.backends:
            if isinstance(backend, NativeBackend):
                kernel = self._native(op, ins, outs, backend)
            else:
                kernel = self._python(op, ins, outs, backend)
            if isinstance(kernel, str):
                return Placement(_label(op), op.type, backend.id, kernel, reasons)
            reasons[backend.id] = kernel.reason
        raise unsupported(op, ins, reasons)

    def _spec_with_value(self, name: str) -> Spec | None:
        if not name:
            return None
        value = self._constant(name)
        return self.specs[name] if value is None else Spec.of(value)

    def _alias(self, op: Op) -> None:
        source, target = op.inputs[0], op.outputs[0]
        have = self._have(source)
        same = self.specs[source].shape == self.specs[target].shape
        forms = list(have) if same else [PLAIN]
        for form in forms:
            base = self._get(source, form)
            self.views.append((self._new(target, form), base))
        self.placements.append(Placement(_label(op), op.type, "core", "view"))

    def _join(self, op: Op) -> bool:
        """Joins blocked tensors to a blocked one, if most of them are; `finish` leaves out the copies that memory spares."""
        parts, spec = channel_parts(op, self.specs), self.specs[op.outputs[0]]
        backend = next((b for b in self.backends if isinstance(b, NativeBackend)), None)
        if parts is None or backend is None or spec.dtype != np.float32 or not (rows := backend.rows(op, [spec], [spec])):
            return False
        forms = {name: set(self._have(name)) - {PLAIN} for name, _ in parts}
        blocks = set().union(*forms.values())
        missing = sum(self.specs[name].nbytes for name, have in forms.items() if not have)
        if len(blocks) != 1 or 2 * missing > spec.nbytes or any(first % min(blocks) for _, first in parts):
            return False
        block = blocks.pop()
        sources = [self._get(name, block) for name, _ in parts]
        whole = self._new(op.outputs[0], block)
        for source, (name, first) in zip(sources, parts):
            offset, count = first * (spec.nbytes // spec.shape[1]), self.sizes[source] // 4
            copy = Op("Raster", [name], list(op.outputs), {"shape": (self.sizes[whole] // 4,), "fill": None, "regions": (
                Region(0, (count,), 0, (1,), offset // 4, (1,)),)}, op.name)
            flat = [self._flat(source), self._flat(whole)]
            kernel = rows[0].prepare(_attributes(copy), [self.descs[flat[0]]], [self.descs[flat[1]]], [None],
                                 backend.config.threads, backend.shared, _label(op))
            self.joins.append(Join(len(self.steps), source, whole, offset))
            self.steps.append(_Step(kernel, (flat[0],), (flat[1],), (_label(op), op.type, backend.id, rows[0].name)))
        self.placements.append(Placement(_label(op), op.type, backend.id, "join"))
        return True

    def _flat(self, index: int) -> int:
        """A blocked tensor's memory as a plain vector."""
        self.descs.append(TensorDesc((self.sizes[index] // 4,), self.descs[index].dtype, "p", PLAIN))
        self.names.append(self.names[index])
        self.sizes.append(self.sizes[index])
        self.views.append((len(self.descs) - 1, index))
        return len(self.descs) - 1

    def _python(self, op: Op, ins: Sequence[Spec | None], outs: Sequence[Spec], backend: KernelBackend) -> str | Support:
        kernel = backend.kernel(op, ins, outs)
        if isinstance(kernel, Support):
            return kernel
        reads = tuple(self._get(name, PLAIN) if name else -1 for name in op.inputs)
        writes = tuple(self._new(name, PLAIN) for name in op.outputs if name)
        self.steps.append(_Step(kernel, reads, writes, (_label(op), op.type, backend.id, "python")))
        return "python"

    def _native(self, op: Op, ins: Sequence[Spec | None], outs: Sequence[Spec], backend: NativeBackend) -> str | Support:
        rows = backend.rows(op, ins, outs)
        if not rows:
            return backend.supports(op, ins, outs)
        forms = [set(self._have(name)) if name else set() for name in op.inputs]
        fits = [(row, how) for row in rows if (how := fit(row, ins, outs, forms)) is not None]
        declined = ""
        for row, how in ranked(op.type, fits):
            kernel = self._prepare(row, op, how, backend)
            if isinstance(kernel, str):
                declined = declined or f"{row.name}: {kernel}"
                continue
            reads = tuple(self._get(name, form) if name else -1 for name, form in zip(op.inputs, how.inputs))
            writes = tuple(self._new(name, form) for name, form in zip([n for n in op.outputs if n], how.outputs))
            inplace = tuple(r for i, r in enumerate(reads) if r >= 0 and row.inplace >> i & 1)
            self.steps.append(_Step(kernel, reads, writes, (_label(op), op.type, backend.id, row.name), inplace))
            return row.name
        return Support(False, declined or "its kernels need other layouts than these shapes can have")

    def _prepare(self, row: KernelRow, op: Op, how: Fit, backend: NativeBackend) -> Any:
        """The row's kernel for an op, or why it declined."""
        inputs = [_desc(self.specs[n], f) if n else None for n, f in zip(op.inputs, how.inputs)]
        outputs = [_desc(self.specs[n], f) for n, f in zip([n for n in op.outputs if n], how.outputs)]
        constants = [self._constant(n) if f == PLAIN else None for n, f in zip(op.inputs, how.inputs)]
        try:
            return row.prepare(_attributes(op), inputs, outputs, constants, backend.config.threads, backend.shared,
                               _label(op))
        except Declined as reason:
            return str(reason)

    def finish(self) -> HostExecutable:
        outputs = self._outputs()
        touches = [memory.Touch(tuple(r for r in s.reads if r >= 0), s.writes, s.inplace) for s in self.steps]
        homes, total, spared = memory.assign(self.sizes, touches, self.views, self.fixed, outputs, self.joins)
        tensors = []
        for i, (desc, home) in enumerate(zip(self.descs, homes)):
            place: tuple = ("const", self.arrays[i]) if home.kind == "const" else (home.kind, home.where)
            if home.kind == "alias":
                place = (*place, home.offset)
            tensors.append(ProgramTensor(desc, place))
        kept = [s for i, s in enumerate(self.steps) if i not in spared]
        steps = [Step(s.kernel, s.reads, s.writes, s.key[0]) for s in kept]
        inputs = [self.forms[name][PLAIN] for name in self.segment.inputs]
        program = Program(tensors, steps, inputs, outputs, total)
        return HostExecutable(program, self.placements, [s.key for s in kept], total)

    def _outputs(self) -> list[int]:
        """Plain tensors of the outputs, each with memory of its own: copies of inputs, constants and views of other outputs."""
        base = dict(self.views)

        def root(i: int) -> int:
            while i in base:
                i = base[i]
            return i

        found: list[int] = []
        taken: set[int] = set(self.fixed)
        for name in self.segment.outputs:
            index = self._get(name, PLAIN)
            if root(index) in taken:
                spec, copy = self.specs[name], f"{name}: copy"
                self.specs[copy] = spec.without_value()
                whole = Region(0, (spec.size,), 0, (1,), 0, (1,))
                self._run(Op("Raster", [name], [copy], {"regions": (whole,), "shape": spec.shape, "fill": None}, copy))
                index = self.forms[copy][PLAIN]
            taken.add(root(index))
            found.append(index)
        return found


def _label(op: Op) -> str:
    return op.name or op.outputs[0]


def _desc(spec: Spec, form: int) -> TensorDesc:
    return TensorDesc(spec.shape, spec.dtype, "b" if form else "p", form)


def _attributes(op: Op) -> Mapping[str, Any]:
    """All attributes of an op with the defaults of its type."""
    return {**{name: attr.default for name, attr in (schema.attributes(op.type) or {}).items()}, **op.attrs}
