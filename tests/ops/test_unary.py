"""UnaryOp against onnxruntime and math."""

import math

import numpy as np
import pytest
from ops.definitions import apply
from ops.ort import run

from mnn_core.errors import ShapeError
from mnn_core.ops.unary import EXACT, INEXACT

ODD = np.array([0.0, -0.0, 0.5, -0.5, 1, -1, 1.5, 2.5, -2.5, 30, -30, 1e-6, -1e-6, 100, np.nan, np.inf, -np.inf], np.float32)
ONNX = {
    "ABS": "Abs", "NEG": "Neg", "SIGN": "Sign", "FLOOR": "Floor", "CEIL": "Ceil", "ROUND": "Round", "SQRT": "Sqrt",
    "RECIPROCAL": "Reciprocal", "EXP": "Exp", "LOG": "Log", "SIN": "Sin", "COS": "Cos", "TAN": "Tan", "ASIN": "Asin",
    "ACOS": "Acos", "ATAN": "Atan", "SINH": "Sinh", "COSH": "Cosh", "TANH": "Tanh", "ASINH": "Asinh", "ACOSH": "Acosh",
    "ATANH": "Atanh", "ERF": "Erf", "SIGMOID": "Sigmoid", "BNLL": "Softplus", "HARDSWISH": "HardSwish",
}


@pytest.mark.parametrize("name", ONNX)
def test_onnxruntime(name: str) -> None:
    x = np.concatenate([ODD, np.random.default_rng(0).standard_normal(200).astype(np.float32)])
    if name == "SIGN":  # onnxruntime gives 0 for NaN
        x = x[~np.isnan(x)]
    if name in ("HARDSWISH", "ERF"):  # onnxruntime gives NaN or 1 for some of them
        x = x[np.isfinite(x)]
    np.testing.assert_allclose(apply("UnaryOp", {"opType": name}, x), run(ONNX[name], [x]), rtol=3e-6, atol=2e-7)


@pytest.mark.parametrize(("name", "approximate"), [("GELU", "tanh"), ("GELU_STANDARD", "none")])
def test_gelu(name: str, approximate: str) -> None:
    x = np.linspace(-6, 6, 301, dtype=np.float32)
    want = run("Gelu", [x], opset=20, approximate=approximate)
    np.testing.assert_allclose(apply("UnaryOp", {"opType": name}, x), want, atol=1e-6)


@pytest.mark.parametrize(("name", "formula"), [
    ("SQUARE", lambda v: v * v), ("RSQRT", lambda v: v ** -0.5), ("EXPM1", math.expm1), ("LOG1P", math.log1p),
    ("ERFC", math.erfc), ("SILU", lambda v: v / (1 + math.exp(-v))),
])
def test_formula(name: str, formula: object) -> None:
    x = np.geomspace(1e-6, 9, 60, dtype=np.float32)
    want = np.array([formula(float(v)) for v in x])  # type: ignore[operator]
    np.testing.assert_allclose(apply("UnaryOp", {"opType": name}, x), want, rtol=1.2e-7)


def test_erfinv_inverts_erf() -> None:
    y = np.linspace(-3.5, 3.5, 141)
    x = np.array([math.erf(v) for v in y])
    np.testing.assert_allclose(apply("UnaryOp", {"opType": "ERFINV"}, x), y, rtol=1e-9, atol=1e-15)
    edge = apply("UnaryOp", {"opType": "ERFINV"}, np.array([1, -1, 1.5, np.nan, 0], np.float32))
    np.testing.assert_array_equal(edge, np.array([np.inf, -np.inf, np.nan, np.nan, 0], np.float32))


@pytest.mark.parametrize("name", ["ABS", "NEG", "SIGN", "SQUARE", "FLOOR", "ROUND"])
def test_integers(name: str) -> None:
    x = np.array([-7, 0, 3, 2**24 + 1], np.int32)
    want = {"ABS": abs(x), "NEG": -x, "SIGN": np.sign(x), "SQUARE": x * x}.get(name, x)
    np.testing.assert_array_equal(apply("UnaryOp", {"opType": name}, x), want)


def test_integers_are_refused_where_they_make_no_sense() -> None:
    with pytest.raises(ShapeError, match="SQRT of int32"):
        apply("UnaryOp", {"opType": "SQRT"}, np.ones(3, np.int32))


@pytest.mark.parametrize("name", [*EXACT, *INEXACT])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_rank_0_and_zero_size(name: str, shape: tuple[int, ...]) -> None:
    for dtype in (np.float32, np.float64):
        result = apply("UnaryOp", {"opType": name}, np.full(shape, 0.5, dtype))
        assert (result.shape, result.dtype) == (shape, dtype)
