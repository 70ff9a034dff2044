"""The table of what draws nodes: a function per family of operators."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from .draft import Draft, Tensor

Family = Callable[[Draft, str], "list[Tensor]"]

FAMILIES: dict[str, Family] = {}


def family(*operators: str) -> Callable[[Family], Family]:
    """Registers a function that adds a node of one of some operators to a draft."""

    def add(function: Family) -> Family:
        for operator in operators:
            assert operator not in FAMILIES, operator
            FAMILIES[operator] = function
        return function

    return add


def versions(op: str) -> list[int]:
    """The operator-set versions in which an operator's definition changed, oldest first."""
    if op not in _versions:
        _versions[op] = sorted({s.since_version for s in onnx.defs.get_all_schemas_with_history()
                                if s.name == op and s.domain == ""})
    return _versions[op]


def known(op: str, opset: int) -> bool:
    """Whether an operator exists, and is not deprecated, in a version of the operator set."""
    try:
        return not onnx.defs.get_schema(op, opset, "").deprecated
    except onnx.defs.SchemaError:
        return False


_versions: dict[str, list[int]] = {}
