"""Arithmetic on one tensor as a polynomial of it: the many spellings of an activation have one."""

from __future__ import annotations

from collections.abc import Mapping

from ._view import View

Polynomial = Mapping[int, float]

#: No activation needs a higher power, or a deeper tree.
_DEGREE, _DEPTH = 4, 8


def polynomial(view: View, name: str, x: str, depth: int = 0) -> Polynomial | None:
    """Coefficients by power where a tensor is a polynomial of x, in any order and grouping; None where it is not."""
    if name == x:
        return {1: 1.0}
    number, array = view.number(name), view.array(name)
    if number is not None and array is not None:
        return {0: number} if array.ndim <= 1 else None  # more dimensions might be more than the tensor has
    op = view.producer(name, "BinaryOp", "UnaryOp")
    if op is None or depth == _DEPTH:
        return None
    parts = [polynomial(view, n, x, depth + 1) for n in op.inputs]
    first, last = parts[0], parts[-1]
    if first is None or last is None:
        return None
    kind = op["opType"]
    if op.type == "UnaryOp":
        return _product(first, first) if kind == "SQUARE" else _scaled(first, -1) if kind == "NEG" else None
    if op["activationType"]:
        return None
    if kind in ("ADD", "SUB"):
        return _sum(first, _scaled(last, -1) if kind == "SUB" else last)
    if kind == "MUL":
        return _product(first, last)
    constant = last.get(0, 0.0) if set(last) <= {0} else None
    if kind in ("REALDIV", "DIV") and constant:
        return _scaled(first, 1 / constant)
    if kind == "POW" and constant in (1, 2, 3):
        return _power(first, int(constant))
    return None


def _sum(a: Polynomial, b: Polynomial) -> Polynomial:
    return {k: a.get(k, 0.0) + b.get(k, 0.0) for k in {*a, *b}}


def _scaled(a: Polynomial, factor: float) -> Polynomial:
    return {k: v * factor for k, v in a.items()}


def _power(a: Polynomial, n: int) -> Polynomial | None:
    found: Polynomial | None = a
    for _ in range(n - 1):
        found = None if found is None else _product(found, a)
    return found


def _product(a: Polynomial, b: Polynomial) -> Polynomial | None:
    found: dict[int, float] = {}
    for i, u in a.items():
        for j, v in b.items():
            found[i + j] = found.get(i + j, 0.0) + u * v
    return found if max(found, default=0) <= _DEGREE else None


def same(found: Polynomial | None, wanted: Polynomial) -> bool:
    """Whether two polynomials agree but for the rounding of their numbers to float32."""
    return found is not None and all(
        abs(found.get(k, 0.0) - wanted.get(k, 0.0)) <= 1e-6 * abs(wanted.get(k, 0.0)) for k in {*found, *wanted})
