"""GridSample, CropAndResize, ROIPooling and ROIAlign against onnxruntime and formulas."""

from itertools import product

import numpy as np
import pytest
from ops.definitions import apply
from ops.ort import run

from mnn_core.errors import ShapeError

RNG = np.random.default_rng(5)
PADDINGS = {"ZEROS": "zeros", "CLAMP": "border", "REFLECTION": "reflection"}


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("mode", "padding", "align"), list(product(("BILINEAR", "NEAREST", "CUBIC"), PADDINGS, (False, True))))
def test_grid_sample(mode: str, padding: str, align: bool) -> None:
    names = {"BILINEAR": "linear", "NEAREST": "nearest", "CUBIC": "cubic"}
    attrs = {"paddingMode": padding, "alignCorners": align, **({"cubic": True} if mode == "CUBIC" else {"mode": mode})}
    cases = [(f(2, 3, *size), spread * f(2, 6, 5, 2)) for size, spread in (((5, 6), 0.8), ((4, 3), 3.0), ((1, 7), 1.5))]
    if mode != "CUBIC":
        cases.append((f(1, 2, 3, 4, 5), 1.2 * f(1, 4, 3, 2, 3)))
    for x, grid in cases:
        want = run("GridSample", [x, grid], opset=20, mode=names[mode], padding_mode=PADDINGS[padding],
                   align_corners=int(align))
        np.testing.assert_allclose(apply("GridSample", attrs, x, grid), want, rtol=1e-4, atol=2e-5)


def test_grid_sample_of_nothing_and_of_nan() -> None:
    assert apply("GridSample", {}, f(0, 3, 4, 4), f(0, 2, 2, 2)).shape == (0, 3, 2, 2)
    grid = np.array([np.nan, np.inf, -np.inf, 1e30], np.float32).reshape(1, 1, 2, 2)
    assert np.isfinite(apply("GridSample", {"paddingMode": "REFLECTION"}, f(1, 1, 4, 4), grid)).all()


def crops(x: np.ndarray, boxes: np.ndarray, which: np.ndarray, size: tuple[int, int], fill: float, nearest: bool) -> np.ndarray:
    """TensorFlow's definition, element by element."""
    out = np.full((len(boxes), *size, x.shape[3]), fill, np.float32)
    height, width = x.shape[1] - 1, x.shape[2] - 1
    for (top, left, bottom, right), image, crop in zip(boxes, x[which], out):
        for i, j in np.ndindex(*size):
            y = top * height + i * (bottom - top) * height / (size[0] - 1) if size[0] > 1 else 0.5 * (top + bottom) * height
            z = left * width + j * (right - left) * width / (size[1] - 1) if size[1] > 1 else 0.5 * (left + right) * width
            if not (0 <= y <= height and 0 <= z <= width):
                continue
            if nearest:
                crop[i, j] = image[int(y + 0.5), int(z + 0.5)]
                continue
            a, b = int(y), int(z)
            c, d = min(a + 1, height), min(b + 1, width)
            upper = image[a, b] * (1 - (z - b)) + image[a, d] * (z - b)
            lower = image[c, b] * (1 - (z - b)) + image[c, d] * (z - b)
            crop[i, j] = upper * (1 - (y - a)) + lower * (y - a)
    return out


@pytest.mark.parametrize("nearest", [False, True])
def test_crop_and_resize(nearest: bool) -> None:
    x, which = f(3, 6, 8, 2), np.array([2, 0, 1, 1], np.int32)
    boxes = np.array([[0.11, 0.2, 0.83, 0.71], [0, 0, 1, 1], [0.9, 0.77, 0.13, 0.2], [-0.4, 0.3, 1.33, 1.27]], np.float32)
    for size in ((4, 5), (1, 3), (9, 1)):
        got = apply("CropAndResize", {"extrapolationValue": 7.0, "method": "NEAREST" if nearest else "BILINEAR"},
                    x, boxes, which, np.array(size, np.int32))
        np.testing.assert_allclose(got, crops(x, boxes, which, size, 7.0, nearest), rtol=1e-4, atol=1e-5)
    with pytest.raises(ShapeError, match="image numbers"):
        apply("CropAndResize", {}, x, boxes, which + 1, np.array([2, 2], np.int32))


def test_roi_pooling() -> None:
    x = f(2, 3, 12, 11)
    rois = np.array([[0, 1, 2, 9, 8], [1, 0, 0, 3, 15], [1, 7, 7, 6, 6], [0, 5.5, 2.5, 30, 4], [0, 20, 20, 30, 30]], np.float32)
    for scale in (1.0, 0.5, 0.3):
        want = run("MaxRoiPool", [x, rois], pooled_shape=[3, 2], spatial_scale=scale)
        got = apply("ROIPooling", {"pooledHeight": 3, "pooledWidth": 2, "spatialScale": scale}, x, rois)
        np.testing.assert_array_equal(got, want)
    attrs = {"pooledHeight": 2, "pooledWidth": 2, "spatialScale": 1.0}
    assert apply("ROIPooling", attrs, x, np.zeros((0, 5), np.float32)).shape == (0, 3, 2, 2)


@pytest.mark.parametrize(("aligned", "ratio", "kind"), list(product((False, True), (0, 1, 3), ("avg", "max"))))
def test_roi_align(aligned: bool, ratio: int, kind: str) -> None:
    x, which = f(2, 3, 12, 11), np.array([0, 1, 1, 0, 1])
    rois = np.array([[1.3, 2, 9.7, 8], [0, 0, 3.2, 15], [-3, 4, 30, 9], [5, 5, 5.5, 5.2], [3, 2, 8, 10]], np.float32)
    for scale in (1.0, 0.5):
        want = run("RoiAlign", [x, rois, which], output_height=3, output_width=2, sampling_ratio=ratio, spatial_scale=scale,
                   mode=kind, coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel")
        attrs = {"pooledHeight": 3, "pooledWidth": 2, "samplingRatio": ratio, "spatialScale": scale, "aligned": aligned,
                 "poolType": "MAXPOOL" if kind == "max" else "AVEPOOL", "greatestCorner": True}
        got = apply("ROIAlign", attrs, x, rois, which.astype(np.int32))
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        both = np.concatenate([which[:, None].astype(np.float32), rois], 1)
        np.testing.assert_array_equal(got, apply("ROIAlign", attrs, x, both))


def test_roi_align_greatest() -> None:
    """With samples on pixels, the greatest sample is the greatest pixel."""
    x = f(1, 2, 8, 8)
    attrs = {"pooledHeight": 2, "pooledWidth": 2, "samplingRatio": 2, "spatialScale": 1.0, "aligned": True,
             "poolType": "MAXPOOL"}
    got = apply("ROIAlign", attrs, x, np.array([[0, 2, 2, 6, 6]], np.float32))
    np.testing.assert_allclose(got[0], x[0, :, 2:6, 2:6].reshape(2, 2, 2, 2, 2).max((2, 4)), rtol=1e-6)


@pytest.mark.parametrize(("op_type", "attrs", "shapes", "said"), [
    ("GridSample", {}, [(1, 3, 4, 4), (1, 2, 2, 3)], "grid"), ("GridSample", {}, [(1, 3, 4, 4), (2, 2, 2, 2)], "grid"),
    ("GridSample", {"paddingMode": "CUBE"}, [(1, 3, 4, 4), (1, 2, 2, 2)], "paddingMode"),
    ("GridSample", {"backward": True}, [(1, 3, 4, 4), (1, 2, 2, 2)], "training"),
    ("ROIAlign", {}, [(1, 3, 4, 4), (2, 5)], "cannot pool"),
    ("ROIAlign", {"pooledHeight": 1, "pooledWidth": 1}, [(1, 3, 4, 4), (2, 4)], "regions"),
])
def test_wrong_shapes(op_type: str, attrs: dict, shapes: list, said: str) -> None:
    with pytest.raises(ShapeError, match=said):
        apply(op_type, attrs, *(f(*s) for s in shapes))
