"""Resampling against onnxruntime."""

from itertools import product

import numpy as np
import pytest
from ops.definitions import apply
from ops.ort import run

from mnn_core.errors import ShapeError

RNG = np.random.default_rng(3)
MODES = {"AlignCorners": "align_corners", "HalfPixels": "half_pixel", "PytorchHalfPixels": "pytorch_half_pixel",
         "Asymmetric": "asymmetric", "TensorflowHalfPixels": "tf_half_pixel_for_nn"}
KINDS = {1: ("nearest", "floor"), 2: ("linear", "floor"), 3: ("cubic", "floor"), 4: ("nearest", "round_prefer_floor")}
CASES = [(k, m) for k, m in product(KINDS, MODES) if m != "TensorflowHalfPixels" or k in (1, 4)]
NONE = np.zeros(0, np.float32)


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def oracle(x: np.ndarray, kind: int, mode: str, scales: np.ndarray | None = None, sizes: np.ndarray | None = None,
           **more: object) -> np.ndarray:
    sizes = None if sizes is None else sizes.astype(np.int64)
    name, nearest = KINDS[kind]
    return run("Resize", [x, NONE, NONE if scales is None else scales, *([] if sizes is None else [sizes])],
               opset=11 if mode == "TensorflowHalfPixels" else 13, mode=name, nearest_mode=nearest,
               coordinate_transformation_mode=MODES[mode], **more)


@pytest.mark.parametrize(("kind", "mode"), CASES)
def test_sizes(kind: int, mode: str) -> None:
    x = f(2, 3, 5, 7)
    for height, width in ((10, 14), (8, 4), (1, 1), (5, 7), (3, 21)):
        sizes = np.array([2, 3, height, width], np.int32)
        got = apply("Interp", {"resizeType": kind, "ctm": mode}, x, sizes)
        np.testing.assert_allclose(got, oracle(x, kind, mode, sizes=sizes), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kind", "mode"), CASES)
def test_scales(kind: int, mode: str) -> None:
    x = f(1, 2, 6, 7)
    for vertical, horizontal in ((2, 3), (1.5, 0.7), (0.5, 0.34), (2.6, 1)):
        scales = np.array([1, 1, vertical, horizontal], np.float32)
        got = apply("Interp", {"resizeType": kind, "ctm": mode}, x, scales)
        np.testing.assert_allclose(got, oracle(x, kind, mode, scales), rtol=1e-4, atol=1e-5)


def test_nearest_half_pixel_with_a_scale_that_is_no_integer() -> None:
    """apache/tvm#19500."""
    x = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    got = apply("Interp", {"resizeType": 4, "ctm": "HalfPixels"}, x, np.array([1, 1, 1.5, 1.5], np.float32))
    np.testing.assert_array_equal(got[0, 0], [[0, 0, 1, 2], [0, 0, 1, 2], [3, 3, 4, 5], [6, 6, 7, 8]])


@pytest.mark.parametrize("a", [-0.5, -0.75])
def test_cubic_coefficient(a: float) -> None:
    x, scales = f(1, 2, 6, 7), np.array([1, 1, 1.5, 2], np.float32)
    got = apply("Interp", {"resizeType": 3, "ctm": "HalfPixels", "cubicCoeffA": a}, x, scales)
    np.testing.assert_allclose(got, oracle(x, 3, "HalfPixels", scales, cubic_coeff_a=a), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [1, 2])
def test_3d(kind: int) -> None:
    x, sizes = f(1, 2, 4, 5, 6), np.array([1, 2, 7, 10, 3], np.int32)
    got = apply("Interp3D", {"resizeType": kind, "ctm": "HalfPixels"}, x, sizes)
    np.testing.assert_allclose(got, oracle(x, kind, "HalfPixels", sizes=sizes), rtol=1e-4, atol=1e-5)


def test_one_dimension() -> None:
    x, sizes = f(2, 3, 5), np.array([2, 3, 9], np.int32)
    got = apply("Interp", {"resizeType": 2, "ctm": "HalfPixels"}, x, sizes)
    np.testing.assert_allclose(got, oracle(x, 2, "HalfPixels", sizes=sizes), rtol=1e-4, atol=1e-5)


def test_older_attributes() -> None:
    x, sizes = f(1, 2, 5, 6), np.array([1, 2, 9, 4], np.int32)
    older = (({"alignCorners": True}, "AlignCorners"), ({"halfPixelCenters": True}, "HalfPixels"), ({}, "Asymmetric"))
    for attrs, mode in older:
        got = apply("Interp", {"resizeType": 2, "outputHeight": 9, "outputWidth": 4, **attrs}, x)
        np.testing.assert_allclose(got, oracle(x, 2, mode, sizes=sizes), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(got, apply("Interp", {"resizeType": 2, **attrs}, x, np.array([9, 4], np.int32)))
    got = apply("Interp", {"resizeType": 1, "halfPixelCenters": True, "heightScale": 2.0, "widthScale": 1.5}, x)
    np.testing.assert_array_equal(got, oracle(x, 1, "Asymmetric", sizes=np.array([1, 2, 10, 9])))
    np.testing.assert_allclose(apply("Resize", {"xScale": 2.0, "yScale": 3.0}, x),
                               oracle(x, 2, "Asymmetric", np.array([1, 1, 3, 2], np.float32)), rtol=1e-4, atol=1e-5)


def test_both_older_flags() -> None:
    x, sizes = f(1, 2, 5, 6), np.array([1, 2, 9, 4], np.int32)
    for kind, mode in ((1, "AlignCorners"), (2, "HalfPixels"), (3, "HalfPixels"), (4, "HalfPixels")):
        got = apply("Interp", {"resizeType": kind, "alignCorners": True, "halfPixelCenters": True}, x, sizes)
        np.testing.assert_allclose(got, oracle(x, kind, mode, sizes=sizes), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kind", "mode"), CASES)
def test_scales_as_attributes_are_exact(kind: int, mode: str) -> None:
    """The result has 10 * 4 elements, which are not 1.7 and 0.7 times 6 * 7."""
    x = f(1, 2, 6, 7)
    got = apply("Interp", {"resizeType": kind, "ctm": mode, "heightScale": 1.7, "widthScale": 0.7}, x)
    np.testing.assert_allclose(got, oracle(x, kind, mode, np.array([1, 1, 1.7, 0.7], np.float32)), rtol=1e-4, atol=1e-5)


def test_integers_and_nothing() -> None:
    x = RNG.integers(0, 255, (1, 2, 3, 4)).astype(np.uint8)
    got = apply("Interp", {"resizeType": 1, "ctm": "Asymmetric"}, x, np.array([1, 1, 2, 2], np.float32))
    np.testing.assert_array_equal(got, x.repeat(2, 2).repeat(2, 3))
    got = apply("Interp", {"resizeType": 2, "ctm": "HalfPixels"}, f(0, 2, 3, 4), np.array([0, 2, 6, 6], np.int32))
    assert got.shape == (0, 2, 6, 6)


@pytest.mark.parametrize(("attrs", "shape", "to", "said"), [
    ({"resizeType": 2}, (1, 3, 4, 4), np.array([1, 2, 8, 8], np.int32), "first two"),
    ({"resizeType": 2}, (1, 3, 4, 4), np.array([8], np.int32), "expected 2 or 4"),
    ({"resizeType": 7}, (1, 3, 4, 4), np.array([8, 8], np.int32), "resizeType"),
    ({"resizeType": 2}, (1, 3, 4, 4), np.array([8, 0], np.int32), "cannot"),
    ({"resizeType": 2}, (1, 3, 4, 4), np.array([1, 1, 1, -2], np.float32), "positive"),
    ({"resizeType": 2}, (3, 4), np.array([8, 8], np.int32), "image"),
])
def test_wrong_shapes(attrs: dict, shape: tuple, to: np.ndarray, said: str) -> None:
    with pytest.raises(ShapeError, match=said):
        apply("Interp", attrs, f(*shape), to)
