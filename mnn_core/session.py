"""Model: a graph with backends to run it on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import inputs as boundary
from . import plugins
from .backends.base import Backend, BackendConfig
from .backends.select import open_backends
from .errors import BackendError, InputError
from .ir import Graph, Spec, TensorInfo
from .plan import Controls, Placement, Plan, Planner, Runner, Stage, Store
from .report import Key, Memory, Profile, profiled
from .runtime import CancelToken, default_threads

LEVELS = ("low", "normal", "high")
#: Plans that `run` finds by shapes alone, without looking at anything else.
_MAX_FAST = 8


def load(
    source: str | Path | bytes | Graph,
    backend: str | Sequence[str] = "cpu",
    *,
    threads: int | None = None,
    precision: str = "normal",
    memory: str = "normal",
    power: str = "normal",
    strict: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Model:
    """Loads a model to run it.

    source: a `.mnn` file, its bytes, or a Graph. backend: "cpu" or "auto" (the fastest installed CPU backend), a backend's
    id, or ids in order of preference; ops that it lacks run on the host CPU, which one PlacementWarning tells, or with
    strict=True is a BackendError. threads: None for as many as this process may use. precision, memory, power: "low",
    "normal" or "high". options: settings of the (first) backend; it refuses those that it does not know.

    Raises ModelFormatError, BackendError (unknown, not installed, no device) and GraphError.

    >>> model = load("net.mnn")
    >>> model.run({"x": image})["y"]
    """
    plugins.load_ops()
    graph = source if isinstance(source, Graph) else _read(source)
    for what, level in (("precision", precision), ("memory", memory), ("power", power)):
        if level not in LEVELS:
            raise BackendError(f"{what}={level!r}: expected one of {', '.join(map(repr, LEVELS))}")
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise BackendError(f"threads={threads!r}: expected a positive integer, or None for all that this process may use")
    config = BackendConfig(threads or default_threads(), precision, memory, power, dict(options or {}))
    return Model(graph, open_backends(backend, config), strict=strict)


def _read(source: str | Path | bytes) -> Graph:
    from .formats import read_mnn  # late: a graph at hand needs no file formats

    return read_mnn(source)


class Model:
    """A model that can be run, by any number of threads at once. Made by `mnn_core.load`.

    inputs, outputs: what the model takes and gives, as declared. graph: it is not to be changed while the model lives.
    """

    def __init__(self, graph: Graph, backends: Sequence[Backend], *, strict: bool = False) -> None:
        self.graph = graph
        self.inputs: list[TensorInfo] = [i for i in graph.inputs if i.name not in graph.constants]
        self.outputs: list[TensorInfo] = list(graph.outputs)
        self.backends = [b.id for b in backends]
        self._names = tuple(o.name for o in self.outputs)
        self._store = Store()
        self._planner = Planner(backends, self._store, strict)
        self._visible = Planner(backends, self._store, visible=True)
        self._runners: dict[tuple[bool, tuple[str, ...]], Runner] = {}
        self._ports = [(i.name, boundary.computed_dtype(i)) for i in self.inputs]
        self._narrow = any(map(boundary.is_narrow, self.inputs))
        self._fast: dict[tuple, Callable[[list[np.ndarray]], dict[str, np.ndarray]]] = {}
        self._lock = threading.Lock()
        graph.check()

    @property
    def metadata(self) -> dict[str, str]:
        """The key/value strings that the model's author stored."""
        return self.graph.metadata

    def __repr__(self) -> str:
        return (f"<Model {self.graph.name or ''} on {self.backends[0]}: ({'; '.join(map(str, self.inputs))}) -> "
                f"({'; '.join(map(str, self.outputs))})>")

    def run(self, inputs: Mapping[str, Any], outputs: Sequence[str] | None = None, *,
            cancel: CancelToken | None = None) -> dict[str, np.ndarray]:
        """Runs the model; returns arrays by output name, which the caller owns.

        inputs: an array-like for each input. outputs: names of the outputs wanted, or of any tensors of the graph; None for
        all outputs. cancel: a token by which another thread may stop this run (CancelledError).

        Raises InputError (names, ranks, shapes), InputTypeError (a dtype that cannot be converted without changing a value),
        ShapeError while planning and KernelError while running.
        """
        if outputs is None and cancel is None and len(inputs) == len(self._ports):
            arrays, shapes = [], []
            for name, dtype in self._ports:
                array = inputs.get(name)
                if type(array) is not np.ndarray or array.dtype is not dtype:
                    break
                flags = array.flags
                if not (flags.c_contiguous and flags.aligned):
                    break
                arrays.append(array)
                shapes.append(array.shape)
            else:
                fast = self._fast.get(tuple(shapes))
                if fast is not None:
                    return fast(arrays)
        return self._run(inputs, outputs, None if cancel is None else Controls(cancel=cancel))

    def __call__(self, *arrays: Any, **named: Any) -> np.ndarray | tuple[np.ndarray, ...]:
        """Runs the model with inputs in order, or by name; returns one array, or a tuple of several."""
        if len(arrays) > len(self.inputs):
            raise InputError(f"{len(arrays)} inputs given; the model takes {len(self.inputs)}: "
                             f"{'; '.join(map(str, self.inputs))}")
        given = {info.name: array for info, array in zip(self.inputs, arrays)}
        twice = sorted(set(given) & set(named))
        if twice:
            raise InputError(f"input {twice[0]!r} is given twice, by position and by name")
        results = tuple(self.run({**given, **named}).values())
        return results[0] if len(results) == 1 else results

    def _run(self, inputs: Mapping[str, Any], outputs: Sequence[str] | None, controls: Controls | None,
             visible: bool = False) -> dict[str, np.ndarray]:
        boundary.check_names(self.inputs, inputs)
        arrays = {i.name: boundary.as_stored(i, inputs[i.name]) for i in self.inputs}
        shapes = {name: a.shape for name, a in arrays.items()}
        boundary.check_shapes(self.inputs, shapes)
        runner = self._runner(outputs, visible)
        results = runner.run(arrays, controls)
        if outputs is None and not visible:
            self._remember(runner, arrays)
        return self._finish(runner.outputs, results, arrays)

    def _finish(self, names: Sequence[str], results: Sequence[np.ndarray],
                arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Declared dtypes, and memory of their own: inputs and constants that are outputs as well are copied."""
        declared = {o.name: o for o in self.outputs}
        found: dict[str, np.ndarray] = {}
        for name, result in zip(names, results):
            value = boundary.as_declared(declared.get(name) or TensorInfo(name, None, None), result)
            if value is not result or not isinstance(value, np.ndarray):
                pass
            elif not (value.flags.owndata and value.flags.writeable) or any(value is other for other in found.values()) \
                    or any(np.may_share_memory(value, given) for given in arrays.values()):
                value = value.copy()
            found[name] = value
        return found

    def _runner(self, outputs: Sequence[str] | None, visible: bool = False) -> Runner:
        names = self._names if outputs is None else tuple(dict.fromkeys([outputs] if isinstance(outputs, str) else outputs))
        key = (visible, names)
        found = self._runners.get(key)
        if found is None:
            known = set(self.graph.tensor_names())
            unknown = [n for n in names if n not in known]
            if unknown:
                raise InputError(f"the model has no output or tensor {unknown[0]!r}; its outputs: {', '.join(self._names)}")
            with self._lock:
                if len(self._runners) > _MAX_FAST:
                    self._runners = {k: r for k, r in self._runners.items() if k[1] == self._names}
                found = self._runners.setdefault(key, (self._visible if visible else self._planner).runner(self.graph, names))
        return found

    def _remember(self, runner: Runner, arrays: Mapping[str, np.ndarray]) -> None:
        """Lets `run` skip all checks for these input shapes, if the plan for them is one host program."""
        plan = runner.first.plan(arrays)
        if self._narrow or runner.first.wanted or plan.following or len(plan.units) != 1 or plan.units[0].executable is None:
            return
        unit = plan.units[0]
        if set(unit.outputs) != set(self._names) or len(self._names) != len(self.outputs):
            return
        run = plan.executables()[0].program.run
        names = [i.name for i in self.inputs]
        picks = [names.index(n) for n in unit.inputs]
        straight = picks == list(range(len(names)))
        declared = {o.name: o.dtype for o in self.outputs}
        casts = {n: d for n in unit.outputs if (d := declared[n]) is not None and d != plan.specs[n].dtype}
        order = None if unit.outputs == self._names else self._names

        def fast(given: list[np.ndarray]) -> dict[str, np.ndarray]:
            found = dict(zip(unit.outputs, run(given if straight else [given[i] for i in picks])))
            for name, dtype in casts.items():
                found[name] = found[name].astype(dtype)
            return found if order is None else {n: found[n] for n in order}

        with self._lock:
            if len(self._fast) >= _MAX_FAST:
                self._fast.clear()
            self._fast[tuple(a.shape for a in arrays.values())] = fast

    def prepare(self, shapes: Mapping[str, Sequence[int]] | None = None) -> None:
        """Plans ahead for input shapes, so that the first run is as fast as the next; None: the declared shapes.

        Parts whose shapes depend on values are planned when these are known.
        """
        given = {i.name: i.shape for i in self.inputs if i.shape is not None} if shapes is None else dict(shapes)
        boundary.check_names(self.inputs, given)
        sizes: dict[str, tuple[int, ...]] = {}
        for name, shape in given.items():
            sizes[name] = tuple(int(d) for d in shape if d is not None)
            if len(sizes[name]) != len(shape):
                raise InputError(f"prepare: give shapes; input {name!r} has dimensions that may change")
        boundary.check_shapes(self.inputs, sizes)
        runner = self._runner(None)
        dtypes = dict(self._ports)
        stage = runner.first
        stage.prepare({n: Spec(sizes[n], dtypes[n]) for n in stage.inputs})

    def placement(self) -> list[Placement]:
        """Which backend runs each op, with which kernel, and why others do not; of the plan that was used last.

        Plans for the declared shapes if nothing was run yet. Ops that were folded or merged away while planning do not appear.
        """
        runner = self._runner(None)
        if not runner.first.plans:
            self.prepare()
        return [p for plan in self._last(runner) for unit in plan.units for p in unit.placements]

    @staticmethod
    def _last(runner: Runner) -> list[Plan]:
        """The chain of plans, stage by stage, that was used last."""
        found: list[Plan] = []
        stage: Stage | None = runner.first
        while stage is not None and stage.plans:
            plan = max(stage.plans.values(), key=lambda p: p.used)
            found.append(plan)
            stage = plan.following
        return found

    def profile(self, inputs: Mapping[str, Any], runs: int = 1) -> Profile:
        """Times every step of `runs` runs (after one to warm up): the mean of each, with its op, kernel and backend."""
        self.run(inputs)
        events: list[tuple[Key, float]] = []
        start = time.perf_counter()
        for _ in range(max(runs, 1)):
            self._run(inputs, None, Controls(events=events))
        return profiled(events, max(runs, 1), (time.perf_counter() - start) * 1e3 / max(runs, 1))

    def memory(self) -> Memory:
        """Bytes that the model holds now: weights as arrays, weights as kernels packed them, and the arenas of its plans."""
        with self._lock:
            runners = list(self._runners.values())
        plans = [plan for runner in runners for plan in runner.plans()]
        arenas = [sum(e.arena_bytes for e in plan.executables()) for plan in plans]
        packed = sum(b.packed_bytes() for b in self._planner.backends)
        return Memory(self._store.nbytes(), packed, arenas)

    def run_with_callback(self, inputs: Mapping[str, Any], before: Callable[..., Any] | None = None,
                          after: Callable[..., Any] | None = None) -> dict[str, np.ndarray]:
        """Runs op by op; before(op, arrays) gets the inputs of each op, after(op, arrays) its outputs, by tensor name.

        Every op of the graph is run as it stands there, but for those that are computed while planning. The arrays are those
        that the run works with: copy what is kept, and do not change them. A callback that returns False stops the run:
        CancelledError.
        """
        return self._run(inputs, None, Controls(before=before, after=after), visible=True)

    def save(self, path: str | Path) -> None:
        """Writes the graph as a `.mnn` file."""
        from .formats import write_mnn

        write_mnn(self.graph, path)

