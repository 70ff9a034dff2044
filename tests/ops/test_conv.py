"""Convolutions and transposed convolutions against onnxruntime and formulas."""

import numpy as np
import pytest
from ops.definitions import apply
from ops.ort import run

from mnn_core.errors import ShapeError
from mnn_core.formats import read_mnn, write_mnn
from mnn_core.ir import Graph, Op, TensorInfo
from mnn_core.ops import conv_geometry

RNG = np.random.default_rng(1)


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def close(got: np.ndarray, want: np.ndarray, tolerance: float = 1e-5) -> None:
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * max(1, np.abs(want).max(initial=0)))


# (channels, outputs, size, kernel, strides, dilations, pads, group)
CONVOLUTIONS = [
    (3, 4, (9, 8), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), 1),
    (4, 6, (9, 11), (3, 2), (2, 3), (1, 2), (2, 0, 1, 3), 2),
    (5, 5, (7, 8), (5, 3), (2, 1), (1, 1), (2, 1, 2, 1), 5),
    (3, 6, (7, 8), (2, 3), (1, 2), (2, 1), (0, 1, 3, 0), 3),
    (32, 3, (50, 67), (3, 3), (1, 1), (1, 1), (0, 0, 0, 0), 1),
    (4, 2, (6, 5, 7), (3, 2, 3), (2, 1, 2), (1, 2, 1), (1, 0, 2, 0, 1, 1), 2),
]


@pytest.mark.parametrize("case", CONVOLUTIONS)
@pytest.mark.parametrize("batch", [0, 2])
def test_convolution(case: tuple, batch: int) -> None:
    channels, outputs, size, kernel, strides, dilations, pads, group = case
    x, w, b = f(batch, channels, *size), f(outputs, channels // group, *kernel), f(outputs)
    want = run("Conv", [x, w, b], kernel_shape=kernel, strides=strides, dilations=dilations, pads=pads, group=group)
    attrs, name = attributes(kernel, strides, dilations, pads, group)
    close(apply(name, attrs, x, w, b), want)
    close(apply(name, {**attrs, "relu": True}, x, w, b), np.maximum(want, 0))
    close(apply(name, {**attrs, "relu6": True}, x, w, b), np.clip(want, 0, 6))
    if group == channels == outputs:
        close(apply("ConvolutionDepthwise", attrs, x, w, b), want)


def attributes(kernel: tuple, strides: tuple, dilations: tuple, pads: tuple, group: int, **more: object) -> tuple[dict, str]:
    if len(kernel) == 3:
        space = {"kernels": kernel, "strides": strides, "dilates": dilations, "pads": pads, "group": group, **more}
        return space, "Convolution3D"
    return {"kernelY": kernel[0], "kernelX": kernel[1], "strideY": strides[0], "strideX": strides[1], "dilateY": dilations[0],
            "dilateX": dilations[1], "pads": pads, "group": group, **more}, "Convolution"


@pytest.mark.parametrize("size", [(7, 8), (1, 5), (6, 9)])
@pytest.mark.parametrize(("mode", "auto"), [("SAME", "SAME_UPPER"), ("VALID", "VALID")])
def test_pad_modes(size: tuple, mode: str, auto: str) -> None:
    for kernel, strides in (((3, 3), (2, 2)), ((1, 4), (3, 1)), ((2, 5), (1, 3))):
        if mode == "VALID" and any(k > s for k, s in zip(kernel, size)):
            continue
        x, w = f(1, 2, *size), f(3, 2, *kernel)
        want = run("Conv", [x, w], auto_pad=auto, strides=strides)
        attrs, name = attributes(kernel, strides, (1, 1), (9, 9, 9, 9), 1, padMode=mode)
        close(apply(name, attrs, x, w), want)


def test_pads_of_both_kinds() -> None:
    x, w = f(1, 2, 6, 7), f(3, 2, 3, 3)
    want = run("Conv", [x, w], pads=[2, 1, 2, 1])
    close(apply("Convolution", {"padY": 2, "padX": 1}, x, w), want)
    close(apply("Convolution", {"pads": (2, 1)}, x, w), want)
    close(apply("Convolution", {"pads": (2, 1, 2, 1), "padY": 7, "padX": 7}, x, w), want)


def test_same_with_dilation() -> None:
    x, w = f(1, 2, 9, 10), f(3, 2, 3, 3)
    got = apply("Convolution", {"padMode": "SAME", "dilateX": 2, "dilateY": 3, "strideX": 1}, x, w)
    close(got, run("Conv", [x, w], pads=[3, 2, 3, 2], dilations=[3, 2]))


TRANSPOSED = [
    (6, 4, (5, 7), (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), (0, 0), 1),
    (4, 6, (3, 5), (3, 2), (2, 3), (2, 1), (1, 0, 0, 1), (1, 2), 2),
    (5, 5, (4, 4), (4, 4), (2, 2), (1, 1), (1, 1, 1, 1), (0, 0), 5),
    (2, 3, (1, 4), (1, 3), (1, 1), (1, 1), (0, 1, 0, 2), (0, 0), 1),
    (4, 2, (3, 4, 2), (3, 2, 2), (2, 1, 3), (1, 2, 1), (1, 0, 0, 0, 1, 1), (1, 0, 2), 2),
]


@pytest.mark.parametrize("case", TRANSPOSED)
@pytest.mark.parametrize("batch", [0, 2])
def test_transposed(case: tuple, batch: int) -> None:
    channels, outputs, size, kernel, strides, dilations, pads, extra, group = case
    x, w, b = f(batch, channels, *size), f(channels, outputs // group, *kernel), f(outputs)
    want = run("ConvTranspose", [x, w, b], strides=strides, dilations=dilations, pads=pads, group=group, output_padding=extra)
    attrs, name = attributes(kernel, strides, dilations, pads, group, outPads=extra)
    close(apply("ConvTranspose3D" if name.endswith("3D") else "Deconvolution", attrs, x, w, b), want)
    if group == channels == outputs:
        close(apply("DeconvolutionDepthwise", attrs, x, w, b), want)


def test_transposed_groups_bias_and_output_padding() -> None:
    """alibaba/MNN#626, apache/tvm#18600."""
    x, w = np.arange(1, 5, dtype=np.float32).reshape(1, 2, 1, 2), np.arange(1, 9, dtype=np.float32).reshape(2, 2, 1, 2)
    b = np.array([.1, .2, .3, .4], np.float32)
    got = apply("Deconvolution", {"group": 2, "strideX": 2, "outPads": (0, 1), "kernelX": 2}, x, w, b)
    want = [[1.1, 2.1, 2.1, 4.1, .1], [3.2, 4.2, 6.2, 8.2, .2], [15.3, 18.3, 20.3, 24.3, .3], [21.4, 24.4, 28.4, 32.4, .4]]
    np.testing.assert_allclose(got[0, :, 0], want, rtol=1e-6)


@pytest.mark.parametrize(("kernel", "stride"), [(3, 2), (4, 2), (2, 3), (5, 1)])
def test_transposed_same_is_the_gradient_of_same(kernel: int, stride: int) -> None:
    """<conv(y), x> == <y, deconv(x)> for every y: SAME convolutions and SAME transposed convolutions are adjoint."""
    x, w = f(1, 4, 5, 6), f(4, 3, kernel, kernel)
    attrs = {"strideX": stride, "strideY": stride, "padMode": "SAME"}
    got = apply("Deconvolution", attrs, x, w)
    assert got.shape == (1, 3, 5 * stride, 6 * stride)
    y = f(*got.shape)
    np.testing.assert_allclose(np.vdot(apply("Convolution", attrs, y, w), x), np.vdot(y, got), rtol=1e-4)


def test_transposed_output_size() -> None:
    x, w = f(1, 4, 5, 6), f(4, 3, 3, 3)
    attrs = {"strideX": 2, "strideY": 2, "padMode": "SAME", "hasOutputShape": True}
    got = apply("Deconvolution", attrs, x, w, None, np.array([1, 9, 12, 3], np.int32))
    y = f(*got.shape)
    assert got.shape == (1, 3, 9, 12)
    np.testing.assert_allclose(np.vdot(apply("Convolution", attrs, y, w), x), np.vdot(y, got), rtol=1e-4)
    np.testing.assert_array_equal(got, apply("Deconvolution", attrs, x, w, None, np.array([9, 12], np.int32)))


def test_dilation_2d() -> None:
    x, w = f(1, 2, 5, 6), f(2, 3, 2)
    got = apply("Dilation2D", {"kernelY": 3, "kernelX": 2, "padMode": "VALID", "dilateY": 2, "strideX": 2}, x, w)
    want = np.empty((1, 2, 1, 3), np.float32)
    for c, i, j in np.ndindex(2, 1, 3):
        want[0, c, i, j] = max(x[0, c, i + 2 * a, 2 * j + b] + w[c, a, b] for a in range(3) for b in range(2))
    np.testing.assert_array_equal(got, want)
    same = apply("Dilation2D", {"kernelY": 3, "kernelX": 3, "padMode": "SAME", "weight": np.zeros(18, np.float32)}, x - 100)
    np.testing.assert_array_equal(same, run("MaxPool", [x - 100], kernel_shape=[3, 3], pads=[1, 1, 1, 1]))


@pytest.mark.parametrize(("attrs", "shapes", "said"), [
    ({}, [(1, 3, 4, 4), (2, 4, 3, 3)], "3 channels"),
    ({}, [(1, 3, 4), (2, 3, 3)], "rank 4"),
    ({}, [(1, 3, 4, 4), (2, 3, 5, 5)], "does not fit"),
    ({"group": 2}, [(1, 4, 4, 4), (3, 2, 1, 1)], "multiple"),
    ({"group": 0}, [(1, 4, 4, 4), (3, 2, 1, 1)], "0 groups"),
    ({"strideX": 0}, [(1, 3, 4, 4), (2, 3, 3, 3)], "strides"),
    ({"pads": (1, 1, 1)}, [(1, 3, 4, 4), (2, 3, 3, 3)], "pads"),
    ({"kernelX": 2}, [(1, 3, 4, 4), (2, 3, 3, 3)], "kernel"),
    ({}, [(1, 3, 4, 4), (2, 3, 3, 3), (3,)], "bias"),
])
def test_wrong_shapes(attrs: dict, shapes: list, said: str) -> None:
    with pytest.raises(ShapeError, match=said):
        apply("Convolution", attrs, *(f(*s) for s in shapes))


def test_geometry_is_public() -> None:
    w = conv_geometry.Window((3, 3), (2, 2), (1, 1), (0,) * 4, "SAME")
    assert conv_geometry.same_pads(w, (8, 9)) == ((0, 1), (1, 1))


@pytest.mark.parametrize(("op_type", "group"), [("ConvInt8", 1), ("DepthwiseConvInt8", 4)])
@pytest.mark.parametrize("zeros", [(0, 0), (3, -5)])
def test_int8(op_type: str, group: int, zeros: tuple[int, int]) -> None:
    """Zero points are folded into the bias; padding is the zero point."""
    x = RNG.integers(-128, 128, (2, 4, 6, 7)).astype(np.int8)
    w = RNG.integers(-127, 128, (4, 4 // group, 3, 3)).astype(np.int8)
    scales, out_scale = (0.002 + 0.01 * RNG.random(4)).astype(np.float32), np.float32(3.7)
    b = RNG.integers(-500, 500, 4).astype(np.int32)
    zero_in, zero_out = (np.array(z, np.int8) for z in zeros)
    inputs = [x, np.array(0.5, np.float32), zero_in, w, scales, np.zeros(4, np.int8), np.array(out_scale), zero_out, b]
    want = run("QLinearConv", inputs, pads=[1, 1, 1, 1], strides=[2, 1], group=group)
    scale = 0.5 * scales.astype(np.float64) / out_scale
    folded = b - zeros[0] * w.astype(np.int64).sum((1, 2, 3))
    table = {"weight": w.reshape(-1), "bias": folded.astype(np.int32), "scale": scale.astype(np.float32), "zeroPoint": zeros[0]}
    attrs = {"kernelX": 3, "kernelY": 3, "pads": (1, 1, 1, 1), "strideY": 2, "outputCount": 4}
    exact = apply(op_type, {**attrs, "symmetricQuan": {**table, "outputDataType": "DT_FLOAT"}}, x)
    np.testing.assert_array_equal(np.clip(np.rint(exact) + zeros[1], -128, 127), want)
    shifted = {**table, "bias": np.rint(folded + zeros[1] / scale).astype(np.int32), "outputZeroPoint": zeros[1]}
    got = apply(op_type, {**attrs, "symmetricQuan": shifted}, x)
    assert np.abs(got.astype(int) - want).max() <= 1
    assert got.dtype == np.int8
    limited = apply(op_type, {**attrs, "relu": True, "symmetricQuan": shifted}, x)
    np.testing.assert_array_equal(limited, np.maximum(got, zeros[1]))


def test_int8_weights_stored_as_a_blob() -> None:
    """Files of MNN hold them as a table of 256 values and an index for each weight."""
    w = RNG.integers(-128, 128, 2 * 3 * 9).astype(np.int8)
    blob = np.concatenate([np.array([2, 2, 0, 27, 0, 0], np.uint8), np.arange(-128, 128).astype(np.int8).view(np.uint8),
                           (w.astype(int) + 128).astype(np.uint8)]).view(np.int8)
    quan = {"type": 1, "buffer": blob, "alpha": np.array([1], np.float32), "quantScale": 1.0, "aMaxOrBits": 8}
    attrs = {"kernelX": 3, "kernelY": 3, "outputCount": 2, "quanParameter": quan,
             "symmetricQuan": {"bias": np.array([1, 2], np.int32), "scale": np.array([.01, .02], np.float32), "zeroPoint": 1}}
    graph = Graph([Op("ConvInt8", ["x"], ["y"], attrs, "conv")], [TensorInfo("x", np.dtype(np.int8), (1, 3, 5, 5))],
                  [TensorInfo("y", None, None)])
    read = next(op for op in read_mnn(write_mnn(graph)).ops if op.type == "ConvInt8")
    np.testing.assert_array_equal(read["symmetricQuan"]["weight"], w)
    assert "quanParameter" not in read.attrs
