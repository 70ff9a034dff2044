"""Every example of every op, on every row of every instruction set that takes it, against the op's definition."""

from __future__ import annotations

import pytest
from kernel_rows import ISAS, check

from mnn_core.ops import Example, OpDef
from mnn_core.testing.conformance import _arrays, examples

CASES = list(examples())


def _tried(isa: str, definition: OpDef, example: Example) -> list[str]:
    arrays = _arrays(example)
    ran = []
    for constant in ((), tuple(range(1, len(arrays)))):  # with weights that are computed, and with constant ones
        if not constant or len(arrays) > 1:
            ran += check(isa, definition.type, dict(example.attrs), arrays, constant, max(example.tolerance, 2e-6))
    return ran


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("definition", "example"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_example(definition: OpDef, example: Example, isa: str) -> None:
    if not definition.dynamic:
        _tried(isa, definition, example)
