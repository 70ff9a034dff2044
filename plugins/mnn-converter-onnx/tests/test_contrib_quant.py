"""onnxruntime's operators on quantised numbers, against onnxruntime.

A result may be one step off where the sum of floats before the last rounding lies next to a half.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import ours, theirs

import mnn_core as mnn

RNG = np.random.default_rng(3)
KINDS = {np.dtype(np.uint8): (0, 256), np.dtype(np.int8): (-128, 128)}


def numbers(kind: str, *shape: int) -> np.ndarray:
    dtype = np.dtype(kind)
    return RNG.integers(*KINDS[dtype], shape).astype(dtype) if dtype in KINDS else RNG.standard_normal(shape).astype(np.float32)


def check(op: str, inputs: list[np.ndarray | None], fed: int, *out: int, steps: int = 1, tolerance: float = 1e-4,
          **attrs: Any) -> None:
    """One node; the first `fed` inputs are fed, the others are constants. out: the types of the outputs."""
    names = [f"i{k}" if a is not None else "" for k, a in enumerate(inputs)]
    given = {n: a for n, a in list(zip(names, inputs))[:fed] if n and a is not None}
    constants = [numpy_helper.from_array(a, n) for n, a in list(zip(names, inputs))[fed:] if a is not None]
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in given.items()]
    results = [f"o{k}" for k in range(len(out))]
    graph = helper.make_graph([helper.make_node(op, names, results, domain="com.microsoft", **attrs)], "g", infos,
                              [helper.make_tensor_value_info(r, kind, None) for r, kind in zip(results, out)], constants)
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17),
                                                                  helper.make_opsetid("com.microsoft", 1)])
    for got, want in zip(ours(model, given), theirs(model, given), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        if want.dtype.kind in "iu":
            assert np.abs(got.astype(int) - want.astype(int)).max() <= steps
            assert (got == want).mean() > 0.98
        else:
            np.testing.assert_allclose(got, want, atol=tolerance * np.abs(want).max(), rtol=tolerance)


S = np.float32


def q(kind: str, scale: float, zero: int) -> list[np.ndarray]:
    return [np.array(scale, S), np.array(zero, kind)]


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_arithmetic(op: str, kind: str) -> None:
    x, y = numbers(kind, 2, 3, 4), numbers(kind, 3, 1)
    check(op, [x, *q(kind, 0.0213, 3), y, *q(kind, 0.0517, 7), *q(kind, 0.0631, 5)], 1,
          helper.np_dtype_to_tensor_dtype(np.dtype(kind)))


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize(("op", "attrs"), [
    ("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.1}), ("QLinearSoftmax", {"axis": -1, "opset": 13}),
    ("QLinearSoftmax", {"axis": 1, "opset": 11}), ("QLinearGlobalAveragePool", {}),
    ("QLinearAveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ("QLinearAveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1})])
def test_unary(op: str, attrs: dict, kind: str) -> None:
    scale = 1 / 256 if op in ("QLinearSigmoid", "QLinearSoftmax") else 0.0271
    zero = 0 if kind == "uint8" else -128
    check(op, [numbers(kind, 2, 3, 6, 8), *q(kind, 0.03, 4), *q(kind, scale, zero)], 1,
          helper.np_dtype_to_tensor_dtype(np.dtype(kind)), **attrs)


def test_channels_last() -> None:
    check("QLinearGlobalAveragePool", [numbers("uint8", 2, 5, 6, 3), *q("uint8", 0.03, 4), *q("uint8", 0.03, 9)], 1, 2,
          channels_last=1)


def test_concat_and_where() -> None:
    parts = [numbers("uint8", 2, 3), numbers("uint8", 2, 4)]
    check("QLinearConcat", [*q("uint8", 0.05, 100), parts[0], *q("uint8", 0.0317, 120), parts[1], *q("uint8", 0.0613, 90)],
          3, 2, axis=1)
    choice = RNG.random((2, 3)) > 0.5
    check("QLinearWhere", [choice, numbers("uint8", 2, 3), *q("uint8", 0.0317, 120), numbers("uint8", 2, 3),
                           *q("uint8", 0.0613, 90), *q("uint8", 0.05, 100)], 2, 2)


def test_mean() -> None:
    """onnxruntime has no kernel for this one."""
    x = numbers("uint8", 2, 3, 6)
    names = ["x", "s", "z", "t", "y"]
    node = helper.make_node("QLinearReduceMean", names, ["o"], domain="com.microsoft", axes=[2], keepdims=0)
    constants = [numpy_helper.from_array(a, n) for n, a in zip(names[1:], [*q("uint8", 0.03, 4), *q("uint8", 0.0271, 9)])]
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.UINT8, x.shape)],
                              [helper.make_tensor_value_info("o", TensorProto.UINT8, [2, 3])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    want = np.clip(np.rint(((x.astype(float) - 4) * 0.03).mean(2) / 0.0271) + 9, 0, 255)
    assert np.array_equal(ours(model, {"x": x})[0], want)


@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize("quantised", [True, False])
def test_gemm(quantised: bool, transposed: int) -> None:
    weight = numbers("int8", 4, 6) if transposed else numbers("int8", 6, 4)
    end = q("uint8", 3.0, 110) if quantised else []
    inputs = [numbers("uint8", 5, 6), *q("uint8", 0.04, 120), weight, np.linspace(0.01, 0.04, 4).astype(S),
              np.zeros(4, np.int8), RNG.integers(-999, 999, 4).astype(np.int32), *end]
    check("QGemm", inputs, 1, 2 if quantised else 1, transB=transposed, alpha=1.0)


@pytest.mark.parametrize("bias", [True, False])
def test_products_of_integers_as_floats(bias: bool) -> None:
    more = [numbers("float32", 5)] if bias else []
    check("MatMulIntegerToFloat", [numbers("uint8", 2, 3, 6), numbers("int8", 6, 5), np.array(0.03, S),
                                   np.linspace(0.01, 0.05, 5).astype(S), np.array(7, np.uint8), np.zeros(5, np.int8),
                                   *more], 1, 1)
    check("DynamicQuantizeMatMul", [numbers("float32", 2, 3, 6), numbers("int8", 6, 5), np.array([0.02], S),
                                    np.array([0], np.int8), *more], 1, 1)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("columns", [False, True])
def test_lstm(direction: str, columns: bool) -> None:
    d, hidden, size = 1 + (direction == "bidirectional"), 8, 6
    w, r = numbers("int8", d, size, 4 * hidden), numbers("int8", d, hidden, 4 * hidden)
    shape = (d, 4 * hidden) if columns else (d,)
    scale = np.full(shape, 0.004, S) * (1 + np.arange(shape[-1]) / 50).astype(S)
    check("DynamicQuantizeLSTM", [numbers("float32", 7, 2, size), w, r, numbers("float32", d, 8 * hidden), None,
                                  numbers("float32", d, 2, hidden), numbers("float32", d, 2, hidden), None, scale,
                                  np.zeros(shape, np.int8), scale, np.zeros(shape, np.int8)], 1, 1, 1, 1, tolerance=2e-2,
          hidden_size=hidden, direction=direction)


@pytest.mark.parametrize("past", [False, True])
def test_attention(past: bool) -> None:
    earlier = numbers("float32", 2, 2, 2, 3, 4)
    inputs = [numbers("uint8", 2, 5, 8), numbers("int8", 8, 24), numbers("float32", 24), np.array(0.02, S), np.array(0.01, S),
              None if past else np.array([5, 3], np.int32), np.array(120, np.uint8), np.array(0, np.int8)]
    check("QAttention", [*inputs, earlier] if past else inputs, 1, *[1] * (1 + past), num_heads=2, unidirectional=int(past))


def test_embedding() -> None:
    ids, kinds = RNG.integers(0, 9, (2, 4)).astype(np.int32), RNG.integers(0, 2, (2, 4)).astype(np.int32)
    tables = [numbers("uint8", 9, 8), numbers("uint8", 5, 8), numbers("uint8", 2, 8), numbers("uint8", 8), numbers("uint8", 8)]
    check("QEmbedLayerNormalization", [ids, kinds, *tables, None, *[np.array(0.02 + k / 100, S) for k in range(5)],
                                       *[np.array(100 + k, np.uint8) for k in range(5)]], 2, 1, 6, epsilon=1e-5)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("columns", [False, True])
def test_weights_stay_packed(kind: str, columns: bool) -> None:
    """A weight of a convolution as Q/DQ models have it is a packed constant, of exactly onnxruntime's values."""
    w = numbers(kind, 16, 8, 3, 3)
    zero = np.array([3] * (16 if columns else 1), kind) if kind == "uint8" else np.zeros(16 if columns else 1, kind)
    scale = np.linspace(0.01, 0.02, 16).astype(S) if columns else np.array([0.015], S)
    nodes = [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["f"], axis=0), helper.make_node("Conv", ["x", "f"], ["y"])]
    if not columns:
        scale, zero = scale.reshape(()), zero.reshape(())
    constants = [numpy_helper.from_array(a, n) for a, n in ((w, "w"), (scale, "s"), (zero, "z"))]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 9, 9])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], constants)
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    converted = mnn.convert(model, converter="onnx")
    packed = converted.constants[converted.ops[0].inputs[1]]
    assert isinstance(packed, mnn.PackedConstant)
    want = (w.astype(S) - zero.reshape(-1, 1, 1, 1).astype(S)) * scale.reshape(-1, 1, 1, 1)
    np.testing.assert_allclose(packed.decode(), want, rtol=1e-6, atol=1e-7)
    feeds = {"x": numbers("float32", 1, 8, 9, 9)}
    np.testing.assert_allclose(ours(model, feeds)[0], theirs(model, feeds)[0], rtol=1e-4, atol=1e-4)
