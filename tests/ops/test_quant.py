"""Quantisation against onnxruntime."""

import numpy as np
from ops.definitions import apply
from ops.ort import run

X = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)


def test_rounds_half_to_even_and_saturates() -> None:
    x = np.array([.5, 1.5, 2.5, -.5, 300, -300], np.float32)
    one = np.array([1], np.float32)
    np.testing.assert_array_equal(apply("FloatToInt8", {"tensorScale": one}, x), [0, 2, 2, 0, 127, -128])
    np.testing.assert_array_equal(apply("FloatToInt8", {"tensorScale": one, "zeroPoint": 1}, x), [1, 3, 3, 1, 127, -128])
    np.testing.assert_array_equal(apply("FloatToInt8", {"tensorScale": one, "clampMin": -5}, x), [0, 2, 2, 0, 127, -5])
    np.testing.assert_array_equal(apply("FloatToInt8", {"tensorScale": one}, np.array([np.nan, np.inf], np.float32)), [0, 127])


def test_against_onnx() -> None:
    scale, zero = np.array(0.03125, np.float32), np.array(5, np.int8)
    q = run("QuantizeLinear", [X, scale, zero])
    np.testing.assert_array_equal(apply("FloatToInt8", {"tensorScale": 1 / scale.reshape(1), "zeroPoint": 5}, X), q)
    back = apply("Int8ToFloat", {"tensorScale": scale.reshape(1), "zeroPoint": 5}, q)
    np.testing.assert_array_equal(back, run("DequantizeLinear", [q, scale, zero]))


def test_per_channel() -> None:
    scale, zero = np.array([0.5, 0.25, 0.125], np.float32), np.array([0, -3, 7], np.int8)
    q = run("QuantizeLinear", [X, scale, zero], axis=1)
    got = apply("FloatToInt8", {"tensorScale": 1 / scale, "floatzeros": zero.astype(np.float32)}, X)
    np.testing.assert_array_equal(got, q)
    back = apply("Int8ToFloat", {"tensorScale": scale, "floatzeros": zero.astype(np.float32)}, q)
    np.testing.assert_array_equal(back, run("DequantizeLinear", [q, scale, zero], axis=1))


def test_dynamic_quant() -> None:
    for x in (X, X - 9, X + 9, np.zeros((2, 2), np.float32)):
        want, scale, zero = run("DynamicQuantizeLinear", [x], outputs=3)
        got = apply("DynamicQuant", {}, x, outputs=3)
        np.testing.assert_array_equal(got[0], want.astype(np.int32) - 128)
        np.testing.assert_allclose(got[1], scale if scale else 1, rtol=1e-6)
        np.testing.assert_array_equal(got[2], zero.astype(np.float32) - 128)


def test_eltwise() -> None:
    def table(scale: float, zero: int) -> dict:
        return {"tensorScale": np.array([scale], np.float32), "floatzeros": (), "zeroPoint": zero,
                "clampMin": -127, "clampMax": 127}

    a, b = np.array([10, -100, 127], np.int8), np.array([4, -100, 127], np.int8)
    attrs = {"type": "SUM", "inputQuan0": table(0.5, 2), "inputQuan1": table(0.25, 0), "outputQuan": table(4, -1)}
    np.testing.assert_array_equal(apply("EltwiseInt8", attrs, a, b), [19, -127, 127])
