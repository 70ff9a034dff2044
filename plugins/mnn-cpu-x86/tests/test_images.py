"""Image kernels on odd sizes: channels that fill no block, windows larger than the image, strides that skip it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_rows import ISAS, check

pytestmark = pytest.mark.parametrize("isa", ISAS)


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _window(kernel: tuple[int, int], stride: tuple[int, int], dilate: tuple[int, int] = (1, 1), **more: Any) -> dict[str, Any]:
    """Attributes of a convolution or pooling, (y, x) each."""
    return {"kernelY": kernel[0], "kernelX": kernel[1], "strideY": stride[0], "strideX": stride[1],
            "dilateY": dilate[0], "dilateX": dilate[1], **more}


# channels, outputs, size, kernel, stride, dilation, pads (top, left, bottom, right)
CONVOLUTIONS = [
    (3, 17, (9, 11), (3, 3), (2, 2), (1, 1), (0, 0, 1, 1)),
    (1, 5, (5, 7), (5, 5), (1, 1), (1, 1), (2, 2, 2, 2)),
    (4, 40, (1, 30), (1, 7), (1, 3), (1, 1), (0, 3, 0, 3)),
    (5, 33, (1, 1), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    (17, 1, (7, 5), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    (16, 16, (15, 1), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    (35, 49, (6, 29), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    (20, 24, (8, 8), (1, 1), (2, 2), (1, 1), (0, 0, 0, 0)),
    (20, 24, (8, 9), (1, 1), (1, 1), (1, 1), (1, 0, 2, 3)),
    (33, 15, (13, 10), (3, 3), (1, 1), (2, 3), (2, 3, 2, 3)),
    (18, 32, (3, 3), (5, 5), (1, 1), (1, 1), (2, 2, 2, 2)),
    (16, 8, (4, 4), (3, 2), (7, 5), (1, 1), (1, 1, 1, 1)),
    (8, 16, (2, 33), (2, 9), (2, 4), (1, 1), (0, 0, 0, 0)),
]


@pytest.mark.parametrize(("channels", "outputs", "size", "kernel", "stride", "dilate", "pads"), CONVOLUTIONS)
def test_convolution(channels, outputs, size, kernel, stride, dilate, pads, isa):
    x, w, b = _random(2, channels, *size), _random(outputs, channels, *kernel), _random(outputs)
    attrs = _window(kernel, stride, dilate, pads=pads, relu=True, outputCount=outputs, inputCount=channels)
    ran = check(isa, "Convolution", attrs, [x, w, b], (1, 2), 5e-6)
    assert ("conv_first" in ran) == (channels <= 4)
    assert {"conv_blocked", "conv_plain"} <= set(ran)
    assert "conv_blocked" in check(isa, "Convolution", {**attrs, "relu": False, "relu6": True}, [x, w, None], (1, 2), 5e-6)


@pytest.mark.parametrize(("channels", "outputs", "group"), [(6, 9, 3), (32, 64, 2), (64, 32, 4), (16, 16, 16), (24, 12, 12),
                                                            (48, 96, 3), (40, 40, 5)])
def test_convolution_in_groups(channels, outputs, group, isa):
    x, w, b = _random(2, channels, 5, 13), _random(outputs, channels // group, 3, 3), _random(outputs)
    attrs = _window((3, 3), (1, 1), pads=(1, 1, 1, 1), group=group, outputCount=outputs, inputCount=channels)
    assert "conv_plain" in check(isa, "Convolution", attrs, [x, w, b], (1, 2), 5e-6)


def test_convolution_of_one_column(isa):
    x, w, b = _random(2, 19, 23), _random(21, 19, 3, 1), _random(21)
    attrs = _window((3, 1), (2, 1), pads=(1, 0, 1, 0), outputCount=21, inputCount=19)
    assert "conv_blocked" in check(isa, "Convolution", attrs, [x, w, b], (1, 2), 5e-6)


def test_convolution_keeps_nan_to_its_window(isa):
    x, w = _random(1, 16, 9, 9), _random(16, 16, 3, 3)
    x[0, 3, 4, 4], x[0, 5, 0, 0] = np.nan, np.inf
    attrs = _window((3, 3), (1, 1), pads=(1, 1, 1, 1), relu6=True, outputCount=16, inputCount=16)
    assert "conv_blocked" in check(isa, "Convolution", attrs, [x, w, None], (1,), 5e-6)


@pytest.mark.parametrize(("channels", "size", "kernel", "stride", "dilate", "pads"), [
    (17, (9, 30), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
    (3, (10, 11), (3, 3), (2, 2), (1, 1), (0, 0, 1, 1)),
    (33, (7, 7), (5, 5), (1, 1), (1, 1), (2, 2, 2, 2)),
    (16, (2, 2), (7, 7), (1, 1), (1, 1), (3, 3, 3, 3)),
    (8, (20, 19), (3, 3), (1, 1), (3, 2), (3, 2, 3, 2)),
    (20, (1, 40), (1, 5), (1, 3), (1, 1), (0, 4, 0, 4)),
    (5, (6, 6), (2, 2), (5, 7), (1, 1), (1, 1, 0, 0)),
    (12, (3, 1), (3, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
])
def test_depthwise_convolution(channels, size, kernel, stride, dilate, pads, isa):
    x, w, b = _random(2, channels, *size), _random(channels, 1, *kernel), _random(channels)
    attrs = _window(kernel, stride, dilate, pads=pads, relu6=True, group=channels, outputCount=channels, inputCount=channels)
    assert "depthwise" in check(isa, "ConvolutionDepthwise", attrs, [x, w, b], (1, 2))
    assert "depthwise" in check(isa, "ConvolutionDepthwise", {**attrs, "relu6": False}, [x, w, None], (1, 2))


@pytest.mark.parametrize(("channels", "outputs", "group", "kernel", "stride", "dilate", "pads"), [
    (5, 7, 1, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1)),
    (16, 17, 1, (4, 4), (2, 2), (1, 1), (1, 1, 1, 1)),
    (6, 4, 2, (2, 3), (3, 1), (1, 2), (0, 1, 0, 2)),
    (20, 3, 1, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0)),
    (1, 1, 1, (5, 1), (1, 1), (2, 1), (4, 0, 3, 0)),
])
def test_transposed_convolution(channels, outputs, group, kernel, stride, dilate, pads, isa):
    x, w, b = _random(2, channels, 5, 6), _random(channels, outputs // group, *kernel), _random(outputs)
    attrs = _window(kernel, stride, dilate, pads=pads, group=group, relu=True, outputCount=outputs, inputCount=channels)
    assert "deconv" in check(isa, "Deconvolution", attrs, [x, w, b], (1, 2), 5e-6)


@pytest.mark.parametrize("channels", [1, 9, 18])
def test_transposed_depthwise_convolution(channels, isa):
    x, w, b = _random(2, channels, 4, 7), _random(channels, 1, 3, 3), _random(channels)
    attrs = _window((3, 3), (2, 2), pads=(1, 1, 1, 1), group=channels, outputCount=channels, inputCount=channels)
    assert "deconv_depthwise" in check(isa, "DeconvolutionDepthwise", attrs, [x, w, b], (1, 2), 5e-6)


@pytest.mark.parametrize("kind", ["MAXPOOL", "AVEPOOL"])
@pytest.mark.parametrize(("channels", "size", "kernel", "stride", "more"), [
    (17, (9, 8), (3, 3), (2, 2), {"pads": (1, 1, 1, 1), "padType": "CAFFE"}),
    (5, (8, 8), (2, 3), (2, 1), {"padType": "VALID"}),
    (33, (7, 9), (3, 3), (2, 3), {"padType": "SAME"}),
    (4, (6, 7), (3, 3), (2, 2), {"pads": (0, 1, 1, 0), "ceilModel": True, "countType": "EXCLUDE_PADDING"}),
    (8, (6, 7), (3, 3), (2, 2), {"pads": (1, 0, 1, 2), "ceilModel": True, "countType": "INCLUDE_PADDING"}),
    (16, (5, 6), (1, 1), (3, 3), {"padType": "VALID"}),
    (3, (11, 1), (4, 1), (1, 1), {"padX": 0, "padY": 2, "padType": "CAFFE"}),
    (20, (6, 5), (0, 0), (1, 1), {"isGlobal": True}),
])
def test_pooling(kind, channels, size, kernel, stride, more, isa):
    attrs = {"kernelY": kernel[0], "kernelX": kernel[1], "strideY": stride[0], "strideX": stride[1], "type": kind, **more}
    x = _random(2, channels, *size)
    assert "pool" in check(isa, "Pooling", attrs, [x])
    x[0, 0, 2, 0], x[1, 1, 0, 0] = np.nan, -np.inf
    check(isa, "Pooling", attrs, [x])


@pytest.mark.parametrize("mode", ["Asymmetric", "AlignCorners", "HalfPixels", "PytorchHalfPixels", "TensorflowHalfPixels"])
@pytest.mark.parametrize(("size", "to"), [((5, 7), (10, 21)), ((9, 8), (4, 3)), ((1, 6), (3, 1)), ((4, 4), (4, 4)),
                                          ((3, 77), (9, 97))])
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_interp(size, to, kind, mode, isa):
    attrs = {"resizeType": kind, "ctm": mode, "outputHeight": to[0], "outputWidth": to[1]}
    assert check(isa, "Interp", attrs, [_random(2, 18, *size)], (), 1e-5) == ["interp"]


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("more", [{"alignCorners": True}, {"halfPixelCenters": True}, {},
                                  {"alignCorners": True, "halfPixelCenters": True}])
def test_interp_by_scales(kind, more, isa):
    x = _random(1, 5, 7, 13)
    scales = np.array([1, 1, 1.7, 0.61], np.float32)
    assert check(isa, "Interp", {"resizeType": kind, **more}, [x, scales], (1,), 1e-5) == ["interp"]
    assert check(isa, "Interp", {"resizeType": kind, **more}, [x, scales]) == []
    scaled = {"resizeType": kind, "heightScale": 1.7, "widthScale": 0.61, **more}
    assert check(isa, "Interp", scaled, [x], (), 1e-5) == ["interp"]
    assert check(isa, "Interp", {**scaled, "outputWidth": 9}, [x], (), 1e-5) == ["interp"]


@pytest.mark.parametrize("channels", [1, 15, 32])
def test_scale_and_prelu(channels, isa):
    x, a, b = _random(2, channels, 3, 5), _random(channels), _random(channels)
    assert check(isa, "Scale", {"channels": channels}, [x, a, b], (1, 2)) == ["scale"]
    assert check(isa, "Scale", {"channels": channels}, [x, a, None], (1, 2)) == ["scale"]
    assert check(isa, "PReLU", {"slopeCount": channels}, [x, a], (1,)) == ["prelu"]


@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "POW"])
@pytest.mark.parametrize("small", [(1, 19, 1, 1), (2, 19, 1, 1), (1, 1, 1, 1), (19, 1, 1), (2, 19, 4, 9), (2, 1, 1, 1), (4, 9)])
def test_binary_on_images(name, small, isa):
    x, y = np.abs(_random(2, 19, 4, 9)) + 0.1, _random(*small)
    for constant in ((), (0,), (1,)):
        for inputs in ([x, y], [y, x]) if name != "POW" else ([x, y],):
            ran = check(isa, "BinaryOp", {"opType": name, "activationType": 1}, inputs, constant, 1e-5)
            assert "binary_f32" in ran
            if small in ((1, 19, 1, 1), (2, 19, 1, 1)) and not constant:
                assert "binary_blocked" in ran
