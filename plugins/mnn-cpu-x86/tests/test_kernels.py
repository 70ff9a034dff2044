"""Kernels in small networks against the NumPy definitions: odd shapes, layouts, threads, lanes beyond the channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mnn_cpu_x86
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mnn_core as mnn

F32 = np.dtype(np.float32)
ISAS = mnn_cpu_x86.CpuX86.library().isas


def array(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def run(ops: Sequence[mnn.Op], inputs: dict[str, np.ndarray], constants: dict[str, np.ndarray], output: str,
        **settings_: Any) -> np.ndarray:
    graph = mnn.Graph(ops=list(ops), constants=constants, outputs=[mnn.TensorInfo(output, None, None)],
                      inputs=[mnn.TensorInfo(n, a.dtype, a.shape) for n, a in inputs.items()])
    return mnn.load(graph, **settings_).run(inputs)[output]


def compare(ops: Sequence[mnn.Op], inputs: dict[str, np.ndarray], constants: dict[str, np.ndarray], output: str = "y",
            tolerance: float = 2e-5, native: bool = True) -> None:
    """All instruction sets against NumPy; native: no op may fall back to it."""
    want = run(ops, inputs, constants, output, backend="numpy")
    scale = max(1.0, float(np.abs(want[np.isfinite(want)]).max(initial=0)))
    for isa in ISAS:
        got = run(ops, inputs, constants, output, backend="cpu-x86", strict=native, options={"isa": isa})
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * scale, err_msg=isa)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_convolutions(data: st.DataObject) -> None:
    pick = lambda *values: data.draw(st.sampled_from(values))  # noqa: E731
    kernel, stride, dilation = (pick(1, 2, 3, 5), pick(1, 3, 4)), (pick(1, 2, 3), pick(1, 2)), (pick(1, 2), pick(1, 2, 3))
    channels, outputs, n = pick(1, 3, 5, 16, 17, 33), pick(1, 2, 16, 31, 40), pick(1, 2)
    mode = pick("CAFFE", "SAME", "VALID")
    pads = tuple(pick(0, 1, 2) for _ in range(4)) if mode == "CAFFE" else ()
    size = [(k - 1) * d + 1 + pick(0, 1, 4, 15) for k, d in zip(kernel, dilation)]
    attrs = {"kernelY": kernel[0], "kernelX": kernel[1], "strideY": stride[0], "strideX": stride[1], "dilateY": dilation[0],
             "dilateX": dilation[1], "padMode": mode, "pads": pads, "relu": pick(False, True), "relu6": pick(False, True)}
    constants = {"w": array(1, outputs, channels, *kernel), "b": array(2, outputs)}
    compare([mnn.Op("Convolution", ["x", "w", "b"], ["y"], attrs)], {"x": array(0, n, channels, *size)}, constants)


@pytest.mark.parametrize(("channels", "outputs", "group"), [(32, 64, 2), (6, 9, 3), (64, 64, 4), (8, 8, 8), (48, 96, 3)])
def test_grouped_convolutions(channels: int, outputs: int, group: int) -> None:
    constants = {"w": array(1, outputs, channels // group, 3, 3), "b": array(2, outputs)}
    attrs = {"kernelY": 3, "kernelX": 3, "pads": (1, 1, 1, 1), "group": group}
    compare([mnn.Op("Convolution", ["x", "w", "b"], ["y"], attrs)], {"x": array(0, 2, channels, 9, 7)}, constants)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_depthwise_convolutions(data: st.DataObject) -> None:
    pick = lambda *values: data.draw(st.sampled_from(values))  # noqa: E731
    channels, kernel = pick(1, 5, 16, 19, 40), (pick(1, 3, 5), pick(1, 3, 4))
    attrs = {"kernelY": kernel[0], "kernelX": kernel[1], "strideY": pick(1, 2), "strideX": pick(1, 2, 3), "dilateY": pick(1, 2),
             "dilateX": pick(1, 2), "pads": tuple(pick(0, 1, 3) for _ in range(4)), "relu6": pick(False, True)}
    constants = {"w": array(1, channels, 1, *kernel), "b": array(2, channels)}
    x = array(0, pick(1, 2), channels, pick(9, 12), pick(9, 30))
    compare([mnn.Op("ConvolutionDepthwise", ["x", "w", "b"], ["y"], attrs)], {"x": x}, constants)


@pytest.mark.parametrize("kind", ["Deconvolution", "DeconvolutionDepthwise"])
@pytest.mark.parametrize(("kernel", "stride", "pads", "out"), [(2, 2, (0, 0, 0, 0), ()), (3, 2, (1, 1, 1, 1), (1, 1)),
                                                               (4, 2, (1, 1, 1, 1), ()), (3, 1, (0, 1, 2, 1), ())])
def test_transposed_convolutions(kind: str, kernel: int, stride: int, pads: tuple, out: tuple) -> None:
    depthwise = kind.endswith("Depthwise")
    constants = {"w": array(1, 6, 1 if depthwise else 5, kernel, kernel), "b": array(2, 6 if depthwise else 5)}
    attrs = {"kernelY": kernel, "kernelX": kernel, "strideY": stride, "strideX": stride, "pads": pads, "outPads": out}
    compare([mnn.Op(kind, ["x", "w", "b"], ["y"], attrs)], {"x": array(0, 2, 6, 5, 7)}, constants)


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("shape", [(2, 5, 1, 1), (1, 5, 1, 1), (5, 1, 1), (), (1,), (2, 5, 6, 7), (6, 7), (1, 1, 6, 7),
                                   (2, 1, 1, 1)])
@pytest.mark.parametrize("fixed", [False, True])
def test_broadcasting_against_images(shape: tuple, swap: bool, fixed: bool) -> None:
    operands = ["o", "c"] if swap else ["c", "o"]
    ops = [mnn.Op("Convolution", ["x", "w", ""], ["c"], {"kernelX": 1, "kernelY": 1}),
           mnn.Op("BinaryOp", operands, ["d"], {"opType": "SUB"}),
           mnn.Op("Convolution", ["d", "w2", ""], ["y"], {"kernelX": 3, "kernelY": 3})]
    constants = {"w": array(1, 5, 3, 1, 1), "w2": array(3, 4, 5, 3, 3)}
    inputs = {"x": array(0, 2, 3, 6, 7)}
    (constants if fixed else inputs)["o"] = array(2, *shape)
    compare(ops, inputs, constants)


def test_channels_with_an_operand_of_a_convolution() -> None:
    """Squeeze and excite: an image times one value for each channel, both channel-blocked."""
    ops = [mnn.Op("Convolution", ["x", "w", ""], ["c"], {"kernelX": 1, "kernelY": 1}),
           mnn.Op("Pooling", ["c"], ["p"], {"type": "AVEPOOL", "isGlobal": True}),
           mnn.Op("UnaryOp", ["p"], ["g"], {"opType": "SIGMOID"}), mnn.Op("BinaryOp", ["c", "g"], ["y"], {"opType": "MUL"})]
    compare(ops, {"x": array(0, 2, 3, 6, 7)}, {"w": array(1, 19, 3, 1, 1)})


def test_lanes_beyond_the_channels_do_not_leak() -> None:
    """5 channels leave lanes that hold log(0) and 0/0 in between; nothing of them may reach a result."""
    unary = [("LOG", "a", "b"), ("RECIPROCAL", "b", "d"), ("SQRT", "d", "e")]
    ops = [mnn.Op("Convolution", ["x", "w", "bias"], ["a"], {"kernelX": 3, "kernelY": 3, "pads": (1, 1, 1, 1)}),
           *(mnn.Op("UnaryOp", [i], [o], {"opType": kind}) for kind, i, o in unary),
           mnn.Op("Convolution", ["e", "w2", ""], ["y"], {"kernelX": 3, "kernelY": 3, "pads": (1, 1, 1, 1)})]
    constants = {"w": np.abs(array(1, 5, 3, 3, 3)), "bias": np.full(5, 3, np.float32), "w2": array(2, 7, 5, 3, 3)}
    want = run(ops, {"x": np.abs(array(0, 1, 3, 8, 8))}, constants, "y", backend="numpy")
    assert np.isfinite(want).all()
    compare(ops, {"x": np.abs(array(0, 1, 3, 8, 8))}, constants)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_products(data: st.DataObject) -> None:
    pick = lambda *values: data.draw(st.sampled_from(values))  # noqa: E731
    m, k, n = pick(0, 1, 5, 14, 30), pick(0, 1, 7, 64), pick(1, 16, 33, 100)
    ta, tb, fixed = pick(False, True), pick(False, True), pick(False, True)
    a, b = array(1, *((k, m) if ta else (m, k))), array(2, *((n, k) if tb else (k, n)))
    batches = pick(((), ()), ((3,), ()), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)))
    a, b = (np.broadcast_to(v, (*batch, *v.shape)).copy() for v, batch in zip((a, b), batches))
    names = ["a", "b", *(["c"] if pick(False, True) else [])]
    inputs, constants = {"a": a}, {"c": array(3, n)} if "c" in names else {}
    (constants if fixed else inputs)["b"] = b
    compare([mnn.Op("MatMul", names, ["y"], {"transposeA": ta, "transposeB": tb})], inputs, constants)


@pytest.mark.parametrize("kind", ["MAXPOOL", "AVEPOOL"])
@pytest.mark.parametrize("attrs", [
    {"kernelY": 3, "kernelX": 2, "strideY": 2, "strideX": 1, "pads": (1, 0, 0, 1), "ceilModel": False},
    {"kernelY": 3, "kernelX": 3, "strideY": 2, "strideX": 2, "pads": (1, 1, 1, 1), "ceilModel": True,
     "countType": "INCLUDE_PADDING"},
    {"kernelY": 2, "kernelX": 2, "strideY": 2, "strideX": 2, "padType": "SAME"}, {"isGlobal": True}])
def test_pooling(kind: str, attrs: dict) -> None:
    x = array(0, 2, 21, 9, 11)
    x[0, 0, 0, 0] = np.nan
    compare([mnn.Op("Pooling", ["x"], ["y"], {"type": kind, **attrs})], {"x": x}, {})


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_same_bits_on_any_number_of_threads(threads: int) -> None:
    ops = [mnn.Op("Convolution", ["x", "w", "b"], ["c"], {"kernelX": 3, "kernelY": 3, "pads": (1, 1, 1, 1), "relu": True}),
           mnn.Op("Reshape", ["c"], ["r"], {"dims": (1, 40, -1)}), mnn.Op("Softmax", ["r"], ["s"], {"axis": -1}),
           mnn.Op("MatMul", ["s", "m"], ["p"], {}), mnn.Op("Reduction", ["p"], ["y"], {"operation": "SUM", "dim": (1,)})]
    constants = {"w": array(1, 40, 17, 3, 3), "b": array(2, 40), "m": array(3, 33 * 31, 70)}
    one, many = (run(ops, {"x": array(0, 1, 17, 33, 31)}, constants, "y", threads=t) for t in (1, threads))
    np.testing.assert_array_equal(one, many)


#: Function -> (NumPy's in float64, range, largest error in units of the last place).
FUNCTIONS = {
    "EXP": (np.exp, (-87, 88.7), 3), "LOG": (np.log, (1e-37, 1e30), 3), "SQRT": (np.sqrt, (0, 1e30), 1),
    "TANH": (np.tanh, (-20, 20), 4), "SIGMOID": (lambda x: 1 / (1 + np.exp(-x)), (-80, 80), 4),
}


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_elementary_functions(name: str, isa: str) -> None:
    exact, (low, high), ulps = FUNCTIONS[name]
    x = np.concatenate([np.linspace(low, high, 200_001), np.linspace(max(low, -2), 2, 100_001)[1:]]).astype(np.float32)
    x = x[(x >= low) & (x <= high)]
    got = run([mnn.Op("UnaryOp", ["x"], ["y"], {"opType": name})], {"x": x}, {}, "y", options={"isa": isa})
    want = exact(x.astype(np.float64))
    error = np.abs(got - want) / np.maximum(np.spacing(np.abs(want).astype(np.float32)), np.finfo(np.float32).tiny)
    assert error.max() <= ulps, f"{error.max():.1f} ulp at {x[error.argmax()]}"


@pytest.mark.parametrize("isa", ISAS)
def test_special_values(isa: str) -> None:
    x = np.float32([np.nan, np.inf, -np.inf, 0, -0.0, 1e-40, -1, 3e38])
    for name, exact in {"EXP": np.exp, "LOG": np.log, "TANH": np.tanh, "RECIPROCAL": np.reciprocal, "SIGN": np.sign}.items():
        got = run([mnn.Op("UnaryOp", ["x"], ["y"], {"opType": name})], {"x": x}, {}, "y", options={"isa": isa})
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(got, exact(x), rtol=1e-6, atol=1e-37, err_msg=name)
