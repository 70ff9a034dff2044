"""Lowering to Raster gives what the definition gives, for every example of every op that only moves data."""

from __future__ import annotations

import numpy as np
import pytest

from mnn_core.ir import Op, Spec
from mnn_core.ops import all_ops

#: Only lowered when their indices are known.
GATHERS = ("Gather", "GatherV2", "GatherND")
CASES = [(d, e) for d in all_ops().values() for e in d.examples if d.geometry or d.type in GATHERS]


def arrays(inputs: list) -> list[np.ndarray | None]:
    """Different numbers for every element, so that a wrong index shows."""
    return [x if x is None or isinstance(x, np.ndarray) else
            (np.arange(x.size) % (251 if i == 0 else 5)).astype(x.dtype).reshape(x.shape) for i, x in enumerate(inputs)]


def run_lowered(definition, attrs: dict, ins: list, fixed: list[bool]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(outputs by the definition, outputs by Rasters). fixed: which inputs have a value at plan time."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(ins)]
    direct = definition.compute(Op(definition.type, names, [], dict(attrs)), *ins)
    direct = list(direct) if isinstance(direct, tuple) else [direct]
    op = Op(definition.type, names, [f"y{i}" for i in range(len(direct))], dict(attrs), name="op")
    specs = [None if a is None else Spec.of(a) if f else Spec(a.shape, a.dtype) for a, f in zip(ins, fixed)]
    outs = list(definition.infer(op, specs))
    assert [(s.shape, s.dtype) for s in outs] == [(a.shape, a.dtype) for a in direct]
    have = {n: a for n, a in zip(names, ins) if n}
    lowered = definition.lower(op, specs, outs)
    if lowered is None:
        assert not all(fixed[1:]), "not lowered although all indices are known"
        return direct, direct
    have.update(lowered.constants)
    for step in lowered.ops:
        assert step.type == "Raster"
        rule = all_ops()["Raster"]
        rule.infer(step, [Spec.of(have[n]) for n in step.inputs])
        have[step.outputs[0]] = rule.compute(step, *(have[n] for n in step.inputs))
    return direct, [have[n] for n in op.outputs]


@pytest.mark.parametrize(("definition", "example"), CASES, ids=[f"{d.type}-{e.name}" for d, e in CASES])
def test_lowered_equals_definition(definition, example) -> None:
    fixed = [isinstance(x, np.ndarray) for x in example.inputs]
    direct, rastered = run_lowered(definition, dict(example.attrs), arrays(list(example.inputs)), fixed)
    for want, got in zip(direct, rastered):
        np.testing.assert_array_equal(got, want, strict=True)
