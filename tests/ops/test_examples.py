"""Every example of every op: its shape rule announces what its kernel gives, and what it is lowered to gives the same."""

import numpy as np
import pytest
from ops.definitions import run_lowered, run_op

from mnn_core.ir import Op
from mnn_core.ops import Example, OpDef
from mnn_core.testing.conformance import _arrays, examples

CASES = list(examples())


@pytest.mark.parametrize(("definition", "example"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_example(definition: OpDef, example: Example) -> None:
    arrays = _arrays(example)
    names = ["" if a is None else f"x{i}" for i, a in enumerate(arrays)]
    results = run_op(Op(definition.type, names, [], dict(example.attrs), "example"), arrays)
    op = Op(definition.type, names, [f"y{i}" for i in range(len(results))], dict(example.attrs), "example")
    lowered = run_lowered(op, arrays) if not definition.dynamic else None
    for got, want in zip(lowered or [], results):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=example.tolerance, atol=example.tolerance)
