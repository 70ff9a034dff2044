"""Activations, casts, selection and other elementwise ops against onnxruntime and formulas."""

import numpy as np
import pytest
from onnx import helper
from ops.definitions import apply
from ops.ort import run

from mnn_core.errors import ShapeError
from mnn_core.ir import Op, Spec
from mnn_core.ops import definition

X = np.random.default_rng(0).standard_normal((2, 5, 3, 4)).astype(np.float32) * 3
SPECIAL = np.array([-np.inf, -1, -0.0, 0, 1, np.inf, np.nan], np.float32)


@pytest.mark.parametrize(("op_type", "attrs", "onnx", "onnx_attrs"), [
    ("ReLU", {}, "Relu", {}), ("ReLU", {"slope": 0.2}, "LeakyRelu", {"alpha": 0.2}),
    ("ELU", {"alpha": 0.7}, "Elu", {"alpha": 0.7}),
    ("Selu", {"alpha": 1.5, "scale": 1.1}, "Selu", {"alpha": 1.5, "gamma": 1.1}), ("Sigmoid", {}, "Sigmoid", {}),
    ("TanH", {}, "Tanh", {}), ("AbsVal", {}, "Abs", {}), ("Exp", {}, "Exp", {}), ("Log", {}, "Log", {}),
    ("Bnll", {}, "Softplus", {}),
])
def test_onnxruntime(op_type: str, attrs: dict, onnx: str, onnx_attrs: dict) -> None:
    np.testing.assert_allclose(apply(op_type, attrs, X), run(onnx, [X], **onnx_attrs), rtol=2e-6, atol=2e-7)
    scalar = np.array(-0.5, np.float32)
    assert apply(op_type, attrs, scalar).shape == ()


def test_special_values() -> None:
    np.testing.assert_array_equal(apply("ReLU", {}, SPECIAL), [0, 0, 0, 0, 1, np.inf, np.nan])
    np.testing.assert_array_equal(apply("ReLU6", {}, SPECIAL), [0, 0, 0, 0, 1, 6, np.nan])
    want = [-2, 2 * np.expm1(-1), 0, 0, 1, np.inf, np.nan]
    np.testing.assert_allclose(apply("ELU", {"alpha": 2.0}, SPECIAL), want, rtol=1e-6)
    np.testing.assert_array_equal(apply("Sigmoid", {}, SPECIAL)[[0, 2, 5, 6]], np.array([0, 0.5, 1, np.nan], np.float32))


def test_relu6_is_clip() -> None:
    want = run("Clip", [X, np.array(-0.5, np.float32), np.array(1.25, np.float32)])
    np.testing.assert_array_equal(apply("ReLU6", {"minValue": -0.5, "maxValue": 1.25}, X), want)
    np.testing.assert_array_equal(apply("ReLU6", {}, np.array([-3, 2, 2**30], np.int32)), [0, 2, 6])


def test_prelu() -> None:
    slope = np.linspace(-1, 1, 5, dtype=np.float32)
    np.testing.assert_array_equal(apply("PReLU", {}, X, slope), run("PRelu", [X, slope.reshape(5, 1, 1)]))
    np.testing.assert_array_equal(apply("PReLU", {}, X, slope.reshape(5, 1, 1)), run("PRelu", [X, slope.reshape(5, 1, 1)]))
    with pytest.raises(ShapeError, match="5 channels"):
        apply("PReLU", {}, X, np.ones(4, np.float32))


def test_threshold_and_power() -> None:
    np.testing.assert_array_equal(apply("Threshold", {"alpha": 0.5}, X), (X > 0.5).astype(np.float32))
    np.testing.assert_allclose(apply("Power", {"power": 3.0, "scale": 2.0, "shift": -1.0}, X), (2 * X - 1) ** 3, rtol=1e-4)


@pytest.mark.parametrize(("target", "dtype", "kept"), [
    ("DT_INT32", np.int32, np.int32), ("DT_UINT8", np.uint8, np.uint8), ("DT_INT8", np.int8, np.int8),
    ("DT_BOOL", np.bool_, np.int32),
    ("DT_INT16", np.int16, np.int32), ("DT_UINT16", np.uint16, np.int32), ("DT_INT64", np.int64, np.int32),
    ("DT_FLOAT", np.float32, np.float32), ("DT_DOUBLE", np.float64, np.float32),
])
@pytest.mark.parametrize("source", [np.float32, np.int32, np.uint8, np.int8])
def test_cast(target: str, dtype: type, kept: type, source: type) -> None:
    x = np.array([0, 1, 2.7, 100.5, 127, 99, 5], np.float32)
    if source in (np.float32, np.int32):
        x = np.concatenate([x, np.array([-2.7, -0.5, 300, -300, 70000], np.float32)])
    x = x.astype(source)
    got = apply("Cast", {"dstT": target}, x)
    want = run("Cast", [x], to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    assert got.dtype == kept
    signed = want if np.dtype(dtype).kind != "u" or source != np.float32 else np.trunc(x).astype(np.int64).astype(dtype)
    np.testing.assert_array_equal(got, signed.astype(kept))


def test_cast_of_what_integers_cannot_hold() -> None:
    x = np.array([300, np.nan, np.inf, -np.inf, 3e9], np.float32)
    np.testing.assert_array_equal(apply("Cast", {"dstT": "DT_INT8"}, x), [44, 0, 0, 0, 0])
    np.testing.assert_array_equal(apply("Cast", {"dstT": "DT_INT32"}, x), [300] + [-2**31] * 4)
    np.testing.assert_array_equal(apply("Cast", {"dstT": "DT_BOOL"}, np.array([np.nan, -0.0, 1e-30], np.float32)), [1, 0, 1])
    with pytest.raises(ShapeError, match="DT_STRING"):
        apply("Cast", {"dstT": "DT_STRING"}, x)


def test_cast_to_the_same_kept_type_is_a_copy() -> None:
    lower = definition(Op("Cast", [], [])).lower
    spec = [Spec((2,), np.dtype(np.int32))]
    assert lower is not None
    lowered = lower(Op("Cast", ["x"], ["y"], {"dstT": "DT_INT64"}), spec, spec)
    assert [op.type for op in lowered.ops] == ["Identity"]  # type: ignore[union-attr]
    assert lower(Op("Cast", ["x"], ["y"], {"dstT": "DT_BOOL"}), spec, spec) is None
    assert lower(Op("Cast", ["x"], ["y"], {"dstT": "DT_INT16"}), spec, spec) is None


@pytest.mark.parametrize("shapes", [((2, 3), (2, 3), (2, 3)), ((3, 1), (4,), ()), ((), (2,), (3, 1)), ((0, 1), (1, 4), ())])
def test_select(shapes: tuple[tuple[int, ...], ...]) -> None:
    rng = np.random.default_rng(1)
    condition = np.asarray(rng.integers(0, 3, shapes[0]), np.int32)
    yes, no = (np.asarray(rng.standard_normal(s), np.float32) for s in shapes[1:])
    np.testing.assert_array_equal(apply("Select", {}, condition, yes, no), run("Where", [np.asarray(condition != 0), yes, no]))


def test_scale() -> None:
    factor, bias = np.linspace(-1, 1, 5, dtype=np.float32), np.arange(5, dtype=np.float32)
    want = X * factor.reshape(5, 1, 1) + bias.reshape(5, 1, 1)
    np.testing.assert_array_equal(apply("Scale", {}, X, factor, bias), want)


def test_eltwise() -> None:
    a, b = X, X[::-1]
    weighed = {"type": "SUM", "coeff": np.array([2, -1], np.float32)}
    np.testing.assert_allclose(apply("Eltwise", weighed, a, b), 2 * a - b, rtol=1e-6)
    np.testing.assert_array_equal(apply("Eltwise", {"type": "MAXIMUM"}, a, b, a), np.maximum(a, b))
    np.testing.assert_array_equal(apply("Eltwise", {"type": "SUB"}, a, b, a), a - b - a)
    with pytest.raises(ShapeError, match="3 coefficients"):
        apply("Eltwise", {"type": "SUM", "coeff": np.ones(3, np.float32)}, a, b)


def test_copies() -> None:
    for got, want in zip(apply("Identity", {}, X, SPECIAL, outputs=2), (X, SPECIAL)):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(apply("ZerosLike", {}, X), np.zeros_like(X))
