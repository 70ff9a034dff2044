"""Packed weights: the codecs against hand-made blobs, NumPy formulas, and the real mnnconvert."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import onnx.parser
import peers
import pytest
from onnx import numpy_helper

import mnn_core as mnn
from mnn_core.formats import HalfConstant, QuantizedWeight, half, quantize, read_mnn, write_mnn
from mnn_core.formats.weights import pack_bits, unpack_bits


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("bits", range(1, 9))
def test_bits_are_packed_most_significant_first(bits: int) -> None:
    codes = np.random.default_rng(bits).integers(0, 2**bits, 1001).astype(np.uint8)
    text = "".join(f"{c:0{bits}b}" for c in codes)
    text += "0" * (-len(text) % 8)
    expected = np.array([int(text[i : i + 8], 2) for i in range(0, len(text), 8)], np.uint8)
    np.testing.assert_array_equal(pack_bits(codes, bits), expected)
    np.testing.assert_array_equal(unpack_bits(expected, bits, codes.size), codes)


@pytest.mark.parametrize(("bits", "asymmetric", "block"), [*itertools.product(range(2, 9), (False, True), (None, 16))])
def test_quantised_weights_are_within_half_a_step(bits: int, asymmetric: bool, block: int | None) -> None:
    w = weights(6, 32, 3, 3)
    packed = quantize(w, bits, asymmetric, block)
    groups = w.reshape(6 * (2 if block else 1), -1)
    top = 2 ** (bits - 1) - 1
    step = (np.ptp(groups, 1) / (2 * top + 1)) if asymmetric else np.abs(groups).max(1) / top
    error = np.abs(packed.decode().reshape(groups.shape) - groups)
    assert (error <= step[:, None] * 0.501).all()
    assert packed.codes().min() >= -(2 ** (bits - 1))


def quan(**fields: object) -> dict:
    return {"quantScale": 1.0, **fields}


def blob(dims: tuple[int, ...], table: list[int], codes: list[int], bits: int) -> np.ndarray:
    head = [len(dims), *itertools.chain(*((d & 255, d >> 8) for d in dims)), len(table) & 255, *(t & 255 for t in table)]
    return np.array([*head, *pack_bits(np.array(codes, np.uint8), bits)], np.uint8).view(np.int8)


def test_any_table_is_sorted_before_use() -> None:
    packed = QuantizedWeight((2, 3), quan(type=1, buffer=blob((2, 3), [7, -5, 0, 3, -1], [0, 1, 2, 3, 4, 0], 3),
                                          alpha=np.float32([2, 10])))
    packed.check()
    assert packed.decode().tolist() == [[-10, -2, 0], [30, 70, -50]]


@pytest.mark.parametrize(("extra", "expected"), [
    ({"aMin": -2, "readType": 2}, [[1 + 0 * 2, 1 + 3 * 2], [10 + 1 * 0.5, 10 + 2 * 0.5]]),  # a0 is the value of code aMin
    ({"aMin": 1, "readType": 2}, [[1 - 2 * 2, 1 + 1 * 2], [10 - 1 * 0.5, 10 + 0 * 0.5]]),  # a0 is the value of code 0
    ({"aMin": -2, "readType": 2, "quantScale": 2.0}, [[2, 14], [21, 22]]),
    ({"aMin": -2, "readType": 2, "quantScale": 2.0, "has_scaleInt": True}, [[1, 7], [10.5, 11]]),
])
def test_asymmetric_forms(extra: dict, expected: list) -> None:
    fields = quan(type=1, buffer=blob((2, 2), [-2, -1, 0, 1], [0, 3, 1, 2], 2), alpha=np.float32([1, 2, 10, 0.5]))
    assert QuantizedWeight((2, 2), {**fields, **extra}).decode().tolist() == expected


def test_half_precision_scales() -> None:
    fields = quan(type=1, buffer=blob((2, 2), [-2, -1, 0, 1], [0, 3, 1, 2], 2), scaleStorage="FP16",
                  alphaFp16=np.float16([0.5, 2]).view(np.uint16))
    assert QuantizedWeight((2, 2), fields).decode().tolist() == [[-1, 0.5], [-2, 0]]


def test_raw_and_half_and_sparse_types() -> None:
    raw = quan(type=4, buffer=np.int8([-128, 0, 127, 1]), alpha=np.float32([1, 2]), aMin=1)
    assert QuantizedWeight((2, 2), raw).decode().tolist() == [[-128, 0], [254, 2]]
    old = {"type": 4, "buffer": np.int8([-128, -127, -126, -128]), "alpha": np.float32([5, 2, 7, 3]), "quantScale": 0.0}
    assert QuantizedWeight((2, 2), old).decode().tolist() == [[5, 7], [13, 7]]
    floats = {"type": 3, "buffer": np.float16([1.5, -2, 65504, 0]).view(np.int8)}
    assert QuantizedWeight((4,), floats).decode().tolist() == [1.5, -2, 65504, 0]
    sparse = {"type": 0, "index": np.uint32([1, 3]), "alpha": np.float32([5, -6]), "weightSize": 4}
    assert QuantizedWeight((2, 2), sparse).decode().tolist() == [[0, 5], [0, -6]]


def test_sparse_codes_with_steps() -> None:
    # Elements 1 and 4 of 6; steps of 3 bits, codes of 1 bit from the table [-3, 2]; the rest is the zero code.
    data = [2, 2, 0, 3, 0, 2, 0, 0, 0, 3, *pack_bits(np.uint8([1, 3]), 3), 2, 2, 253, *pack_bits(np.uint8([0, 1]), 1)]
    fields = quan(type=2, buffer=np.array(data, np.uint8).view(np.int8), alpha=np.float32([10, 100]))
    packed = QuantizedWeight((2, 3), fields)
    packed.check()
    assert packed.decode().tolist() == [[0, -30, 0], [0, 200, 0]]


@pytest.mark.parametrize(("fields", "text"), [
    ({"type": 1, "buffer": np.int8([2, 2, 0])}, "end after"),
    ({"type": 1, "buffer": blob((2, 2), [-1, 0], [0, 1, 1, 0], 1)[:-1]}, "do not fit"),
    ({"type": 9, "buffer": np.int8([0])}, "unknown type 9"),
    ({"type": 4, "buffer": np.int8([0] * 5)}, "5 quantised weights"),
    ({"type": 4, "buffer": np.int8([0] * 4), "alpha": np.ones(3, np.float32), "quantScale": 1.0}, "3 scales"),
    ({"type": 0, "index": np.uint32([9]), "alpha": np.float32([1]), "weightSize": 4}, "up to 9 of 4"),
])
def test_damaged_blobs_are_refused(fields: dict, text: str) -> None:
    with pytest.raises(mnn.ModelFormatError, match=text):
        QuantizedWeight((2, 2), fields).check()


def test_half_floats() -> None:
    w = np.float32([[1.0, -0.1], [1e9, 6e-8]])
    packed = half(w)
    assert isinstance(packed, HalfConstant)
    np.testing.assert_array_equal(packed.decode(), np.clip(w, -65504, 65504).astype(np.float16).astype(np.float32))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("weights")


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    """One convolution of 8 x 32 x 3 x 3."""
    proto = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        m (float[1, 32, 6, 6] x, float[8, 32, 3, 3] w) => (float[1, 8, 4, 4] y) { y = Conv(x, w) }""")
    proto.graph.initializer.append(numpy_helper.from_array(weights(8, 32, 3, 3), "w"))
    del proto.graph.input[1]
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    return folder / "m.onnx"


@pytest.mark.parametrize(("bits", "asymmetric", "block"), [(b, a, k) for b in range(2, 9) for a in (0, 1) for k in (0, 32)])
def test_blobs_are_those_of_mnnconvert(bits: int, asymmetric: int, block: int, model: Path, folder: Path) -> None:
    target = folder / f"m{bits}{asymmetric}{block}.mnn"
    options = ["--weightQuantBits", str(bits), f"--weightQuantAsymmetric={asymmetric}"]
    peers.convert(model, {target: [*options, *(["--weightQuantBlock", str(block)] if block else [])]})
    (theirs,) = [c for c in read_mnn(target).constants.values() if isinstance(c, QuantizedWeight)]
    ours = quantize(weights(8, 32, 3, 3), bits, bool(asymmetric), block or None)
    np.testing.assert_array_equal(np.asarray(theirs.quan["buffer"]), ours.quan["buffer"])
    np.testing.assert_array_equal(np.asarray(theirs.quan["alpha"]), ours.quan["alpha"])
    np.testing.assert_array_equal(theirs.decode(), ours.decode())


@pytest.mark.parametrize("settings", [
    {"weight_quant_bits": 8}, {"weight_quant_bits": 4, "weight_quant_asymmetric": True, "weight_quant_block": 32},
    {"fp16": True}, {"weight_quant_bits": 3}, {"save_external_data": True},
    {"weight_quant_bits": 4, "save_external_data": True}])
def test_packed_files_of_ours_run_in_real_mnn(settings: dict, model: Path, folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "ours.mnn"
    mnn.convert(model, target, **settings)
    feed = {"x": weights(1, 32, 6, 6, seed=1)}
    ours = mnn.load(target, backend="numpy").run(feed)["y"]
    ((theirs,),) = peers.run(target, [feed], ["y"], tmp_path)
    np.testing.assert_allclose(theirs, ours, atol=2e-3 * np.abs(ours).max())
    again = read_mnn(write_mnn(read_mnn(target)))
    np.testing.assert_array_equal(mnn.load(again, backend="numpy").run(feed)["y"], ours)
