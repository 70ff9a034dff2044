"""Shape inference and folding: what can be known of a run of ops before it runs.

Ops are taken in order. One whose inputs are all known by value is computed now; one that needs a value which only running
can give ends the stage for itself and for what depends on it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import GraphError, MNNError, OutOfMemoryError, ShapeError
from ..ir import Op, Spec
from ..ir.dtypes import OBJECT
from ..ops import OpDef, definition
from .scope import Scope

#: A folded value may be this big, or four times what it was computed from: `ConstantOfShape` must not fill the memory.
FOLD_BYTES = 1 << 16
#: Bytes of memory of this machine: a larger tensor is refused while planning.
MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 1 << 40
#: Values that decide shapes by way of other ops are planned with if they are integers and no more than this many.
WANTED_SIZE = 8


@dataclass
class Inferred:
    """The first stage of a run of ops.

    ops: run first; the specs of all their tensors are known. boundary: run next, one at a time, as their output shapes depend
    on data. rest: wait for these. specs: of every tensor seen, with the values that are known. wanted: inputs whose
    values must be given for this stage to be planned; the other fields mean nothing then.
    """

    specs: dict[str, Spec]
    ops: list[Op] = field(default_factory=list)
    boundary: list[Op] = field(default_factory=list)
    rest: list[Op] = field(default_factory=list)
    wanted: set[str] = field(default_factory=set)

    def needed_later(self) -> set[str]:
        """Tensors that boundary and rest read."""
        return {name for op in (*self.boundary, *self.rest) for name in op.inputs if name}


#: Turns an op with known inputs into other ops (a branch in place of its If), or None.
Expand = Callable[[Op, Mapping[str, Spec]], "list[Op] | None"]


def infer(ops: Iterable[Op], inputs: Mapping[str, Spec], scope: Scope, expand: Expand | None = None) -> Inferred:
    """Infers shapes and folds. inputs: specs of the tensors that exist before the ops run.

    Raises ShapeError naming the op and its input shapes, and UnsupportedOpError for op types without a definition.
    """
    found = Inferred(dict(inputs))
    specs = found.specs
    made: dict[str, Op] = {}
    pending = deque(ops)
    while pending:
        op = pending.popleft()
        ins = [_spec(name, specs, scope) for name in op.inputs]
        if any(name and spec is None for name, spec in zip(op.inputs, ins)):
            found.rest.append(op)
            continue
        what = definition(op)
        missing = [op.inputs[i] for i in what.content if i < len(ins) and _lacks_value(op.inputs[i], ins[i], scope)]
        if missing:
            wanted = [_sources(name, made, specs, inputs) for name in missing]
            if all(wanted):  # neither None nor empty
                found.wanted.update(*(w for w in wanted if w))
                return found
            found.rest.append(op)
            continue
        for i in what.content:
            if i < len(ins) and op.inputs[i]:
                ins[i] = Spec.of(_value(op.inputs[i], specs, scope))
        expanded = expand(op, {n: s for n, s in zip(op.inputs, ins) if s is not None}) if expand else None
        if expanded is not None:
            pending.extendleft(reversed(expanded))
            continue
        dynamic = what.dynamic or any(s is not None and s.dtype == OBJECT for s in ins)
        if dynamic and _known(op, what, specs, scope) and _fold_dynamic(op, what, specs, scope):
            continue
        if dynamic:
            found.boundary.append(op)
            continue
        _one(op, what, ins, specs, scope)
        if any(specs[name].value is None for name in op.outputs if name):
            found.ops.append(op)
            made.update(dict.fromkeys(op.outputs, op))
    return found


def infer_op(op: Op, specs: Mapping[str, Spec]) -> list[Spec]:
    """Output specs of one op whose input specs are known. Raises ShapeError naming the op and its input shapes."""
    return _run_rule(op, definition(op), [specs[name] if name else None for name in op.inputs])


def fold(ops: Sequence[Op], specs: dict[str, Spec], scope: Scope) -> list[Op]:
    """Computes the ops whose inputs are all known; returns the others. For ops that lowering made.

    What depends on the graph's constants only is kept for other plans, under everything that decides it: the names of tensors
    that lowering makes do not tell for which shapes they were made.
    """
    left = []
    for op in ops:
        what, ins = definition(op), [_spec(name, specs, scope) for name in op.inputs]
        outs = [specs[name] for name in op.outputs if name]
        if what.dynamic or not _known(op, what, specs, scope) or not _worth_folding(ins, outs):
            left.append(op)
            continue
        static = all(map(scope.is_static, op.inputs)) and not any(isinstance(v, np.ndarray) for v in op.attrs.values())
        key = (op.type, tuple(op.inputs), repr(sorted(op.attrs.items(), key=lambda item: item[0]))) if static else None
        values = scope.lowered.get(key) if key else None
        if values is None:
            values = _compute(op, what, specs, scope)
        if key:
            scope.lowered[key] = values
        specs.update({name: Spec.of(value) for name, value in zip(op.outputs, values) if name})
    return left


def live(ops: Sequence[Op], outputs: Iterable[str]) -> list[Op]:
    """The ops that outputs depend on, in order."""
    wanted, kept = set(outputs), []
    for op in reversed(ops):
        if wanted.intersection(op.outputs):
            kept.append(op)
            wanted.update(op.inputs)
    return kept[::-1]


def _one(op: Op, what: OpDef, ins: Sequence[Spec | None], specs: dict[str, Spec], scope: Scope) -> None:
    """Puts the specs of an op's outputs into `specs`, with values if they can be computed."""
    outs = _run_rule(op, what, ins)
    static = all(map(scope.is_static, op.inputs)) and what.pure
    if any(s.value is None for s in outs) and _known(op, what, specs, scope) and _worth_folding(ins, outs):
        values = _compute(op, what, specs, scope)
        outs = [Spec.of(v) for v in values]
    for name, spec in zip(op.outputs, outs):
        if name:
            specs[name] = spec
            if static and spec.value is not None:
                scope.folded[name] = spec.value


def _fold_dynamic(op: Op, what: OpDef, specs: dict[str, Spec], scope: Scope) -> bool:
    """Computes an op of data-dependent shape whose inputs are known."""
    if not what.pure:
        return False
    for name, value in zip(op.outputs, _compute(op, what, specs, scope)):
        if name:
            specs[name] = Spec.of(value)
    return True


def _run_rule(op: Op, what: OpDef, ins: Sequence[Spec | None]) -> list[Spec]:
    def shown() -> str:
        return ", ".join("absent" if s is None else str(s) for s in ins)

    try:
        outs = list(what.infer(op, ins))
    except MNNError as error:
        if op.name and op.name in str(error):
            raise
        raise type(error)(f"{op} with inputs {shown()}: {error}") from error
    except Exception as error:
        raise ShapeError(f"{op} does not accept inputs {shown()}: {type(error).__name__}: {error}") from error
    if len(outs) < len(op.outputs):
        raise GraphError(f"{op} has {len(op.outputs)} outputs; an op of its type makes {len(outs)} of inputs {shown()}")
    for spec in outs:
        if min(spec.shape, default=0) < 0:
            raise ShapeError(f"{op} with inputs {shown()} would make {', '.join(map(str, outs))}")
        if spec.nbytes > MEMORY:
            raise OutOfMemoryError(f"{op} with inputs {shown()} would make {', '.join(map(str, outs))}; "
                                   f"this machine has {MEMORY} bytes of memory")
    return outs


def _compute(op: Op, what: OpDef, specs: Mapping[str, Spec], scope: Scope) -> list[np.ndarray]:
    arrays = [_value(name, specs, scope) if name else None for name in op.inputs]
    try:
        values = what.compute(op, *arrays)
    except MNNError:
        raise
    except Exception as error:
        shown = ", ".join("absent" if a is None else str(Spec.of(a)) for a in arrays)
        raise ShapeError(f"{op} cannot be computed from {shown}: {type(error).__name__}: {error}") from error
    out = []
    for value in values if isinstance(values, tuple) else (values,):
        array = np.array(value, order="C", copy=True)  # it may be a view of an input; plans keep it
        array.flags.writeable = False
        out.append(array)
    return out


def _worth_folding(ins: Sequence[Spec | None], outs: Sequence[Spec]) -> bool:
    return sum(s.nbytes for s in outs) <= max(FOLD_BYTES, 4 * sum(s.nbytes for s in ins if s is not None))


def _known(op: Op, what: OpDef, specs: Mapping[str, Spec], scope: Scope) -> bool:
    """Whether all inputs are known by value and the op may be computed now."""
    return what.pure and all(not n or not _lacks_value(n, specs.get(n), scope) for n in op.inputs)


def _spec(name: str, specs: dict[str, Spec], scope: Scope) -> Spec | None:
    if name and name not in specs:
        spec = scope.spec(name)
        if spec is not None:
            specs[name] = spec
    return specs.get(name) if name else None


def _lacks_value(name: str, spec: Spec | None, scope: Scope) -> bool:
    return bool(name) and (spec is None or spec.value is None) and name not in scope.constants


def _value(name: str, specs: Mapping[str, Spec], scope: Scope) -> np.ndarray:
    value = specs[name].value
    return scope.array(name) if value is None else value


def _sources(name: str, made: Mapping[str, Op], specs: Mapping[str, Spec], inputs: Mapping[str, Spec]) -> set[str] | None:
    """Inputs whose values would make a tensor's value known; None if running a stage first is the better way."""
    if name in inputs:
        return {name}
    found: set[str] = set()
    todo, seen = [name], {name}
    while todo:
        current = todo.pop()
        spec = specs[current]
        if spec.value is not None:
            continue
        if spec.size > WANTED_SIZE or spec.dtype.kind not in "iu":
            return None
        if current in inputs:
            found.add(current)
            continue
        op = made.get(current)
        if op is None:
            continue  # a packed constant
        if not definition(op).pure:
            return None
        todo += [n for n in op.inputs if n and n not in seen]
        seen.update(op.inputs)
    return found
