"""Kernels of quantised numbers against the definitions of their ops: equal integers for any sizes, types and zero points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_rows import EVERY_ISA, ISAS, check

import mnn_core as mnn

BYTES = (np.int8, np.uint8)


def numbers(seed: int, dtype: Any, *shape: int) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max, shape, dtype, endpoint=True)


def ends(seed: int, dtype: Any, *shape: int) -> np.ndarray:
    """Least and greatest numbers only, where sums of products are largest."""
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).choice(np.array([info.min, info.max], dtype), shape)


def columns(data: st.DataObject, n: int, to: str) -> tuple[list[np.ndarray | None], dict[str, Any]]:
    """Scale, bias and attributes of a product with n columns."""
    pick = lambda *values: data.draw(st.sampled_from(values))  # noqa: E731
    rng = np.random.default_rng(n)
    scale = (10.0 ** -pick(2, 3, 4) * (0.5 + rng.random(pick(1, n)))).astype(np.float32) if to != "int32" else None
    bias: np.ndarray | None = rng.integers(-30000, 30000, n).astype(np.int32)
    if to == "float32":
        bias = rng.standard_normal(n).astype(np.float32)
    attrs = {"to": to, "zero": pick(-5, 0, 7) if to == "int8" else pick(0, 130), "low": pick(-128, 7), "high": pick(255, 100)}
    return [scale, pick(bias, None)], attrs


@pytest.mark.parametrize("isa", EVERY_ISA)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_products(isa: str, data: st.DataObject) -> None:
    pick = lambda *values: data.draw(st.sampled_from(values))  # noqa: E731
    m, k, n = pick(1, 3, 14, 31), pick(1, 5, 64, 130), pick(1, 16, 33, 70)
    values, left, right = pick(numbers, ends), pick(*BYTES), pick(*BYTES)
    a_zero, b_zero = pick(None, numbers(3, left, 1)), pick(None, numbers(4, right, 1), numbers(5, right, n))
    made, attrs = columns(data, n, pick("int32", "float32", "int8", "uint8"))
    batch, swap = pick((), (2,), (2, 3)), pick(False, True)
    inner = batch if pick(False, True) else ()
    b = values(2, right, *inner, *((n, k) if swap else (k, n)))
    arrays = [values(1, left, *batch, m, k), b, a_zero, b_zero, *made]
    ran = check(isa, "int8.MatMul", {"transposeB": swap, **attrs}, arrays, pick((), (1,), (1, 2, 3, 4, 5)))
    assert bool(ran) == (b.ndim == 2 or inner == batch)


@pytest.mark.parametrize("isa", EVERY_ISA)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_convolutions(isa: str, data: st.DataObject) -> None:
    pick = lambda *values: data.draw(st.sampled_from(values))  # noqa: E731
    kernel = (pick(1, 2, 3), pick(1, 3, 5))
    channels, outputs, n, group = pick((1, 5, 1, 1), (3, 16, 2, 1), (4, 33, 1, 1), (17, 40, 2, 1), (35, 31, 1, 1),
                                       (64, 64, 1, 2), (19, 19, 2, 19), (40, 40, 1, 40))
    if pick(False, True):  # sizes of the unpadded, direct form
        attrs: dict[str, Any] = {"kernelY": 1, "kernelX": 1}
        kernel = (1, 1)
    else:
        attrs = {"kernelY": kernel[0], "kernelX": kernel[1], "strideY": pick(1, 2, 3), "strideX": pick(1, 2),
                 "dilateY": pick(1, 2), "dilateX": pick(1, 3), "pads": tuple(pick(0, 1, 2) for _ in range(4))}
    dtype, values = pick(*BYTES), pick(numbers, ends)
    made, how = columns(data, outputs, pick("int32", "float32", "int8", "uint8"))
    x = values(1, dtype, n, channels, pick(7, 9), pick(13, 30))
    arrays = [x, values(2, np.int8, outputs, channels // group, *kernel), pick(None, numbers(3, dtype, 1)), *made]
    ran = check(isa, "int8.Conv", {"group": group, **attrs, **how}, arrays, (1,))
    depthwise = group == channels > 1
    assert ("depthwise_int8" in ran) == (depthwise and isa != "avx512vnni")
    assert ("conv_int8" in ran) == (not depthwise)
    assert ("conv_int8_first" in ran) == (group == 1 and channels <= 4)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("size", [1, 15, 64, 100_003])
def test_to_bytes_and_back(isa: str, dtype: Any, size: int) -> None:
    x = (60 * np.random.default_rng(size).standard_normal(size)).astype(np.float32)
    x[::7] = np.round(x[::7]) + 0.5  # halves
    x[-1:] = np.nan
    scale, zero = np.array(1, np.float32), numbers(1, dtype, 1)
    for s in (scale, np.array(0.37, np.float32)):
        assert check(isa, "int8.Quantize", {"to": np.dtype(dtype).name}, [x, s, zero], (1, 2), 0)
        assert check(isa, "int8.Dequantize", {}, [numbers(2, dtype, size), s, zero], (1, 2), 0)
    assert check(isa, "int8.DynamicQuantize", {}, [np.nan_to_num(x)], (), 0, outputs=3)
    assert check(isa, "int8.Table", {}, [numbers(2, dtype, size), numbers(3, np.int8, 256)], (1,), 0)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scales_along_an_axis(isa: str, axis: int) -> None:
    x = np.random.default_rng(0).standard_normal((3, 5, 7)).astype(np.float32)
    count = x.shape[axis]
    scale = (0.01 + np.random.default_rng(1).random(count)).astype(np.float32)
    attrs = {"axis": axis, "to": "int8"}
    zero = numbers(1, np.int8, count)
    assert check(isa, "int8.Quantize", attrs, [x, scale, zero], (1, 2), 0) == ["quantize_i8"]
    q = numbers(2, np.int8, 3, 5, 7)
    arrays = [q, scale, zero]
    assert check(isa, "int8.Dequantize", {"axis": axis}, arrays, (1, 2), 0) == ["dequantize_i8"]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", ["ADD", "MUL"])
@pytest.mark.parametrize("types", [(np.int8, np.int8), (np.uint8, np.int8), (np.int8, np.uint8), (np.uint8, np.uint8)])
def test_sums_and_products_of_tensors(isa: str, kind: str, types: tuple) -> None:
    shape = (2, 21, 13, 11)
    attrs = {"opType": kind, "scaleA": 0.31, "scaleB": 0.173 if kind == "ADD" else 0.013, "zeroA": 5, "zeroB": -20,
             "zero": 100}
    for to in ("int8", "uint8"):
        arrays = [numbers(1, types[0], *shape), numbers(2, types[1], *shape)]
        assert check(isa, "int8.Binary", {**attrs, "to": to}, arrays, (), 0) == ["binary_int8", "binary_int8/b"]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", BYTES)
def test_greatest_of_windows(isa: str, dtype: Any) -> None:
    attrs = {"type": "MAXPOOL", "kernelY": 3, "kernelX": 2, "strideY": 2, "strideX": 1, "pads": (1, 0, 0, 1)}
    assert check(isa, "Pooling", attrs, [numbers(1, dtype, 2, 21, 9, 11)], (), 0)


def test_a_network_of_bytes_runs_natively() -> None:
    """Blocked layouts of bytes, and what converts them, in one plan; with each instruction set."""
    rng = np.random.default_rng(0)
    scale = lambda n: (0.002 + 0.002 * rng.random(n)).astype(np.float32)  # noqa: E731
    constants = {"s": np.array(0.02, np.float32), "z": np.array(120, np.uint8), "w1": numbers(1, np.int8, 24, 3, 3, 3),
                 "s1": scale(24), "w2": numbers(2, np.int8, 24, 1, 3, 3), "s2": scale(24), "s3": scale(7),
                 "w3": numbers(3, np.int8, 7, 24, 1, 1)}
    plane = {"kernelY": 3, "kernelX": 3, "pads": (1, 1, 1, 1), "to": "uint8", "zero": 120}
    ops = [mnn.Op("int8.Quantize", ["x", "s", "z"], ["q"], {"to": "uint8"}),
           mnn.Op("int8.Conv", ["q", "w1", "z", "s1", ""], ["a"], {**plane, "strideY": 2}),
           mnn.Op("int8.Conv", ["a", "w2", "z", "s2", ""], ["b"], {**plane, "group": 24}),
           mnn.Op("int8.Binary", ["a", "b"], ["c"], {"scaleA": 0.5, "scaleB": 0.5, "zeroA": 120, "zeroB": 120, "zero": 120,
                                                     "to": "uint8"}),
           mnn.Op("Pooling", ["c"], ["d"], {"type": "MAXPOOL", "kernelY": 2, "kernelX": 2, "strideY": 2, "strideX": 2}),
           mnn.Op("int8.Conv", ["d", "w3", "z", "s3", ""], ["e"], {"to": "uint8", "zero": 120}),
           mnn.Op("int8.Dequantize", ["e", "s", "z"], ["y"], {})]
    x = rng.standard_normal((1, 3, 20, 22)).astype(np.float32)
    graph = mnn.Graph(ops=ops, constants=constants, inputs=[mnn.TensorInfo("x", x.dtype, x.shape)],
                      outputs=[mnn.TensorInfo("y", None, None)])
    want = mnn.load(graph, "numpy").run({"x": x})["y"]
    for isa in EVERY_ISA:
        got = mnn.load(graph, "cpu-x86", strict=True, options={"isa": isa}).run({"x": x})["y"]
        np.testing.assert_array_equal(got, want)
