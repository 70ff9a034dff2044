"""RandomUniform and RandomNormal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ..ir.dtypes import NUMPY_OF, stored_dtype
from ._rules import as_array, known
from .registry import Example, register
from .shape import dimensions


def _dtype(op: Op) -> np.dtype:
    dtype = NUMPY_OF.get(op["type"])
    if dtype is None or dtype.kind != "f":
        raise ShapeError(f"{op}: cannot make random numbers of type {op['type']!r}; expected a float type")
    return stored_dtype(dtype)


def _infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    return [Spec(dimensions(op, known(op, inputs, 0)), _dtype(op))]


def _generator(op: Op) -> np.random.Generator:
    """Seeds (seed, seed2) that are not both 0 give the same numbers in each run; both 0: other ones each time."""
    seeds = [op["seed"] & 0xFFFFFFFF, op["seed2"] & 0xFFFFFFFF]
    return np.random.default_rng(seeds if any(seeds) else None)


_EXAMPLES = [Example({"seed": 7, "seed2": 1, "low": -1.0, "high": 2.0}, [np.array([3, 5], np.int32)])]


@register("RandomUniform", param="RandomUniform", infer=_infer, content=(0,), pure=False, examples=_EXAMPLES)
def random_uniform(op: Op, shape: np.ndarray) -> np.ndarray:
    """Numbers evenly spread over `low`..`high`, in a shape (input 0). See _generator for the seeds."""
    return as_array(_generator(op).uniform(op["low"], op["high"], dimensions(op, shape)), _dtype(op))


@register("RandomNormal", param="RandomUniform", infer=_infer, content=(0,), pure=False, examples=_EXAMPLES)
def random_normal(op: Op, shape: np.ndarray) -> np.ndarray:
    """Normal numbers with mean `low` and standard deviation `high` (MNN's names), in a shape (input 0)."""
    return as_array(_generator(op).normal(op["low"], op["high"], dimensions(op, shape)), _dtype(op))
