"""MatrixBandPart, Det and Histogram against onnxruntime and NumPy."""

import numpy as np
import pytest
from ops.definitions import apply
from ops.ort import run

from mnn_core.errors import ShapeError

X = np.random.default_rng(0).standard_normal((2, 4, 5)).astype(np.float32)


@pytest.mark.parametrize("k", [-2, 0, 1, 7])
def test_band_part_is_trilu(k: int) -> None:
    if k >= 0:
        got = apply("MatrixBandPart", {}, X, np.array(-1, np.int32), np.array(k, np.int32))
        np.testing.assert_array_equal(got, run("Trilu", [X, np.array(k)], upper=0))
    else:
        got = apply("MatrixBandPart", {}, X, np.array(-k, np.int32), np.array(-1, np.int32))
        np.testing.assert_array_equal(got, run("Trilu", [X, np.array(k)], upper=1))


def test_det() -> None:
    x = X[:, :, :4]
    np.testing.assert_allclose(apply("Det", {}, x), run("Det", [x]), rtol=1e-4)
    with pytest.raises(ShapeError, match="no square"):
        apply("Det", {}, X)


def test_histogram() -> None:
    x = np.concatenate([X.ravel(), np.array([2, -2, np.nan, np.inf], np.float32)])
    want = np.histogram(x[np.isfinite(x)].astype(float), bins=7, range=(-2, 2))[0]
    np.testing.assert_array_equal(apply("Histogram", {"axis": -1, "outMaxVal": 7, "softmaxThreshold": -2, "topK": 2}, x), want)
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    got = apply("Histogram", {"axis": 1, "outMaxVal": 4, "softmaxThreshold": 0, "topK": 8}, image)
    np.testing.assert_array_equal(got, np.histogram(image[..., 1], bins=4, range=(0, 8))[0])
