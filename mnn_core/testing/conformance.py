"""Runs op examples on a backend and compares with the NumPy definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import plugins
from ..errors import BackendError, MNNError
from ..ir import Graph, Op, TensorInfo
from ..ops import Example, OpDef, all_ops


@dataclass
class Result:
    """What became of one example: outcome is "passed", "failed" or "declined" (the backend has no kernel for it)."""

    name: str
    op: str
    outcome: str
    detail: str = ""


def examples(op_types: Sequence[str] | None = None) -> Iterator[tuple[str, OpDef, Example]]:
    """Every example of the registered ops, with a name for it."""
    plugins.load_ops()
    for op_type, definition in sorted(all_ops().items()):
        if op_types is None or op_type in op_types:
            for index, example in enumerate(definition.examples):
                yield f"{op_type}-{example.name or index}", definition, example


def _arrays(example: Example) -> list[np.ndarray | None]:
    rng = np.random.default_rng(0)
    made: list[np.ndarray | None] = []
    for item in example.inputs:
        if item is None or isinstance(item, np.ndarray):
            made.append(item)
        elif item.dtype.kind == "f":
            made.append(rng.standard_normal(item.shape).astype(item.dtype))
        else:
            made.append(rng.integers(0, 5, item.shape).astype(item.dtype))
    return made


def _graph(definition: OpDef, example: Example, arrays: Sequence[np.ndarray | None], count: int) -> Graph:
    """A graph of the one op. Arrays of the example that infer reads, or that stand for weights, are constants."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(arrays)]
    fixed = {n: a for i, (n, a) in enumerate(zip(names, arrays)) if a is not None
             and (i in definition.content or isinstance(example.inputs[i], np.ndarray))}
    free = [(n, a) for n, a in zip(names, arrays) if a is not None and n not in fixed]
    outputs = [f"y{i}" for i in range(count)]
    op = Op(definition.type, names, outputs, dict(example.attrs), name=f"example_{definition.type}")
    return Graph(ops=[op], inputs=[TensorInfo(n, a.dtype, a.shape) for n, a in free],
                 outputs=[TensorInfo(n, None, None) for n in outputs], constants=dict(fixed))


def check(backend: str, definition: OpDef, example: Example, **settings: Any) -> str:
    """Runs one example; returns "passed" or "declined". Raises AssertionError if values differ, MNNError if it fails."""
    from ..session import load

    arrays = _arrays(example)
    op = Op(definition.type, [""] * len(arrays), [], dict(example.attrs), name=f"example_{definition.type}")
    expected = definition.compute(op, *arrays)
    expected = expected if isinstance(expected, tuple) else (expected,)
    graph = _graph(definition, example, arrays, len(expected))
    if not graph.inputs:  # nothing is left to run: all would be folded at plan time
        return "declined"
    try:
        model = load(graph, backend=[backend], strict=True, **settings)
        outputs = model.run({info.name: arrays[int(info.name[1:])] for info in graph.inputs})
    except BackendError:
        if backend == "numpy":
            raise
        return "declined"
    for info, want in zip(graph.outputs, expected):
        got = outputs[info.name]
        assert got.shape == want.shape, f"{info.name}: shape {got.shape}, expected {want.shape}"
        scale = max(1.0, float(np.abs(want[np.isfinite(want)]).max(initial=0))) if want.dtype.kind == "f" else 1.0
        np.testing.assert_allclose(got, want, rtol=0, atol=example.tolerance * scale, equal_nan=True)
    return "passed"


def run_conformance(backend: str, op_types: Sequence[str] | None = None, **settings: Any) -> list[Result]:
    """Runs all examples on a backend. Raises BackendError if the backend cannot be used at all."""
    plugins.open_backend(backend)
    results = []
    for name, definition, example in examples(op_types):
        try:
            results.append(Result(name, definition.type, check(backend, definition, example, **settings)))
        except (AssertionError, MNNError) as error:
            results.append(Result(name, definition.type, "failed", " ".join(str(error).split())[:400]))
    return results


def conformance(backend: str, **settings: Any) -> Callable[..., None]:
    """A pytest test of all examples on a backend; settings are passed to `mnn_core.load`. Declined examples pass."""
    import pytest

    cases = list(examples())

    @pytest.mark.parametrize(("definition", "example"), [c[1:] for c in cases], ids=[c[0] for c in cases])
    def test_matches_definition(definition: OpDef, example: Example) -> None:
        assert check(backend, definition, example, **settings) in ("passed", "declined")

    return test_matches_definition
