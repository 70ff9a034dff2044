"""Units: what a plan runs one after the other. Ops become segments of backends, or single ops of data-dependent shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backends.base import Backend, KernelBackend, Segment
from ..errors import KernelError, MNNError
from ..ir import Op, Spec
from ..ops import definition
from ..report import Key
from . import control
from .compile import HostExecutable, compile_host
from .infer import fold, live
from .lower import lower
from .place import Placement, place, segments
from .raster import merge
from .scope import Scope

if TYPE_CHECKING:
    from ..runtime import CancelToken
    from .stages import Planner


@dataclass
class Controls:
    """What a run carries along.

    before, after: called with (op, tensors by name) around each op; only a visible planner has a unit for each.
    events: filled with (step, milliseconds) when profiling.
    """

    cancel: CancelToken | None = None
    before: Callable[[Op, dict[str, np.ndarray]], Any] | None = None
    after: Callable[[Op, dict[str, np.ndarray]], Any] | None = None
    events: list[tuple[Key, float]] | None = None


@dataclass
class Unit:
    """A piece of a plan: reads and writes tensors by name. op: set if it is just one op of the graph."""

    run: Callable[[list[np.ndarray], Controls | None], list[np.ndarray]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    placements: Sequence[Placement]
    executable: HostExecutable | None = None
    op: Op | None = None


def plan_units(planner: Planner, scope: Scope, ops: list[Op], specs: dict[str, Spec], targets: Sequence[str],
               order: Sequence[str]) -> list[Unit]:
    """Lowers, merges, places and compiles ops of known shapes.

    targets: the tensors that are needed of them. order: the order in which segments take what they read, as far as given.
    """
    if not planner.visible:
        ops = fold(lower(ops, specs, lambda op: _keeps(op, specs, planner.backends)), specs, scope)
        ops = live(merge(ops, specs, targets), targets)
    homes: dict[int, Backend | None] = {}
    why: dict[int, dict[str, str]] = {}
    for op in ops:
        able, why[id(op)] = place(op, specs, planner.backends)
        homes[id(op)] = None if isinstance(able[0], KernelBackend) else able[0]
    runs = [(homes[id(op)], [op]) for op in ops] if planner.visible else segments(ops, homes)
    parts: list[tuple[Backend | None, Segment]] = []
    needed = set(targets)
    for home, run in reversed(runs):
        made = [n for op in run for n in op.outputs if n]
        parts.append((home, _segment(scope, run, specs, [n for n in made if n in needed or planner.visible], order)))
        needed.update(parts[-1][1].inputs)
    units = []
    for home, segment in reversed(parts):
        units.append(_unit(planner, home, segment))
        for op, placement in zip(segment.ops, units[-1].placements):
            placement.reasons = {**why[id(op)], **placement.reasons}
    return units


def _keeps(op: Op, specs: Mapping[str, Spec], backends: Sequence[Backend]) -> bool:
    """Whether an op is not lowered: the backend that comes first takes it whole, or it is the reference backend's anyway."""
    ins = [specs[n] if n else None for n in op.inputs]
    outs = [specs[n] for n in op.outputs if n]
    preferred = list(takewhile(lambda b: b.id != "numpy", backends))
    if preferred and preferred[0].supports(op, ins, outs).ok:
        return True
    return not preferred and not definition(op).geometry


def _segment(scope: Scope, ops: Sequence[Op], specs: Mapping[str, Spec], outputs: Sequence[str],
             order: Sequence[str]) -> Segment:
    made = {n for op in ops for n in op.outputs if n}
    reads = list(dict.fromkeys(n for op in ops for n in op.inputs if n and n not in made))
    constants: dict[str, np.ndarray] = {}
    for n in reads:
        value = scope.array(n) if n in scope.constants else specs[n].value
        if value is not None:
            constants[n] = value
    rank = {n: i for i, n in enumerate(order)}
    inputs = sorted((n for n in reads if n not in constants), key=lambda n: rank.get(n, len(rank)))
    return Segment(list(ops), {n: specs[n] for n in (*reads, *made)}, constants, inputs, list(outputs))


def _unit(planner: Planner, home: Backend | None, segment: Segment) -> Unit:
    """A segment compiled; home: a backend that takes it whole, None for the kernels of host backends."""
    names = tuple(segment.inputs), tuple(segment.outputs)
    one = segment.ops[0] if planner.visible else None
    if home is None:
        host = compile_host(segment, planner.backends)
        return Unit(host.run, *names, host.placements, host, one)
    executable = home.compile(segment)
    placements = [Placement(op.name or op.outputs[0], op.type, home.id) for op in segment.ops]

    def run(arrays: list[np.ndarray], controls: Controls | None) -> list[np.ndarray]:
        return executable.run(arrays)

    return Unit(run, *names, placements, op=one)


def boundary_unit(planner: Planner, scope: Scope, op: Op) -> Unit:
    """An op whose output shapes are found by running it."""
    given = [n for n in op.inputs if n and n not in scope.constants]
    loop = control.build_loop(op, scope, planner.runner) if op.type == "While" else None

    def run(arrays: list[np.ndarray], controls: Controls | None) -> list[np.ndarray]:
        there = dict(zip(given, arrays))
        every = [None if not n else there[n] if n in there else scope.array(n) for n in op.inputs]
        values = loop(every, controls) if loop else _compute(op, every)
        return [v for n, v in zip(op.outputs, values) if n]

    placement = Placement(op.name or op.outputs[0], op.type, "core", "loop" if loop else "python")
    return Unit(run, tuple(given), tuple(n for n in op.outputs if n), [placement], op=op)


def _compute(op: Op, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """The values of all outputs of an op by its definition."""
    try:
        values = definition(op).compute(op, *arrays)
    except MNNError:
        raise
    except Exception as error:
        shown = ", ".join("absent" if a is None else str(Spec.of(a)) for a in arrays)
        raise KernelError(f"{op} failed on {shown}: {type(error).__name__}: {error}") from error
    outs = values if isinstance(values, tuple) else (values,)
    return [np.ascontiguousarray(v).reshape(v.shape) for v in outs]
