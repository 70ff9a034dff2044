"""Pooling against onnxruntime."""

from itertools import product

import numpy as np
import pytest
from ops.definitions import apply
from ops.ort import run

from mnn_core.errors import ShapeError

RNG = np.random.default_rng(2)
ONE_TO_16 = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def attributes(kernel: tuple, strides: tuple, pads: tuple, **more: object) -> dict:
    return {"kernelY": kernel[0], "kernelX": kernel[1], "strideY": strides[0], "strideX": strides[1], "pads": pads, **more}


WINDOWS = [((2, 2), (2, 2), (0, 0, 0, 0)), ((3, 3), (2, 2), (1, 1, 1, 1)), ((3, 2), (1, 3), (0, 1, 2, 0)),
           ((2, 4), (2, 2), (1, 0, 1, 3)), ((1, 1), (3, 2), (0, 0, 0, 0)), ((4, 4), (3, 3), (1, 2, 3, 2))]


@pytest.mark.parametrize(("window", "ceil", "size"), list(product(WINDOWS, (False, True), ((5, 6), (8, 7), (4, 4)))))
def test_pooling(window: tuple, ceil: bool, size: tuple) -> None:
    kernel, strides, pads = window
    x = f(2, 3, *size)
    given = {"kernel_shape": kernel, "strides": strides, "pads": pads, "ceil_mode": int(ceil)}
    got = apply("Pooling", attributes(kernel, strides, pads, ceilModel=ceil, type="MAXPOOL"), x)
    np.testing.assert_array_equal(got, run("MaxPool", [x], **given))
    for include in (0, 1):
        count = "INCLUDE_PADDING" if include else "EXCLUDE_PADDING"
        got = apply("Pooling", attributes(kernel, strides, pads, ceilModel=ceil, type="AVEPOOL", countType=count), x)
        want = run("AveragePool", [x], opset=22, count_include_pad=include, **given)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_ceil_and_count_include_pad() -> None:
    """pytorch/pytorch#183528, microsoft/onnxruntime#16203: cells outside of input and padding never count."""
    attrs = attributes((3, 3), (2, 2), (1, 1, 1, 1), type="AVEPOOL", ceilModel=True, countType="INCLUDE_PADDING")
    np.testing.assert_allclose(apply("Pooling", attrs, ONE_TO_16)[0, 0],
                               [[1.5556, 3.3333, 2], [6.3333, 11, 6], [4.5, 7.5, 4]], rtol=1e-4)
    attrs = attributes((3, 3), (2, 2), (), type="AVEPOOL", ceilModel=True, countType="EXCLUDE_PADDING")
    np.testing.assert_allclose(apply("Pooling", attrs, ONE_TO_16)[0, 0], [[6, 7.5], [12, 13.5]])


def test_windows_that_begin_behind_the_input_are_dropped() -> None:
    x = np.array([1, 2, 3, 4], np.float32).reshape(1, 1, 1, 4)
    got = apply("Pooling", attributes((1, 2), (1, 2), (0, 1, 0, 1), ceilModel=True), x)
    np.testing.assert_array_equal(got.reshape(-1), [1, 3, 4])


@pytest.mark.parametrize("size", [(7, 8), (6, 5)])
@pytest.mark.parametrize(("mode", "auto"), [("SAME", "SAME_UPPER"), ("VALID", "VALID")])
def test_pad_modes(size: tuple, mode: str, auto: str) -> None:
    x = f(1, 2, *size)
    for kernel, strides in (((3, 3), (2, 2)), ((4, 3), (3, 1))):
        attrs = attributes(kernel, strides, (), padType=mode)
        np.testing.assert_array_equal(apply("Pooling", {**attrs, "type": "MAXPOOL"}, x),
                                      run("MaxPool", [x], kernel_shape=kernel, strides=strides, auto_pad=auto))
        np.testing.assert_allclose(apply("Pooling", {**attrs, "type": "AVEPOOL"}, x),
                                   run("AveragePool", [x], kernel_shape=kernel, strides=strides, auto_pad=auto), rtol=1e-5,
                                   atol=1e-6)


def test_default_count() -> None:
    """As the real MNN: `pads` excludes padding, padX and padY (Caffe's form) include it."""
    attrs = {"kernelX": 3, "kernelY": 3, "strideX": 2, "strideY": 2, "type": "AVEPOOL", "ceilModel": False}
    np.testing.assert_allclose(apply("Pooling", {**attrs, "pads": (1, 1, 1, 1)}, ONE_TO_16)[0, 0], [[3.5, 5], [9.5, 11]])
    np.testing.assert_allclose(apply("Pooling", {**attrs, "padX": 1, "padY": 1}, ONE_TO_16)[0, 0],
                               [[14 / 9, 30 / 9], [57 / 9, 11]], rtol=1e-6)


def test_global_and_too_large_windows() -> None:
    x = f(2, 3, 5, 6)
    for attrs in ({"isGlobal": True}, attributes((9, 7), (2, 2), ())):
        np.testing.assert_array_equal(apply("Pooling", attrs, x), run("GlobalMaxPool", [x]))
        np.testing.assert_allclose(apply("Pooling", {**attrs, "type": "AVEPOOL"}, x), run("GlobalAveragePool", [x]), rtol=1e-5,
                                   atol=1e-6)


@pytest.mark.parametrize("window", WINDOWS)
def test_places(window: tuple) -> None:
    kernel, strides, pads = window
    x = f(2, 3, 8, 7)
    attrs = attributes(kernel, strides, pads, ceilModel=False)
    greatest, places = apply("Pooling", attrs, x, outputs=2)
    want, flat = run("MaxPool", [x], outputs=2, kernel_shape=kernel, strides=strides, pads=pads)
    np.testing.assert_array_equal(greatest, want)
    np.testing.assert_array_equal(places, flat % 56)
    assert places.dtype == np.int32


def test_integers() -> None:
    x = RNG.integers(-128, 127, (1, 3, 6, 6)).astype(np.int8)
    np.testing.assert_array_equal(apply("Pooling", attributes((3, 3), (2, 2), (1, 1, 1, 1), ceilModel=False), x),
                                  run("MaxPool", [x], kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)))


@pytest.mark.parametrize("pads", [(0, 0, 0), (1, 0, 1), (1, 0, 1, 0, 1, 0)])
def test_3d(pads: tuple) -> None:
    x = f(2, 3, 5, 6, 7)
    full = pads if len(pads) == 6 else pads * 2
    attrs = {"kernels": (3, 2, 3), "strides": (2, 1, 3), "pads": pads}
    given = {"kernel_shape": (3, 2, 3), "strides": (2, 1, 3), "pads": full}
    np.testing.assert_array_equal(apply("Pooling3D", attrs, x), run("MaxPool", [x], **given))
    np.testing.assert_allclose(apply("Pooling3D", {**attrs, "type": "AVEPOOL"}, x), run("AveragePool", [x], **given),
                               rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("attrs", "shape", "said"), [
    (attributes((2, 2), (2, 2), ()), (1, 3, 4), "rank 4"),
    (attributes((2, 2), (2, 2), (1,)), (1, 3, 4, 4), "pads"),
    (attributes((2, 2), (2, 2), (), padType="VALID"), (1, 3, 1, 4), "does not fit"),
    (attributes((0, 2), (2, 2), ()), (1, 3, 4, 4), "kernel"),
    (attributes((2, 2), (2, 2), ()), (1, 3, 0, 4), "do not fit"),
])
def test_wrong_shapes(attrs: dict, shape: tuple, said: str) -> None:
    with pytest.raises(ShapeError, match=said):
        apply("Pooling", attrs, f(*shape))
