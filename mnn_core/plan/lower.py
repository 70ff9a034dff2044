"""Lowering: ops that move data become Raster, composite ops that no preferred backend has become simpler ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import GraphError
from ..ir import Op, Spec
from ..ops import definition
from .infer import infer_op

#: Ops lower to ops that lower again, but not this often: the definitions then go round in a circle.
MAX_DEPTH = 16


def lower(ops: Sequence[Op], specs: dict[str, Spec], keep: Callable[[Op], bool]) -> list[Op]:
    """Lowers what can be lowered, except for the ops that `keep` accepts; puts the specs of new tensors into `specs`."""
    return [new for op in ops for new in _lower(op, specs, keep, 0)]


def _lower(op: Op, specs: dict[str, Spec], keep: Callable[[Op], bool], depth: int) -> list[Op]:
    what = definition(op)
    if what.lower is None or keep(op):
        return [op]
    if depth == MAX_DEPTH:
        raise GraphError(f"{op}: lowering does not end; the `lower` of {op.type} and of what it makes go round in a circle")
    outs = [specs[name] if name else Spec((), specs[op.outputs[0]].dtype) for name in op.outputs]
    lowered = what.lower(op, [specs[name] if name else None for name in op.inputs], outs)
    if lowered is None:
        return [op]
    for name, value in lowered.constants.items():
        specs[name] = Spec.of(value)
    result = []
    for new in lowered.ops:
        for name, spec in zip(new.outputs, infer_op(new, specs)):
            if name in op.outputs and (spec.shape, spec.dtype) != (specs[name].shape, specs[name].dtype):
                raise GraphError(f"{op} lowers to {new}, whose output is {spec}; its shape rule announced {specs[name]}")
            if name:
                specs.setdefault(name, spec)
        new.name = new.name or op.name
        result += _lower(new, specs, keep, depth + 1)
    return result
