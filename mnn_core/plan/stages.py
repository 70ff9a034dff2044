"""Stages: a graph is planned as far as shapes are known, run so far, then planned on.

A stage keeps a few plans, one for each combination of input shapes (and of those values that shapes depend on) seen lately.
Each plan knows the stage that follows it; a graph without data-dependent shapes is one stage and one plan.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..backends.base import Backend
from ..errors import CancelledError, GraphError, MNNError
from ..ir import Graph, Op, Spec, TensorInfo
from . import control
from .compile import HostExecutable
from .infer import Inferred, infer, live
from .place import Announcer
from .scope import Scope, Store
from .units import Controls, Unit, boundary_unit, plan_units

#: Plans kept by one stage.
MAX_PLANS = 8
#: Plans kept by a stage of a loop, as long as their arenas are small in all. A loop over something that grows has a plan for
#: each iteration, which the next run needs again.
LOOP_PLANS, LOOP_BYTES = 1024, 1 << 24


@dataclass
class Plan:
    """How one stage runs for one combination of shapes. known: values computed while planning that are needed later."""

    units: list[Unit]
    known: dict[str, np.ndarray]
    specs: Mapping[str, Spec]
    following: Stage | None = None
    used: int = 0

    def executables(self) -> list[HostExecutable]:
        return [u.executable for u in self.units if u.executable is not None]


class Planner:
    """What all plans of a model share: backends in order of preference, and how to plan.

    visible: one unit for each op, nothing lowered or merged, so that callbacks see every op and tensor of the graph.
    """

    def __init__(self, backends: Sequence[Backend], store: Store, strict: bool = False, visible: bool = False) -> None:
        self.backends, self.store, self.visible = list(backends), store, visible
        self.lock = threading.RLock()
        self.announcer = Announcer(self.backends[0], strict)
        self.clock = 0

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def runner(self, graph: Graph, outputs: Sequence[str], outer: Scope | None = None) -> Runner:
        """What runs a graph for the outputs named."""
        return Runner(self, graph, outputs, outer)


class Runner:
    """A graph that can be run: its scope and its first stage."""

    def __init__(self, planner: Planner, graph: Graph, outputs: Sequence[str], outer: Scope | None = None) -> None:
        self.graph, self.outputs = graph, tuple(outputs)
        self.scope = Scope(graph, planner.store, outer.subgraphs if outer else None)
        inputs = tuple(i.name for i in graph.inputs if i.name not in self.scope.constants)
        ops = live(graph.ops, outputs)
        used = {name for op in ops for name in op.inputs} | set(outputs)
        self.first = Stage(planner, self.scope, ops, tuple(n for n in inputs if n in used), self.outputs, {})

    def run(self, values: Mapping[str, np.ndarray], controls: Controls | None = None) -> list[np.ndarray]:
        """Runs the graph; values: an array for each input. The outputs may be inputs or constants themselves."""
        env: dict[str, np.ndarray] = dict(values)
        stage: Stage | None = self.first
        while stage is not None:
            plan = stage.plan(env)
            env.update(plan.known)
            for unit in plan.units:
                if controls is None:
                    env.update(zip(unit.outputs, unit.run([env[n] for n in unit.inputs], None)))
                else:
                    self._run_controlled(unit, env, controls)
            stage = plan.following
        return [env[n] if n in env else self.scope.array(n) for n in self.outputs]

    def _run_controlled(self, unit: Unit, env: dict[str, np.ndarray], controls: Controls) -> None:
        """Runs a unit with cancelling, callbacks and profiling."""
        if controls.cancel is not None and controls.cancel.cancelled:
            raise CancelledError("the run was cancelled")
        self._tell(controls.before, unit, unit.op.inputs if unit.op else (), env)
        start = time.perf_counter()
        env.update(zip(unit.outputs, unit.run([env[n] for n in unit.inputs], controls)))
        first = unit.placements[0]
        if controls.events is not None and unit.executable is None and first.kernel != "loop":  # a loop's steps count
            controls.events.append(((first.op, first.type, first.backend, first.kernel), (time.perf_counter() - start) * 1e3))
        self._tell(controls.after, unit, unit.outputs, env)

    def _tell(self, callback: Callable[..., Any] | None, unit: Unit, names: Sequence[str],
              env: Mapping[str, np.ndarray]) -> None:
        if callback is None or unit.op is None:
            return
        if callback(unit.op, {n: env[n] if n in env else self.scope.array(n) for n in names if n}) is False:
            raise CancelledError(f"the run was stopped by a callback at {unit.op}")

    def empty_scan(self, name: str, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """The scan output of a loop without iterations: as many dimensions and as wide as one iteration would make it."""
        spec = self._made(name, values, False) or self._made(name, values, True) or self.scope.spec(name)
        if spec is None:
            info = next((i for i in self.graph.outputs if i.name == name), TensorInfo(name, None, ()))
            spec = Spec(tuple(d or 0 for d in info.shape or ()), np.dtype(info.dtype or np.float32))
        return np.zeros((0, *spec.shape), spec.dtype)

    def _made(self, name: str, values: Mapping[str, np.ndarray], known: bool) -> Spec | None:
        """What a run would make; known: by the values of all inputs, not only by those that shapes depend on."""
        stage = self.first
        try:
            with stage.planner.lock:
                found = stage.inferred({n: Spec.of(values[n]) for n in stage.inputs}) if known else stage.settled(values)
        except MNNError:  # such as the first row of a tensor without rows, which nobody will read
            return None
        return found.specs.get(name)

    def plans(self) -> list[Plan]:
        """Every plan that is kept now, of all stages."""
        return self.first.all_plans()


class Stage:
    """Ops that wait to be planned. inputs: tensors that exist before; outputs: what the graph has to give in the end."""

    def __init__(self, planner: Planner, scope: Scope, ops: Sequence[Op], inputs: tuple[str, ...], outputs: tuple[str, ...],
                 known: Mapping[str, np.ndarray]) -> None:
        self.planner, self.scope, self.ops = planner, scope, list(ops)
        self.inputs, self.outputs, self.known = inputs, outputs, dict(known)
        self.wanted: tuple[str, ...] = ()
        self.plans: dict[tuple, Plan] = {}

    def plan(self, env: Mapping[str, np.ndarray]) -> Plan:
        """The plan for tensors as they are now; makes it if there is none yet."""
        found = self.plans.get(self._key(env))
        if found is None:
            with self.planner.lock:
                found = self.plans.get(self._key(env)) or self._make(env)
        found.used = self.planner.tick()
        return found

    def _key(self, env: Mapping[str, np.ndarray]) -> tuple:
        shapes = tuple([(a.shape, a.dtype.char) for a in map(env.__getitem__, self.inputs)])
        return (shapes, *[env[n].tobytes() for n in self.wanted]) if self.wanted else shapes

    def _make(self, env: Mapping[str, np.ndarray]) -> Plan:
        """A new plan. What a malformed graph breaks on the way is a GraphError, whatever it was."""
        try:
            return self._planned(env)
        except MNNError:
            raise
        except Exception as error:
            shapes = ", ".join(f"{n}{list(env[n].shape)}" for n in self.inputs)
            raise GraphError(f"the graph cannot be planned for {shapes or 'no inputs'}: "
                             f"{type(error).__name__}: {error}") from error

    def settled(self, env: Mapping[str, np.ndarray]) -> Inferred:
        """Shapes of this stage for tensors as they are now; learns which of their values matter."""
        while True:
            specs = {n: Spec.of(env[n].copy()) if n in self.wanted else Spec(env[n].shape, env[n].dtype) for n in self.inputs}
            found = self.inferred(specs)
            if not found.wanted:
                return found
            self.plans.clear()  # their keys lack the values that turned out to matter
            self.wanted = tuple(sorted({*self.wanted, *found.wanted}))

    def _planned(self, env: Mapping[str, np.ndarray]) -> Plan:
        plan = self._compile(self.settled(env))
        limit = LOOP_PLANS if self.scope.in_loop and self._arena_bytes() < LOOP_BYTES else MAX_PLANS
        while len(self.plans) >= limit:
            del self.plans[min(self.plans, key=lambda k: self.plans[k].used)]
        self.plans[self._key(env)] = plan
        return plan

    def _arena_bytes(self) -> int:
        return sum(e.arena_bytes for plan in self.plans.values() for e in plan.executables())

    def prepare(self, specs: Mapping[str, Spec]) -> Plan | None:
        """Plans for shapes alone; None if the stage depends on values."""
        with self.planner.lock:
            if self.wanted or self.inferred(specs).wanted:
                return None
            return self._make({n: np.broadcast_to(np.zeros((), specs[n].dtype), specs[n].shape) for n in self.inputs})

    def inferred(self, inputs: Mapping[str, Spec]) -> Inferred:
        """Shapes of this stage."""
        values = {name: Spec.of(value) for name, value in self.known.items()}
        return infer(self.ops, {**values, **inputs}, self.scope, lambda op, known: control.expand_if(op, known, self.scope))

    def _compile(self, found: Inferred) -> Plan:
        specs = found.specs
        later = found.needed_later()
        wanted = [n for n in dict.fromkeys((*self.outputs, *sorted(later))) if n in specs]
        made = {n for op in found.ops for n in op.outputs if n}
        targets = [n for n in wanted if n in made and specs[n].value is None]
        units = plan_units(self.planner, self.scope, live(found.ops, targets), specs, targets, self.inputs)
        known = {n: v for n in wanted if (v := specs[n].value) is not None and n not in self.scope.constants
                 and n not in self.inputs}
        units += [boundary_unit(self.planner, self.scope, op) for op in found.boundary]
        if not self.planner.visible:
            self.planner.announcer.check([p for u in units for p in u.placements if p.backend != "core"])
        plan = Plan(units, known, specs)
        if found.rest:
            plan.following = self._next(found, known, units)
        return plan

    def _next(self, found: Inferred, known: Mapping[str, np.ndarray], units: Sequence[Unit]) -> Stage:
        there = {*self.inputs, *(n for u in units for n in u.outputs)} - set(known)
        ops = live(found.rest, self.outputs)
        needed = {n for op in ops for n in op.inputs}
        inputs = tuple(sorted(n for n in there if n in needed))
        return Stage(self.planner, self.scope, ops, inputs, self.outputs, {**self.known, **known})

    def all_plans(self) -> list[Plan]:
        plans = list(self.plans.values())
        return plans + [p for plan in plans if plan.following for p in plan.following.all_plans()]
