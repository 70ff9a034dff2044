"""Placement: which backend runs which op, why others do not, and where segments begin and end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..backends.base import Backend
from ..errors import BackendError, PlacementWarning, UnsupportedOpError, warn
from ..ir import Op, Spec


@dataclass
class Placement:
    """Where an op runs. kernel: which of the backend's kernels; reasons: why backends preferred to it do not."""

    op: str
    type: str
    backend: str
    kernel: str = ""
    reasons: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        why = "".join(f"; not {backend}: {reason}" for backend, reason in self.reasons.items())
        return f"{self.op} ({self.type}): {self.backend}{f' {self.kernel}' if self.kernel else ''}{why}"


def place(op: Op, specs: Mapping[str, Spec], backends: Sequence[Backend]) -> tuple[list[Backend], dict[str, str]]:
    """The backends that run an op, best first, and why those before the first do not.

    Raises UnsupportedOpError with every backend's reason if none runs it.
    """
    ins = [specs[name] if name else None for name in op.inputs]
    outs = [specs[name] for name in op.outputs if name]
    able, reasons = [], {}
    for backend in backends:
        support = backend.supports(op, ins, outs)
        if support.ok:
            able.append(backend)
        elif not able:
            reasons[backend.id] = support.reason
    if not able:
        raise unsupported(op, ins, reasons)
    return able, reasons


def unsupported(op: Op, ins: Sequence[Spec | None], reasons: Mapping[str, str]) -> UnsupportedOpError:
    """The error for an op that no backend takes."""
    shown = ", ".join("absent" if s is None else str(s) for s in ins)
    return UnsupportedOpError(f"no backend runs {op} on {shown}: " + "; ".join(f"{b}: {r}" for b, r in reasons.items()))


def segments(ops: Sequence[Op], homes: Mapping[int, Backend | None]) -> list[tuple[Backend | None, list[Op]]]:
    """Groups ops into as few runs as is easily done, each of one home; homes: id(op) -> device backend, None: host kernels.

    Ops that are ready run with the current segment as long as there are any, so that independent branches do not cut it.
    """
    waits: dict[int, int] = {}
    readers: dict[str, list[Op]] = {}
    made = {name for op in ops for name in op.outputs if name}
    for op in ops:
        needs = {name for name in op.inputs if name in made}
        waits[id(op)] = len(needs)
        for name in needs:
            readers.setdefault(name, []).append(op)
    ready = [op for op in ops if not waits[id(op)]]
    found: list[tuple[Backend | None, list[Op]]] = []
    while ready:
        home = homes[id(ready[0])]
        run: list[Op] = []
        todo = [op for op in ready if homes[id(op)] is home]
        ready = [op for op in ready if homes[id(op)] is not home]
        while todo:
            op = todo.pop(0)
            run.append(op)
            for reader in [r for name in op.outputs for r in readers.get(name, ())]:
                waits[id(reader)] -= 1
                if not waits[id(reader)]:
                    (todo if homes[id(reader)] is home else ready).append(reader)
        found.append((home, run))
    return found


class Announcer:
    """Tells once per model which ops do not run on the backend that was asked for; in strict mode that is an error."""

    def __init__(self, wanted: Backend, strict: bool) -> None:
        self._wanted, self._strict, self._done = wanted, strict, False

    def check(self, placements: Sequence[Placement]) -> None:
        """Warns with PlacementWarning, or raises BackendError when strict."""
        others = [p for p in placements if p.backend != self._wanted.id]
        if not others or (self._done and not self._strict):
            return
        self._done = True
        kinds: dict[tuple[str, str], list[Placement]] = {}
        for p in others:
            kinds.setdefault((p.type, p.backend), []).append(p)
        shown = "; ".join(f"{len(ps)} {kind} on {backend} ({ps[0].op}: {ps[0].reasons.get(self._wanted.id, 'no kernel')})"
                          for (kind, backend), ps in list(kinds.items())[:12])
        text = f"{len(others)} of {len(placements)} ops do not run on {self._wanted.id!r}: {shown}"
        if self._strict:
            raise BackendError(f"{text}. strict=True makes this an error; without it they run where named here")
        warn(f"{text}. model.placement() has all reasons", PlacementWarning)
