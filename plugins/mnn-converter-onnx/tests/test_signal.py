"""Fourier transforms, deformable convolution and blocks of any rank, against onnxruntime and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_cases import assert_same, ours, theirs

I64 = TensorProto.INT64


def check(op: str, feeds: dict[str, np.ndarray], version: int, rank: int, **attrs: object) -> None:
    """One node on float inputs (and integers), ours against onnxruntime's."""
    kinds = {"f": TensorProto.FLOAT, "i": I64}
    inputs = [helper.make_tensor_value_info(n, kinds[a.dtype.kind], a.shape) for n, a in feeds.items() if n]
    node = helper.make_node(op, [n if a is not None else "" for n, a in feeds.items()], ["out"], **attrs)
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("out", TensorProto.FLOAT, [None] * rank)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=10)
    given = {n: a for n, a in feeds.items() if n}
    assert_same(ours(model, given), theirs(model, given), 1e-4)


def _signal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("version", [17, 20])
@pytest.mark.parametrize(("shape", "attrs"), [
    ((2, 16, 1), {}), ((2, 15, 1), {"onesided": 1}), ((2, 12, 2), {"inverse": 1}), ((3, 7, 2), {})])
def test_dft(shape: tuple[int, ...], attrs: dict, version: int) -> None:
    check("DFT", {"x": _signal(*shape)}, version, 3, **attrs)


@pytest.mark.parametrize("length", [5, 16, 20])
def test_dft_is_cut_and_filled(length: int) -> None:
    check("DFT", {"x": _signal(2, 16, 1), "n": np.array(length)}, 17, 3)


def test_real_signals_come_back_from_half_a_spectrum() -> None:
    x = _signal(3, 11)
    pairs = np.fft.rfft(x, axis=1)
    node = helper.make_node("DFT", ["x", "n"], ["y"], inverse=1, onesided=1)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 6, 2]),
                                            helper.make_tensor_value_info("n", I64, [])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, None, 1])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    got = ours(model, {"x": np.stack([pairs.real, pairs.imag], -1).astype(np.float32), "n": np.array(11)})
    np.testing.assert_allclose(got[0][..., 0], x, atol=1e-5)


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("hop", [1, 4, 7])
@pytest.mark.parametrize("last", [(), (1,)])
def test_stft(last: tuple[int, ...], onesided: int, hop: int) -> None:
    window = np.hamming(10).astype(np.float32)
    check("STFT", {"x": _signal(2, 41, *last), "hop": np.array(hop), "w": window, "n": np.array(10)}, 17, 4, onesided=onesided)


@pytest.mark.parametrize("pads", [None, [1, 0, 2, 1]])
def test_col2im(pads: list[int] | None) -> None:
    rows = 4 if pads is None else 7
    columns = 3 if pads is None else 4
    attrs = {} if pads is None else {"pads": pads}
    check("Col2Im", {"x": _signal(2, 12, rows * columns), "image": np.array([5, 5]), "block": np.array([2, 3])}, 18, 4, **attrs)


def test_mel_weights() -> None:
    feeds = {"bands": np.array(8), "points": np.array(64), "rate": np.array(8192)}
    check("MelWeightMatrix", {**feeds, "low": np.array(20, np.float32), "high": np.array(4000, np.float32)}, 17, 2)
