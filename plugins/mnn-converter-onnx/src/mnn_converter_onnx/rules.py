"""The table of conversion rules: one small function per ONNX operator and range of operator-set versions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mnn_core import ConversionError

if TYPE_CHECKING:
    from .builder import Builder
    from .node import Node

Convert = Callable[["Node", "Builder"], Any]


class Unsupported(ConversionError):
    """An attribute value or a form of an operator that cannot be converted; the message says which, and why."""


@dataclass(frozen=True)
class Rule:
    """How an operator of some operator-set versions is converted. since, until: inclusive; until None: the newest."""

    op_type: str
    domain: str
    since: int
    until: int | None
    convert: Convert


_rules: dict[tuple[str, str], list[Rule]] = {}


def rule(*op_types: str, since: int = 1, until: int | None = None, domain: str = "") -> Callable[[Convert], Convert]:
    """Registers a conversion function for operators; it receives the node and the builder of the graph around it."""

    def add(convert: Convert) -> Convert:
        for op_type in op_types:
            _rules.setdefault((domain, op_type), []).append(Rule(op_type, domain, since, until, convert))
        return convert

    return add


def find(domain: str, op_type: str, version: int) -> Rule | None:
    """The rule for an operator in a version of its domain's operator set."""
    for found in _rules.get((domain, op_type), ()):
        if found.since <= version and (found.until is None or version <= found.until):
            return found
    return None


def all_rules() -> dict[tuple[str, str], list[Rule]]:
    """(domain, operator) -> its rules."""
    return _rules


def table() -> dict[str, str]:
    """Every operator that has a rule -> the versions that are converted."""
    found = {}
    for (domain, op_type), rules in sorted(_rules.items()):
        spans = sorted((r.since, r.until) for r in rules)
        name = f"{domain}.{op_type}" if domain else op_type
        found[name] = ", ".join("all versions" if (low, high) == (1, None) else f"version {low} on" if high is None
                                else f"versions {low} to {high}" for low, high in spans)
    return found


def wrong(what: str, got: Any, expected: str) -> Unsupported:
    """The error for an attribute value that has no counterpart."""
    shown = got.tolist() if isinstance(got, np.ndarray) else got
    return Unsupported(f"{what} {shown!r} is not supported; expected {expected}")
