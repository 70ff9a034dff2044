"""Control flow: a branch takes the place of its If; a loop runs its body, which is planned as a graph of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import GraphError
from ..ir import Graph, Op, Spec
from ..ops._fused_loop import fused_loop
from .scope import Scope

if TYPE_CHECKING:
    from .stages import Runner
    from .units import Controls


def expand_if(op: Op, known: Mapping[str, Spec], scope: Scope) -> list[Op] | None:
    """The ops of the branch that an If with a known condition takes; None for other ops.

    Tensors of the branch keep their names unless the graph around it uses the same ones.
    """
    if op.type != "If":
        return None
    if not op.inputs or op.inputs[0] not in known:
        raise GraphError(f"{op} has no condition: its first input is missing")
    condition = known[op.inputs[0]].value
    assert condition is not None
    if condition.size != 1:
        raise GraphError(f"{op}: its condition {op.inputs[0]!r} has shape {list(condition.shape)}; expected one element")
    side = 0 if condition.reshape(-1)[0] > 0 else 1
    which = "else_graph" if side else "then_graph"
    branch = _subgraph(op, which, scope)
    key = (op.outputs[0], op[which])
    if key not in scope.inlined:
        scope.inlined[key] = _inline(op, branch, side, scope)
    ops, _ = scope.inlined[key]
    return [replace(inner, inputs=list(inner.inputs), outputs=list(inner.outputs)) for inner in ops]


def _inline(op: Op, branch: Graph, side: int, scope: Scope) -> tuple[list[Op], dict[str, str]]:
    names: dict[str, str] = {}
    feeds = _feeds(op["aliases_inputs"], op.inputs)
    for info in branch.inputs:
        if info.name not in feeds:
            raise GraphError(f"{op}: nothing feeds input {info.name!r} of its branch {branch.name!r}")
        names[info.name] = feeds[info.name]
    for name, value in branch.constants.items():
        if name in names:
            raise GraphError(f"{op}: {name!r} is both an input and a constant of its branch {branch.name!r}")
        names[name] = scope.fresh(name)
        scope.constants[names[name]] = value
    results = _branch_outputs(op, branch, side)
    made = {name for inner in branch.ops for name in inner.outputs if name}
    direct: dict[str, str] = {}
    for target, source in zip(op.outputs, results):
        if target and source in made and source not in direct:
            direct[source] = target
    for name in sorted(made):
        names[name] = direct[name] if name in direct else scope.fresh(name)
    scope.subgraphs.update({n: g for n, g in branch.subgraphs.items() if n not in scope.subgraphs})
    ops = [replace(inner, inputs=[names[n] if n else "" for n in inner.inputs],
                   outputs=[names[n] if n else "" for n in inner.outputs]) for inner in branch.ops]
    for target, source in zip(op.outputs, results):
        if target and direct.get(source) != target:
            if source not in names:
                raise GraphError(f"{op}: its branch {branch.name!r} makes no {source!r}")
            ops.append(Op("Identity", [names[source]], [target], name=op.name))
    return ops, names


def _branch_outputs(op: Op, branch: Graph, side: int) -> list[str]:
    aliases = op["aliases_outputs"] or ()
    results = [info.name for info in branch.outputs]
    if aliases:
        results = [data[side] for data in map(_strings, aliases) if len(data) > side]
    if len(results) < len(op.outputs):
        raise GraphError(f"{op} has {len(op.outputs)} outputs; its branch {branch.name!r} gives {len(results)}")
    return results


def _strings(vector: Mapping[str, Any]) -> tuple[str, ...]:
    """A StringVec; files leave out empty ones."""
    return tuple(vector.get("data") or ())


def _feeds(aliases: Sequence[Mapping[str, Any]] | None, inputs: Sequence[str]) -> dict[str, str]:
    """Subgraph input name -> the tensor that feeds it."""
    return {inner: name for name, alias in zip(inputs, aliases or ()) for inner in _strings(alias)}


def _subgraph(op: Op, attribute: str, scope: Scope) -> Graph:
    name = op[attribute]
    if name not in scope.subgraphs:
        raise GraphError(f"{op}: its {attribute} {name!r} is not in the file; it has: "
                         f"{', '.join(sorted(scope.subgraphs)) or 'no subgraphs'}")
    return scope.subgraphs[name]


#: Runs a loop: arrays by position of the op's inputs -> arrays by position of its outputs.
Loop = Callable[[Sequence["np.ndarray | None"], "Controls | None"], "list[np.ndarray]"]


def build_loop(op: Op, scope: Scope, runner: Callable[[Graph, Sequence[str], Scope], Runner]) -> Loop:
    """A While op as a function. runner makes what runs a subgraph for the outputs named."""
    if op.param == "LoopParam":
        numeric = fused_loop(op)
        return lambda arrays, controls: numeric(arrays)
    if op.attrs.get("cond_graph"):
        return _while_loop(op, scope, runner)
    return _onnx_loop(op, scope, runner)


def _onnx_loop(op: Op, scope: Scope, runner: Callable[[Graph, Sequence[str], Scope], Runner]) -> Loop:
    """ONNX form: inputs (trips, condition, N vars); the body makes (condition, N vars, K scans) of (i, condition, N vars)."""
    body = _subgraph(op, "body_graph", scope)
    ports = [info.name for info in body.inputs]
    results = [info.name for info in body.outputs]
    n = len(op.inputs) - 2
    scans = len(results) - 1 - n
    clash = sorted(set(ports) & set(body.constants))
    if clash:
        raise GraphError(f"{op}: {clash[0]!r} is both an input and a constant of its body {body.name!r}")
    if len(ports) != n + 2 or scans < 0 or len(op.outputs) > n + scans:
        raise GraphError(f"{op} has {len(op.inputs)} inputs and {len(op.outputs)} outputs; its body {body.name!r} has "
                         f"{len(ports)} and {len(results)}, where a body takes (i, condition, variables) and gives "
                         "(condition, variables, scans)")
    run = runner(body, results, scope)

    def loop(arrays: Sequence[np.ndarray | None], controls: Controls | None) -> list[np.ndarray]:
        trips = _scalar(op, arrays[0], None)
        going = _scalar(op, arrays[1], 1) > 0
        state = [_present(op, a, op.inputs[i + 2]) for i, a in enumerate(arrays[2:])]
        stacks: list[list[np.ndarray]] = [[] for _ in range(scans)]
        i = 0
        while going and (trips is None or i < trips):
            feeds = dict(zip(ports, (np.array(i, np.int32), np.array(1, np.int32), *state)))
            values = run.run(feeds, controls)
            going = _scalar(op, values[0], 1) > 0
            state = values[1:1 + n]
            for stack, value in zip(stacks, values[1 + n:]):
                stack.append(value)
            i += 1
        if i:
            return [*state, *map(np.stack, stacks)]
        feeds = dict(zip(ports, (np.array(0, np.int32), np.array(1, np.int32), *state)))
        return [*state, *(run.empty_scan(name, feeds) for name in results[1 + n:])]

    return loop


def _while_loop(op: Op, scope: Scope, runner: Callable[[Graph, Sequence[str], Scope], Runner]) -> Loop:
    """TensorFlow form: while the condition graph gives more than 0, run the body and carry over what aliases_updates names."""
    condition, body = _subgraph(op, "cond_graph", scope), _subgraph(op, "body_graph", scope)
    updates = [_strings(u) for u in op["aliases_updates"] or ()]
    wanted = list(op["aliases_outputs"] or ())
    made = [info.name for info in body.outputs]
    check = runner(condition, [condition.outputs[0].name], scope)
    step = runner(body, made, scope)
    inner = [_strings(alias) for alias in op["aliases_inputs"] or ()]

    def loop(arrays: Sequence[np.ndarray | None], controls: Controls | None) -> list[np.ndarray]:
        values = {name: _present(op, a, outer) for names, a, outer in zip(inner, arrays, op.inputs) for name in names}
        while _scalar(op, check.run({i.name: values[i.name] for i in condition.inputs}, controls)[0], 0) > 0:
            results = dict(zip(made, step.run({i.name: values[i.name] for i in body.inputs}, controls)))
            old = dict(values)
            for update in updates:
                source, targets = update[0], update[1:]
                for target in targets:
                    values[target] = results[source] if source in results else old[source]
            values.update({name: results[name] for name in wanted if name in results})
        missing = [name for name in wanted if name not in values]
        if missing:
            carried = {u[0]: values[u[1]] for u in updates if u[1] in values}
            values.update({name: carried[name] for name in missing if name in carried})
        unknown = [name for name in wanted if name not in values]
        if unknown:
            raise GraphError(f"{op}: its output {unknown[0]!r} is neither an input nor an update of its body {body.name!r}")
        return [values[name] for name in wanted]

    return loop


def _scalar(op: Op, array: np.ndarray | None, default: Any) -> Any:
    if array is None:
        return default
    if array.size != 1:
        raise GraphError(f"{op}: a trip count or condition has shape {list(array.shape)}; expected one element")
    return array.reshape(-1)[0].item()


def _present(op: Op, array: np.ndarray | None, name: str) -> np.ndarray:
    if array is None:
        raise GraphError(f"{op}: loop variable {name!r} is absent")
    return array
