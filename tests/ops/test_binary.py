"""BinaryOp against onnxruntime."""

import numpy as np
import pytest
from ops.definitions import apply
from ops.ort import run

from mnn_core.errors import ShapeError

RNG = np.random.default_rng(0)
COMPARISONS = {"GREATER": "Greater", "GREATER_EQUAL": "GreaterOrEqual", "LESS": "Less", "LESS_EQUAL": "LessOrEqual",
               "EQUAL": "Equal"}
ARITHMETIC = {"ADD": "Add", "SUB": "Sub", "MUL": "Mul", "REALDIV": "Div", "DIV": "Div", "POW": "Pow", "MINIMUM": "Min",
              "MAXIMUM": "Max"}
ODD = np.array([0, -0.0, 1, -1, 2.5, np.nan, np.inf, -np.inf], np.float32)


@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS])
def test_floats(name: str) -> None:
    x, y = (np.concatenate([grid.ravel(), RNG.standard_normal(50).astype(np.float32)]) for grid in np.meshgrid(ODD, ODD))
    got = apply("BinaryOp", {"opType": name}, x, y)
    want = run(ARITHMETIC.get(name) or COMPARISONS[name], [x, y])
    assert got.dtype == (np.int32 if name in COMPARISONS else np.float32)
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS])
def test_integers(name: str) -> None:
    x = RNG.integers(-20, 20, 300).astype(np.int32)
    y = RNG.integers(1, 5, 300).astype(np.int32) * (1 if name == "POW" else RNG.choice(np.array([-1, 1], np.int32), 300))
    want = run(ARITHMETIC.get(name) or COMPARISONS[name], [x, y])
    np.testing.assert_array_equal(apply("BinaryOp", {"opType": name}, x, y), want)


def test_integer_division_truncates() -> None:
    x, y = np.array([-7, 7, -7], np.int32), np.array([2, -2, -2], np.int32)
    for name in ("DIV", "REALDIV"):
        np.testing.assert_array_equal(apply("BinaryOp", {"opType": name}, x, y), [-3, -3, 3])
    np.testing.assert_array_equal(apply("BinaryOp", {"opType": "FLOORDIV"}, x, y), [-4, -4, 3])


def test_integer_corners_do_not_crash() -> None:
    x, y = np.array([5, -5, -2**31, 0], np.int32), np.array([0, 0, -1, 0], np.int32)
    for name in ("DIV", "REALDIV", "FLOORDIV"):
        np.testing.assert_array_equal(apply("BinaryOp", {"opType": name}, x, y), [0, 0, -2**31, 0])
    for name in ("MOD", "FLOORMOD"):
        np.testing.assert_array_equal(apply("BinaryOp", {"opType": name}, x, y), 0)


def test_mod() -> None:
    x, y = np.array([-7, 7, -7], np.int32), np.array([3, -3, -3], np.int32)
    np.testing.assert_array_equal(apply("BinaryOp", {"opType": "MOD"}, x, y), [2, -2, -1])
    np.testing.assert_array_equal(apply("BinaryOp", {"opType": "MOD"}, x, y), run("Mod", [x, y]))
    a, b = RNG.standard_normal((2, 100)).astype(np.float32) * 9
    np.testing.assert_array_equal(apply("BinaryOp", {"opType": "MOD"}, a, b), run("Mod", [a, b], fmod=1))
    np.testing.assert_allclose(apply("BinaryOp", {"opType": "FLOORMOD"}, a, b), a - np.floor(a / b) * b, rtol=1e-5, atol=1e-5)


def test_uint8_wraps() -> None:
    x, y = np.array([22], np.uint8), np.array([21], np.uint8)
    assert apply("BinaryOp", {"opType": "MUL"}, x, y) == 206


@pytest.mark.parametrize(("name", "direction"), [("LEFTSHIFT", "LEFT"), ("RIGHTSHIFT", "RIGHT")])
def test_shifts(name: str, direction: str) -> None:
    x, y = np.array([1, 200, 255, 7], np.uint8), np.array([3, 1, 7, 0], np.uint8)
    np.testing.assert_array_equal(apply("BinaryOp", {"opType": name}, x, y), run("BitShift", [x, y], direction=direction))


@pytest.mark.parametrize(("name", "onnx"), [
    ("BITWISE_AND", "BitwiseAnd"), ("BITWISE_OR", "BitwiseOr"), ("BITWISE_XOR", "BitwiseXor")])
def test_bits(name: str, onnx: str) -> None:
    x, y = RNG.integers(-99, 99, (2, 30)).astype(np.int32)
    np.testing.assert_array_equal(apply("BinaryOp", {"opType": name}, x, y), run(onnx, [x, y]))


@pytest.mark.parametrize(("name", "onnx"), [("LOGICALOR", "Or"), ("LOGICALXOR", "Xor")])
def test_logic_takes_any_number_as_true(name: str, onnx: str) -> None:
    x, y = np.array([0, 2, 0, -1], np.int32), np.array([0, 0, 5, 7], np.int32)
    np.testing.assert_array_equal(apply("BinaryOp", {"opType": name}, x, y), run(onnx, [x != 0, y != 0]))


@pytest.mark.parametrize(("a", "b"), [((), ()), ((0, 3), (1, 3)), ((2, 1, 3), (4, 1)), ((5,), ()), ((1, 0), (3, 1))])
def test_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = RNG.standard_normal(a).astype(np.float32), RNG.standard_normal(b).astype(np.float32)
    x, y = np.asarray(x, np.float32), np.asarray(y, np.float32)
    want = run("Add", [x, y])
    got = apply("BinaryOp", {"opType": "ADD"}, x, y)
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)


def test_special_functions() -> None:
    x, y = RNG.standard_normal((2, 50)).astype(np.float32)
    np.testing.assert_allclose(apply("BinaryOp", {"opType": "ATAN2"}, x, y), np.arctan2(x.astype(float), y), rtol=1e-6)
    silu = y / (1 + np.exp(-y.astype(float)))
    np.testing.assert_allclose(apply("BinaryOp", {"opType": "MUL_SILU"}, x, y), x * silu, rtol=1e-6)
    np.testing.assert_allclose(apply("BinaryOp", {"opType": "SquaredDifference"}, x, y), (x - y) ** 2, rtol=1e-6)
    np.testing.assert_array_equal(apply("BinaryOp", {"opType": "SUB", "activationType": 1}, x, y), np.maximum(x - y, 0))


def test_power_of_mixed_types_is_of_the_base() -> None:
    x, y = np.array([2.5, -2, 4], np.float32), np.array([2, 3, -1], np.int32)
    np.testing.assert_allclose(apply("BinaryOp", {"opType": "POW"}, x, y), run("Pow", [x, y]))
    np.testing.assert_array_equal(apply("BinaryOp", {"opType": "POW"}, np.array([2, 1, -1, -1, 0], np.int32),
                                        np.array([-1, -5, -3, -2, -1], np.int32)), [0, 1, -1, 1, 0])


def test_errors_name_op_and_shapes() -> None:
    with pytest.raises(ShapeError, match=r"BinaryOp 'tested'.*\[2, 3\] and \[4\]"):
        apply("BinaryOp", {"opType": "ADD"}, np.ones((2, 3), np.float32), np.ones(4, np.float32))
    with pytest.raises(ShapeError, match="float32 and int32"):
        apply("BinaryOp", {"opType": "ADD"}, np.ones(3, np.float32), np.ones(3, np.int32))
    with pytest.raises(ShapeError, match="expected integers"):
        apply("BinaryOp", {"opType": "BITWISE_OR"}, np.ones(3, np.float32), np.ones(3, np.float32))
