"""Einsum whose subscripts repeat or are left out; all others are products of matrices (see the ONNX converter)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._rules import FLOAT32, INT32, as_array
from .registry import Example, register


def _sizes(op: Op, terms: Sequence[str], specs: Sequence[Spec]) -> tuple[dict[str, int], tuple[int, ...]]:
    """The size of each subscript, and the broadcast shape of what the ellipses stand for."""
    sizes: dict[str, int] = {}
    elided: tuple[int, ...] = ()
    for term, spec in zip(terms, specs):
        before, dots, after = term.partition("...")
        count = spec.rank - len(before) - len(after)
        if count < 0 or (count and not dots):
            raise ShapeError(f"{op}: {term!r} does not fit {spec}")
        elided = np.broadcast_shapes(elided, spec.shape[len(before):len(before) + count])
        for label, size in zip(before + after, spec.shape[:len(before)] + spec.shape[spec.rank - len(after):]):
            known = sizes.setdefault(label, size)
            if 1 not in (known, size) and known != size:
                raise ShapeError(f"{op}: subscript {label!r} stands for {known} and for {size}")
            sizes[label] = max(known, size) if known and size else 0
    return sizes, elided


def _infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    specs = [s for s in inputs if s is not None]
    left, arrow, result = op["equation"].partition("->")
    terms = left.split(",")
    if len(specs) != len(terms) or len({s.dtype for s in specs}) != 1:
        raise ShapeError(f"{op}: equation {op['equation']!r} and {', '.join(map(str, specs))} do not fit")
    sizes, elided = _sizes(op, terms, specs)
    if not arrow:
        letters = left.replace(".", "").replace(",", "")
        result = "..." + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    before, dots, after = result.partition("...")
    unknown = [c for c in before + after if c not in sizes]
    if unknown:
        raise ShapeError(f"{op}: subscript {unknown[0]!r} of the result is in no operand")
    shape = (*(sizes[c] for c in before), *(elided if dots else ()), *(sizes[c] for c in after))
    return [Spec(shape, specs[0].dtype)]


@register("onnx.Einsum", attrs={"equation": ""}, infer=_infer, examples=[
    Example({"equation": "...ii->...i"}, [Spec((3, 4, 4), FLOAT32)], name="diagonal"),
    Example({"equation": "ii"}, [Spec((4, 4), INT32)], name="trace"),
    Example({"equation": "...ij,...jk->...ik"}, [Spec((2, 1, 3, 4), FLOAT32), Spec((5, 4, 2), FLOAT32)], name="elided"),
    Example({"equation": "b...,b->..."}, [Spec((3, 2, 4), FLOAT32), Spec((3,), FLOAT32)], name="summed"),
])
def einsum(op: Op, *operands: np.ndarray) -> np.ndarray:
    """Sums of products as `equation` says it, in NumPy's notation; floats are summed in double precision."""
    dtype = operands[0].dtype
    wide = [x.astype(np.float64) if dtype.kind == "f" else x.astype(np.int64) for x in operands]
    return as_array(np.asarray(np.einsum(op["equation"], *wide)), dtype)
