"""Convolutions, poolings and resizing against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_cases import check, convert, model, node, ours, random

F = np.float32
SIZES = {1: (9,), 2: (9, 8), 3: (6, 7, 5)}


@pytest.mark.parametrize("rank", SIZES)
@pytest.mark.parametrize("group", [1, 2, 4])
@pytest.mark.parametrize("attrs", [{}, {"strides": 2}, {"dilations": 2}, {"pads": "odd"}, {"auto_pad": "VALID"},
                                   {"auto_pad": "SAME_UPPER", "strides": 2}, {"auto_pad": "SAME_LOWER", "strides": 2}])
def test_conv(rank: int, group: int, attrs: dict[str, Any]) -> None:
    given = {k: [v] * rank if isinstance(v, int) else v for k, v in attrs.items()}
    if attrs.get("pads"):
        given["pads"] = [0, 1, 1][:rank] + [1, 2, 0][:rank]
    constants = {"w": random(4, 4 // group, *[3, 2, 3][:rank]), "b": random(4, seed=1)}
    check(node("Conv", "x w b", group=group, **given), {"x": random(2, 4, *SIZES[rank])}, constants=constants)


def test_conv_of_a_weight_that_is_an_input() -> None:
    check(node("Conv", "x w", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), {"x": random(1, 2, 5, 5), "w": random(4, 2, 3, 3)})


@pytest.mark.parametrize("rank", SIZES)
@pytest.mark.parametrize("group", [1, 2, 4])
@pytest.mark.parametrize("attrs", [{"strides": 2}, {"pads": "odd", "strides": 2}, {"output_padding": 1, "strides": 2},
                                   {"dilations": 2}, {"auto_pad": "SAME_UPPER", "strides": 2}])
def test_conv_transpose(rank: int, group: int, attrs: dict[str, Any]) -> None:
    given = {k: [v] * rank if isinstance(v, int) else v for k, v in attrs.items()}
    if attrs.get("pads"):
        given["pads"] = [0, 1, 1][:rank] + [1, 0, 0][:rank]
    constants = {"w": random(4, 8 // group, *[3, 2, 3][:rank]), "b": random(8, seed=1)}
    check(node("ConvTranspose", "x w b", group=group, **given), {"x": random(2, 4, *SIZES[rank])}, constants=constants)


def test_conv_transpose_values_and_folded_batch_norm() -> None:
    constants = {"w": np.arange(1, 9, dtype=F).reshape(2, 2, 1, 2), "b": F([.1, .2, .3, .4])}
    attrs = {"group": 2, "strides": [1, 2], "output_padding": [0, 1]}
    x = {"x": F([[1, 2], [3, 4]]).reshape(1, 2, 1, 2)}
    got = check(node("ConvTranspose", "x w b", **attrs), x, constants=constants)[0]
    np.testing.assert_allclose(got.reshape(4, 5), [[1.1, 2.1, 2.1, 4.1, .1], [3.2, 4.2, 6.2, 8.2, .2],
                                                   [15.3, 18.3, 20.3, 24.3, .3], [21.4, 24.4, 28.4, 32.4, .4]], rtol=1e-5)
    constants.update({"s": random(4), "t": random(4, seed=1), "m": random(4, seed=2), "v": np.abs(random(4, seed=3)) + 0.1})
    nodes = [node("ConvTranspose", "x w b", "c", **attrs), node("BatchNormalization", "c s t m v")]
    check(nodes, x, constants=constants)
    assert [op.type for op in convert(model(nodes, x, constants=constants)).ops] == ["Deconvolution"]


@pytest.mark.parametrize("rank", SIZES)
@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool", "AveragePool include"])
@pytest.mark.parametrize("attrs", [{}, {"strides": 2}, {"pads": 1, "strides": 2}, {"pads": "odd", "strides": 2},
                                   {"auto_pad": "SAME_UPPER", "strides": 2}, {"auto_pad": "SAME_LOWER", "strides": 2}])
def test_pool(rank: int, op_type: str, attrs: dict[str, Any]) -> None:
    given = {k: [v] * (2 * rank if k == "pads" else rank) if isinstance(v, int) else v for k, v in attrs.items()}
    if attrs.get("pads") == "odd":
        given["pads"] = [0, 1, 1][:rank] + [1, 0, 1][:rank]
    if op_type.endswith("include"):
        given["count_include_pad"] = 1
    check(node(op_type.split()[0], "x", kernel_shape=[3, 2, 3][:rank], **given), {"x": random(2, 3, *SIZES[rank])})


@pytest.mark.parametrize("opset", [11, 18, 19, 22])
def test_pool_ceil_mode(opset: int) -> None:
    x = {"x": np.arange(1, 17, dtype=F).reshape(1, 1, 4, 4)}
    attrs = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}
    got = ours(model(node("AveragePool", "x", pads=[1, 1, 1, 1], count_include_pad=1, **attrs), x, opset=opset), x)[0]
    np.testing.assert_allclose(got[0, 0], [[1.5556, 3.3333, 2], [6.3333, 11, 6], [4.5, 7.5, 4]], atol=1e-4)
    got = ours(model(node("AveragePool", "x", **attrs), x, opset=opset), x)[0]
    assert got[0, 0].tolist() == [[6, 7.5], [12, 13.5]]
    line = {"x": F([[[1, 2, 3, 4]]])}
    got = ours(model(node("MaxPool", "x", kernel_shape=[2], strides=[2], pads=[1, 1], ceil_mode=1), line, opset=opset), line)[0]
    assert got.tolist() == [[[1, 3, 4]]]


def _image(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).permutation(int(np.prod(shape))).reshape(shape).astype(np.float32)


@pytest.mark.parametrize(("op_type", "attrs"), [
    ("MaxPool", {"kernel_shape": [2, 3], "dilations": [2, 1], "strides": [2, 2], "ceil_mode": 1}),
    ("AveragePool", {"kernel_shape": [2, 2], "dilations": [2, 2], "pads": [1, 0, 0, 1]}),
    ("AveragePool", {"kernel_shape": [2, 2], "dilations": [2, 2], "pads": [1, 0, 0, 1], "count_include_pad": 1, "ceil_mode": 1,
                     "strides": [3, 2]}),
    ("LpPool", {"kernel_shape": [3, 2], "dilations": [1, 2], "p": 3, "ceil_mode": 1, "strides": [2, 2]}),
])
def test_pools_with_dilations(op_type: str, attrs: dict[str, Any]) -> None:
    check(node(op_type, "x", **attrs), {"x": _image(2, 3, 7, 6)}, opset=22)


@pytest.mark.parametrize("attrs", [{"ceil_mode": 1, "strides": [2, 2, 3]}, {"pads": [1, 0, 1, 0, 2, 1]},
                                   {"auto_pad": "SAME_LOWER", "strides": [2, 3, 1]}])
@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool", "LpPool"])
def test_pools_of_volumes(op_type: str, attrs: dict[str, Any]) -> None:
    check(node(op_type, "x", kernel_shape=[2, 3, 3], **attrs), {"x": _image(1, 2, 5, 6, 7)}, opset=22)


@pytest.mark.parametrize("attrs", [{"storage_order": 1, "pads": [1, 1, 1, 1]}, {"dilations": [2, 2]},
                                   {"auto_pad": "SAME_LOWER"}])
def test_places_of_greatest_elements(attrs: dict[str, Any]) -> None:
    check(node("MaxPool", "x", "y p", kernel_shape=[2, 3], **attrs), {"x": _image(2, 3, 5, 6)}, ("y", "p"), opset=12)


def test_place_of_the_first_of_equal_elements_by_columns() -> None:
    x = np.zeros((1, 1, 3, 3), np.float32)
    x[0, 0, 0, 1] = x[0, 0, 1, 0] = 1  # by rows (0, 1) comes first, which by columns is element 3
    got = check(node("MaxPool", "x", "y p", kernel_shape=[2, 2], storage_order=1), {"x": x}, ("y", "p"), opset=12)
    assert got[1].reshape(-1).tolist() == [3, 3, 1, 4]


def test_ceil_mode_makes_no_partial_windows_of_valid_ones() -> None:
    """By the standard's formula for VALID; onnxruntime gives [2, 4, 5]."""
    proto = model(node("MaxPool", "x", kernel_shape=[2], strides=[2], auto_pad="VALID", ceil_mode=1),
                  {"x": np.arange(1, 6, dtype=np.float32).reshape(1, 1, 5)}, opset=12)
    assert ours(proto, {"x": np.arange(1, 6, dtype=np.float32).reshape(1, 1, 5)})[0].tolist() == [[[2, 4]]]


def test_other_pools() -> None:
    x = {"x": random(2, 3, 7, 6)}
    check(node("MaxPool", "x", kernel_shape=[2, 3], dilations=[2, 1], pads=[1, 1, 0, 1]), x)
    check(node("LpPool", "x", kernel_shape=[2, 2], p=3), x)
    for rank in SIZES:
        for op_type in ("GlobalAveragePool", "GlobalMaxPool"):
            check(node(op_type, "x"), {"x": random(2, 3, *SIZES[rank])})


def test_resize_nearest_of_the_default_kind() -> None:
    x = {"x": np.arange(9, dtype=F).reshape(1, 1, 3, 3)}
    for opset in (11, 13):
        got = check(node("Resize", "x roi s"), x, opset=opset, constants={"roi": np.zeros(0, F), "s": F([1, 1, 1.5, 1.5])})
        assert got[0][0, 0].tolist() == [[0, 0, 1, 2], [0, 0, 1, 2], [3, 3, 4, 5], [6, 6, 7, 8]]


def test_resize_arity() -> None:
    x = {"x": np.arange(1, 10, dtype=F).reshape(1, 1, 3, 3)}
    want = np.repeat(np.repeat(x["x"], 2, 2), 2, 3)
    scales = {"roi": np.zeros(0, F), "s": F([1, 1, 2, 2]), "none": np.zeros(0, F), "z": np.array([1, 1, 6, 6])}
    for names, opset in (("x s", 10), ("x roi s", 11), ("x _ s", 13), ("x _ _ z", 13), ("x roi none z", 11)):
        used = {k: scales[k] for k in names.split() if k in scales}
        proto = model(node("Resize", names, mode="nearest"), x, opset=opset, constants=used)
        np.testing.assert_array_equal(ours(proto, x)[0], want)
    check(node("Upsample", "x", mode="nearest", scales=[1.0, 1.0, 2.0, 2.0]), x, opset=7)
    check(node("Upsample", "x s", mode="linear"), x, opset=9, constants={"s": scales["s"]})


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("transform", ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                       "half_pixel_symmetric", "tf_half_pixel_for_nn"])
@pytest.mark.parametrize("factor", [2.0, 1.3, 0.65])
def test_resize(mode: str, transform: str, factor: float) -> None:
    opset = 11 if transform == "tf_half_pixel_for_nn" else 19
    if opset == 11 and mode != "nearest":
        transform, opset = "half_pixel", 11
    x = {"x": random(1, 2, 5, 7)}
    attrs = {"mode": mode, "coordinate_transformation_mode": transform}
    check(node("Resize", "x _ s", **attrs) if opset > 11 else node("Resize", "x roi s", **attrs), x, opset=opset,
          constants={"roi": np.zeros(0, F), "s": F([1, 1, factor, factor])}, tolerance=1e-4)
    if opset > 11:
        check(node("Resize", "x _ _ z", axes=[3, 2], **attrs), x, opset=opset, tolerance=1e-4,
              constants={"z": np.array([int(7 * factor), 4])})


@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("transform", ["half_pixel", "asymmetric", "align_corners"])
def test_resize_nearest_modes(nearest: str, transform: str) -> None:
    x = {"x": random(1, 1, 4, 4)}
    for scale in (2.0, 1.5, 0.75):
        check(node("Resize", "x _ s", nearest_mode=nearest, coordinate_transformation_mode=transform), x,
              constants={"s": F([1, 1, scale, scale])})


def test_resize_of_integers_truncates() -> None:
    x = np.array([[[[0, 10], [20, 31]]]], np.int32)
    proto = model(node("Resize", "x _ s", mode="linear", coordinate_transformation_mode="asymmetric"), {"x": x}, opset=13,
                  constants={"s": np.array([1, 1, 2, 2], F)})
    assert ours(proto, {"x": x})[0][0, 0].tolist() == [[0, 5, 10, 10], [10, 15, 20, 20], [20, 25, 31, 31], [20, 25, 31, 31]]


@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
def test_resize_of_integers_to_the_nearest(dtype: type) -> None:
    x = np.arange(2 * 9, dtype=dtype).reshape(1, 2, 3, 3)
    for mode, roi in (("half_pixel", []), ("tf_crop_and_resize", [0, 0, 0, -0.5, 1, 1, 1, 1.5])):
        check(node("Resize", "x r s", mode="nearest", coordinate_transformation_mode=mode, extrapolation_value=7.0), {"x": x},
              opset=13, constants={"s": np.array([1, 1, 2, 2], F), "r": np.array(roi, F)})


def test_resize_special_forms() -> None:
    x = {"x": random(1, 2, 6, 6)}
    half = {"s": F([1, 1, 0.5, 0.5])}
    check(node("Resize", "x _ s", mode="linear", antialias=1), x, opset=19, constants=half)
    check(node("Resize", "x _ s", mode="cubic", antialias=1), x, opset=19, constants=half, tolerance=1e-4)
    check(node("Resize", "x _ s", mode="cubic", exclude_outside=1), x, constants={"s": F([1, 1, 1.7, 2])}, tolerance=1e-4)
    crop = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 9.0}
    region = {"r": F([0, 0, 0.4, 0.6, 1, 1, 1.2, 1.7]), "z": np.array([1, 2, 3, 3])}
    check(node("Resize", "x r _ z", mode="linear", **crop), x, constants=region)
    check(node("Resize", "x _ s", mode="linear"), {"x": random(2, 3, 5)}, constants={"s": F([1, 1, 2.5])})
    check(node("Resize", "x _ s", mode="linear"), {"x": random(1, 1, 3, 4, 5)}, constants={"s": F([1, 1, 2, 2, 2])})
    check(node("Resize", "x _ s"), {"x": random(2, 3)}, constants={"s": F([2, 2])})
    for policy in ("not_larger", "not_smaller"):
        resize = node("Resize", "x _ _ z", axes=[2, 3], keep_aspect_ratio_policy=policy)
        check(resize, {"x": random(1, 1, 4, 6)}, opset=19, constants={"z": np.array([7, 8])})


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample(mode: str, padding: str) -> None:
    feeds = {"x": random(1, 2, 4, 5), "g": random(1, 3, 4, 2, seed=1)}
    check(node("GridSample", "x g", mode=mode, padding_mode=padding), feeds, opset=20, tolerance=1e-4)


@pytest.mark.parametrize(("size", "corners"), [([1, 2, 1, 1], 0), ([1, 1, 3, 1], 0), ([2, 3, 2, 4], 0), ([2, 3, 2, 4], 1),
                                              ([1, 1, 2, 3, 2], 0), ([1, 1, 2, 3, 2], 1)])
def test_affine_grid(size: list[int], corners: int) -> None:
    """The function by which the standard defines it fails for one image."""
    n = len(size) - 2
    check(node("AffineGrid", "t s", align_corners=corners), {"t": random(size[0], n, n + 1)}, opset=20,
          constants={"s": np.array(size, np.int64)})


def test_regions() -> None:
    x = {"x": random(2, 3, 8, 9), "r": F([[0, 0, 6, 5], [1, 2, 7.5, 7]])}
    attrs = {"output_height": 3, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 0.9}
    check(node("RoiAlign", "x r i", **attrs), x, opset=16, constants={"i": np.array([1, 0])})
    check(node("RoiAlign", "x r i", **attrs), x, opset=10, constants={"i": np.array([1, 0])})
    check(node("RoiAlign", "x r i", **attrs, mode="max"), x, opset=16, constants={"i": np.array([1, 0])})
    rois = {"x": x["x"], "r": F([[1, 0, 0, 6, 5], [0, 1, 2, 7, 7]])}
    check(node("MaxRoiPool", "x r", pooled_shape=[2, 3]), rois)


@pytest.mark.parametrize("rank", [1, 2])
def test_indices_of_the_greatest_and_back(rank: int) -> None:
    pooled = node("MaxPool", "x", "y i", kernel_shape=[2] * rank, strides=[2] * rank)
    x = {"x": random(2, 3, *(8, 6)[:rank])}
    check(pooled, x, ("y", "i"))
    check([pooled, node("MaxUnpool", "y i", "z", kernel_shape=[2] * rank, strides=[2] * rank)], x, ("z",))


def test_quantised_products() -> None:
    dice = np.random.default_rng(0)
    x, w = dice.integers(0, 256, (1, 3, 6, 6), np.uint8), dice.integers(-128, 128, (4, 3, 3, 3), np.int8)
    zeros = {"xz": np.uint8(120), "wz": np.int8(3)}
    check(node("ConvInteger", "x w xz"), {"x": x}, opset=13, constants={"w": w.view(np.uint8), "xz": zeros["xz"]})
    check(node("MatMulInteger", "a b xz wz"), {"a": x[0, 0], "b": w.reshape(6, -1)[:, :5]}, constants=zeros)
    scales = {"s": F(0.02), "t": F([0.01, 0.02, 0.03, 0.04]), "u": F(0.5), "z": np.uint8(100), "n": np.zeros(4, np.int8)}
    check(node("QLinearConv", "x s xz w t n u z b"), {"x": x},
          constants={**scales, "xz": zeros["xz"], "w": w, "b": np.int32([10, -20, 3000, 0])})
    check(node("DynamicQuantizeLinear", "x", "y s z"), {"x": random(3, 4)}, ("y", "s", "z"))
