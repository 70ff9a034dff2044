"""What a model tells about itself: profiles and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class StepTime:
    """Time of one step; type "ConvertLayout" and "Copy" are the planner's own."""

    op: str
    type: str
    backend: str
    kernel: str
    ms: float
    calls: int = 1


@dataclass(frozen=True)
class Profile:
    """Times of the steps of a run, in order. total_ms: of the whole run, with what lies between the steps."""

    steps: Sequence[StepTime]
    total_ms: float

    def by_type(self) -> dict[str, float]:
        """Milliseconds by op type, the longest first."""
        sums: dict[str, float] = {}
        for step in self.steps:
            sums[step.type] = sums.get(step.type, 0.0) + step.ms
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    def table(self, top: int | None = None) -> str:
        """Text for people: the steps (the `top` slowest only, if given) and the sums by type."""
        shown = self.steps if top is None else sorted(self.steps, key=lambda s: -s.ms)[:top]
        rows = [(s.op, s.type, s.backend, s.kernel, f"{s.ms:.3f}", f"{100 * s.ms / max(self.total_ms, 1e-9):.1f}")
                for s in shown]
        heads = ("op", "type", "backend", "kernel", "ms", "%")
        widths = [max(len(r[i]) for r in (heads, *rows)) for i in range(len(heads))]
        lines = ["  ".join(c.ljust(w) if i < 4 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths)))
                 for row in (heads, *rows)]
        sums = "\n".join(f"{kind:<24} {ms:9.3f} ms" for kind, ms in self.by_type().items())
        return "\n".join(lines) + f"\n\n{sums}\n{'total':<24} {self.total_ms:9.3f} ms"

    def __str__(self) -> str:
        return self.table()


@dataclass(frozen=True)
class Memory:
    """Bytes that a model holds. weights: constants; packed: weights as kernels want them; plans: the arena of each plan."""

    weights: int
    packed: int
    plans: Sequence[int]

    @property
    def arena(self) -> int:
        """The biggest arena."""
        return max(self.plans, default=0)

    @property
    def total(self) -> int:
        return self.weights + self.packed + sum(self.plans)

    def __str__(self) -> str:
        return (f"weights {self.weights / 1e6:.1f} MB, packed {self.packed / 1e6:.1f} MB, "
                f"{len(self.plans)} plans with arenas of {', '.join(f'{p / 1e6:.1f}' for p in self.plans) or '0'} MB")


#: Of a step: op, type, backend, kernel.
Key = tuple[str, str, str, str]


def profiled(events: Sequence[tuple[Key, float]], runs: int, total_ms: float) -> Profile:
    """A profile of the (step, milliseconds) events of several runs: the mean for each step."""
    sums: dict[Key, list[float]] = {}
    for key, ms in events:
        sums.setdefault(key, []).append(ms)
    return Profile([StepTime(*key, sum(times) / runs, max(len(times) // runs, 1)) for key, times in sums.items()], total_ms)
