"""RandomUniform, RandomNormal, and Dropout in training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ..ir.dtypes import NUMPY_OF, stored_dtype
from ._rules import FLOAT32, INT32, as_array, known, present
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


def _dropout_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    return [x.without_value(), Spec(x.shape, INT32)]


@register("onnx.Dropout", attrs={"seed": 0}, infer=_dropout_infer, pure=False, examples=[
    Example({}, [Spec((3, 5), FLOAT32), np.array(0.5, np.float32), np.array(0, np.int32)], name="inference"),
    Example({}, [Spec((3, 5), FLOAT32), np.array(0, np.float32), np.array(1, np.int32)], name="nothing_dropped"),
])
def dropout(op: Op, x: np.ndarray, ratio: np.ndarray, training: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x and a mask of ones; in training (input 2) a share `ratio` (input 1) of x is 0, and the rest is divided by what is left.

    A `seed` that is not 0 gives the same mask in each run.
    """
    share = float(ratio.reshape(-1)[0])
    if not training.any() or share == 0:
        return x, np.ones(x.shape, INT32)
    if not 0 <= share < 1:
        raise ShapeError(f"{op}: ratio is {share}; expected 0 or more, and less than 1")
    kept = np.random.default_rng(op["seed"] or None).random(x.shape) >= share
    return as_array(np.where(kept, x / (1 - share), 0), x.dtype), as_array(kept, INT32)
