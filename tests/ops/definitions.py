"""Runs op definitions: shape rule and kernel, which must agree, and lowerings."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from mnn_core.ir import Op, Spec
from mnn_core.ops import definition


def _specs(op: Op, arrays: Sequence[np.ndarray | None]) -> list[Spec | None]:
    content = definition(op).content
    return [None if a is None else Spec.of(a) if i in content else Spec(a.shape, a.dtype) for i, a in enumerate(arrays)]


def _tuple(value: Any) -> tuple[np.ndarray, ...]:
    return value if isinstance(value, tuple) else (value,)


def apply(op_type: str, attrs: dict[str, Any], *inputs: np.ndarray | None, outputs: int = 1) -> Any:
    """The outputs of an op by its definition: an array, or a tuple if outputs > 1. Warnings are errors."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(inputs)]
    op = Op(op_type, names, [f"y{i}" for i in range(outputs)], attrs, "tested")
    return run_op(op, inputs)[0] if outputs == 1 else run_op(op, inputs)


def run_op(op: Op, inputs: Sequence[np.ndarray | None]) -> tuple[np.ndarray, ...]:
    """Runs an op; checks that its shape rule announced what its kernel gives."""
    what = definition(op)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        announced = None if what.dynamic else what.infer(op, _specs(op, inputs))
        results = _tuple(what.compute(op, *inputs))
    for i, result in enumerate(results):
        assert isinstance(result, np.ndarray), f"output {i} is a {type(result)}"
        if announced is not None:
            assert (result.shape, result.dtype) == (announced[i].shape, announced[i].dtype), f"output {i}"
            if announced[i].value is not None:
                np.testing.assert_array_equal(announced[i].value, result)
    return results


def run_lowered(op: Op, inputs: Sequence[np.ndarray | None]) -> list[np.ndarray] | None:
    """Runs what an op is lowered to; None if it stays as it is."""
    what = definition(op)
    if what.lower is None:
        return None
    specs = _specs(op, inputs)
    lowered = what.lower(op, specs, what.infer(op, specs))
    if lowered is None:
        return None
    values = dict(lowered.constants) | {n: a for n, a in zip(op.inputs, inputs) if n}
    for inner in lowered.ops:
        values.update(zip(inner.outputs, run_op(inner, [values[n] if n else None for n in inner.inputs])))
    return [values[n] for n in op.outputs]
