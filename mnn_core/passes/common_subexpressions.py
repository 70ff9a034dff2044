"""Ops that compute the same of the same are merged."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import Graph, Op
from ..ops import find
from . import Pass


def _key(value: Any) -> Any:
    """A hashable form of an attribute."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return tuple((k, _key(v)) for k, v in sorted(value.items()))
    if isinstance(value, (tuple, list)):
        return tuple(_key(v) for v in value)
    return type(value).__name__, value


def _same(op: Op) -> Any:
    return op.type, op.param, tuple(op.inputs), len(op.outputs), _key(op.attrs)


def run(graph: Graph) -> int:
    """Merges equal small constants, then equal pure ops. The copy that is a graph output stays."""
    outputs = {o.name for o in graph.outputs}
    renamed: dict[str, str] = {}
    seen: dict[Any, Any] = {}
    for name, constant in graph.constants.items():
        if isinstance(constant, np.ndarray) and constant.size <= 64 and name not in outputs:
            first = seen.setdefault(("constant", _key(constant)), name)
            if first != name:
                renamed[name] = first
    kept, changed = [], 0
    for op in graph.ops:
        op.inputs = [renamed.get(name, name) for name in op.inputs]
        found = find(op.type)
        if found is None or not found.pure or any(name in outputs for name in op.outputs):
            kept.append(op)
            continue
        key = _same(op)
        if key in seen:
            renamed.update({n: other for n, other in zip(op.outputs, seen[key]) if n})
            if all(other or not n for n, other in zip(op.outputs, seen[key])):
                changed += 1
                continue
        seen[key] = list(op.outputs)
        kept.append(op)
    graph.ops[:] = kept
    return changed


common_subexpressions = Pass("common-subexpressions", run, "compute equal things once")
