"""Random small graphs of all operators agree with onnxruntime; `python -m random_graphs` draws any number of others."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from random_graphs import FAMILIES, Case, cases, converted, supported
from random_graphs.cases import Counts
from random_graphs.check import Fault, check

#: Graphs of one node for each operator, and graphs of two to eight nodes: 2,000 and more.
EACH, CHAINS = 8, 650
SETTINGS = {"derandomize": True, "database": None, "deadline": None, "suppress_health_check": list(HealthCheck)}

#: Operators that the converter knows and that are not drawn.
UNDRAWN = {
    **dict.fromkeys(("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
                    "its result is random"),
    **dict.fromkeys(("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"), "texts have tests of their own"),
    **dict.fromkeys(("Optional", "OptionalGetElement", "OptionalHasElement"), "optionals have tests of their own"),
    "ImageDecoder": "onnxruntime lacks it",
}


def _check(case: Case) -> None:
    try:
        check(case)
    except Fault as fault:
        raise Fault(f"{fault}\n{case!r}") from fault


@pytest.mark.parametrize("operator", supported())
def test_operator(operator: str) -> None:
    counts = Counts()

    @settings(max_examples=EACH, **SETTINGS)
    @given(cases([operator], (1, 1), counts))
    def agrees(case: Case) -> None:
        _check(case)

    agrees()
    assert counts[operator, "run"] > 0  # else it would be tested by nothing


def test_chains() -> None:
    operators, counts = supported(), Counts()

    @settings(max_examples=CHAINS, **SETTINGS)
    @given(cases(operators, (2, 8), counts))
    def agrees(case: Case) -> None:
        _check(case)

    agrees()
    assert EACH * len(operators) + CHAINS >= 2000
    assert len({op for op, kind in counts if kind == "run"}) > len(operators) // 2


def test_every_operator_is_drawn() -> None:
    assert converted() - set(FAMILIES) - set(UNDRAWN) == set()
