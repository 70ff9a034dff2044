"""Elementary functions: accuracy against float64, and the values at the edges."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from kernel_rows import ISAS, check, library, run_row

from mnn_core.ir import Op, Spec

pytestmark = pytest.mark.parametrize("isa", ISAS)

EDGES = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, 2.5, -2.5, 88.9, -104, 1e30, -1e30, 3e38,
                  2**23 + 1.0, 1e-38, 1e-45, 16777216, -7.5, 3e-5], np.float32)


def _apply(isa: str, name: str, x: np.ndarray) -> np.ndarray:
    op = Op("UnaryOp", ["x"], ["y"], {"opType": name}, "tested")
    row = next(r for r in library(isa).rows("UnaryOp", ["f32"], ["f32"]) if r.isa == isa)
    return run_row(row, op, [x], set(), [Spec(x.shape, x.dtype)])[0]


def _ulps(got: np.ndarray, exact: np.ndarray) -> float:
    """Largest error in units of the last place of the exact value."""
    place = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    return float((np.abs(got.astype(np.float64) - exact) / place).max())


def _each(f: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.array([f(float(v)) for v in x])


@pytest.mark.parametrize(("name", "exact", "low", "high", "ulps"), [
    ("EXP", np.exp, -87, 88.7, 2), ("LOG", np.log, 1e-37, 1e37, 2), ("LOG", np.log, 0.5, 2, 2),
    ("SIGMOID", lambda x: 1 / (1 + np.exp(-x)), -80, 80, 4), ("TANH", np.tanh, -10, 10, 3), ("TANH", np.tanh, -0.7, 0.7, 3),
    ("ERF", _each(math.erf), -4, 4, 3), ("ERF", _each(math.erf), -1, 1, 3), ("SQRT", np.sqrt, 0, 1e30, 0.5),
    ("RSQRT", lambda x: 1 / np.sqrt(x), 1e-30, 1e30, 1.5), ("RECIPROCAL", lambda x: 1 / x, 1, 1e30, 0.5),
    ("SIN", np.sin, -100, 100, 1), ("COS", np.cos, -100, 100, 1),
])
def test_accuracy(name, exact, low, high, ulps, isa):
    x = np.random.default_rng(0).uniform(low, high, 20011).astype(np.float32)
    assert _ulps(_apply(isa, name, x), exact(x.astype(np.float64))) <= ulps


@pytest.mark.parametrize(("name", "exact"), [
    ("EXP", np.exp), ("LOG", np.log), ("TANH", np.tanh), ("SQRT", np.sqrt), ("FLOOR", np.floor), ("CEIL", np.ceil),
    ("ROUND", np.rint), ("ABS", np.abs), ("NEG", np.negative), ("SIGN", np.sign), ("RECIPROCAL", np.reciprocal),
    ("ERF", _each(math.erf)), ("SIGMOID", lambda x: 1 / (1 + np.exp(-x))), ("SQUARE", np.square),
])
def test_edges(name, exact, isa):
    with np.errstate(all="ignore"):
        want = np.asarray(exact(EDGES.astype(np.float64)), np.float64)
        want[np.abs(want) < 1.2e-38] = 0 * want[np.abs(want) < 1.2e-38]  # results below the normal numbers are flushed
        got = _apply(isa, name, EDGES)
        got[np.abs(got) < 1.2e-38] *= 0
        np.testing.assert_allclose(got, want.astype(np.float32), rtol=4e-7)
    whole = want == 0
    if name not in ("LOG", "EXP", "SIGN"):  # of which one zero is as good as the other
        np.testing.assert_array_equal(np.signbit(got[whole]), np.signbit(want[whole]), err_msg="sign of zero")


@pytest.mark.parametrize("shape", [(23,), (1,), (2, 17, 3), (70001,), ()])
@pytest.mark.parametrize(("op_type", "attrs"), [
    ("ReLU", {}), ("ReLU", {"slope": 0.1}), ("ReLU6", {}), ("ELU", {"alpha": 0.7}), ("Selu", {"alpha": 1.67, "scale": 1.05}),
    ("Sigmoid", {}), ("TanH", {}), ("UnaryOp", {"opType": "GELU"}), ("UnaryOp", {"opType": "GELU_STANDARD"}),
    ("UnaryOp", {"opType": "SILU"}), ("UnaryOp", {"opType": "HARDSWISH"}),
])
def test_activations(op_type, attrs, shape, isa):
    x = np.array(np.random.default_rng(1).standard_normal(shape) * 4, np.float32)
    x.reshape(-1)[:x.size // 2] = np.resize(EDGES, x.size // 2)
    assert check(isa, op_type, attrs, [x], (), 1e-6)
