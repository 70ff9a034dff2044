"""onnxruntime's weights of few bits: products and rows."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from contrib_cases import check, check_values, contrib, contrib_model
from onnx import helper
from onnx_cases import assert_same, convert, random, theirs

import mnn_core as mnn
from mnn_core import ConversionError


def _weight(count: int, inner: int, block: int, bits: int, zero: str = "", seed: int = 0) -> dict[str, np.ndarray]:
    """Random packed weights; zero: "" none, "packed", or "float"."""
    rng, blocks = np.random.default_rng(seed), -(-inner // block)
    found = {"b": rng.integers(0, 256, (count, blocks, block * bits // 8), np.uint8),
             "s": rng.uniform(0.01, 0.1, (count, blocks)).astype(np.float32)}
    if zero == "packed":
        found["z"] = rng.integers(0, 256, (count, -(-blocks * bits // 8)), np.uint8)
    elif zero:
        found["z"] = rng.uniform(1, 2**bits - 2, (count, blocks)).astype(np.float32)
    return found


@pytest.mark.parametrize(("bits", "zero"), [(2, ""), (2, "packed"), (2, "float"), (4, ""), (4, "packed"), (4, "float"),
                                            (8, ""), (8, "packed")])
@pytest.mark.parametrize(("inner", "block"), [(64, 32), (96, 32), (40, 16), (32, 64)])
def test_matmul_nbits(bits, zero, inner, block) -> None:
    attrs = {"N": 24, "K": inner, "bits": bits, "block_size": block}
    feeds = [{"x": random(*shape, inner)} for shape in ((5,), (2, 3), (1, 1))]
    for bias in ("", "e"):
        constants = {**_weight(24, inner, block, bits, zero), **({"e": random(24, seed=3)} if bias else {})}
        inputs = " ".join(["x b s", "z" if zero else "_", "_", bias or "_"])
        inputs = inputs.removesuffix(" _ _ _").removesuffix(" _ _")
        for feed in ([f for f in feeds if f["x"].ndim == rank] for rank in (2, 3)):
            check(contrib("MatMulNBits", inputs, **attrs), feed, constants=constants, tolerance=1e-4)


def test_matmul_nbits_with_groups_in_any_order() -> None:
    """Packed zero points count as documented; onnxruntime's CPU kernel takes the middle code for them then."""
    order, x = np.random.default_rng(2).integers(0, 2, 64).astype(np.int32), random(3, 64)
    for zero in ("", "float"):
        constants = {**_weight(16, 64, 32, 4, zero), "g": order}
        nodes = contrib("MatMulNBits", f"x b s {'z' if zero else '_'} g", N=16, K=64, bits=4, block_size=32)
        check(nodes, {"x": x}, constants=constants, tolerance=1e-4)
    constants = {**_weight(16, 64, 32, 4, "packed"), "g": order}
    codes = np.stack([constants["b"] & 15, constants["b"] >> 4], -1).reshape(16, 64).astype(np.float32)
    zeros = np.concatenate([constants["z"] & 15, constants["z"] >> 4], 1).astype(np.float32)
    weight = (codes - zeros[:, order]) * constants["s"][:, order]
    nodes = contrib("MatMulNBits", "x b s z g", N=16, K=64, bits=4, block_size=32)
    check_values(nodes, {"x": x}, [x @ weight.T], constants=constants, tolerance=1e-4)


@pytest.mark.parametrize("zero", ["", "packed"])
def test_weights_stay_packed_in_files(zero, tmp_path) -> None:
    constants = _weight(256, 512, 64, 4, zero)
    proto = contrib_model(contrib("MatMulNBits", f"x b s {'z' if zero else ''}", N=256, K=512, bits=4, block_size=64),
                          {"x": random(3, 512)}, constants=constants)
    path = tmp_path / "m.mnn"
    mnn.convert(proto, str(path), converter="onnx")
    assert path.stat().st_size < 1.4 * 256 * 512 / 2
    feeds = {"x": random(3, 512)}
    assert_same(list(mnn.load(path, backend="cpu-x86").run(feeds).values()), theirs(proto, feeds), 1e-4)


def test_what_must_be_constant() -> None:
    feeds = {"x": random(3, 64), **_weight(16, 64, 32, 4)}
    with pytest.raises(ConversionError, match="B that is not constant"):
        check(contrib("MatMulNBits", "x b s", N=16, K=64, bits=4, block_size=32), feeds)
    with pytest.raises(ConversionError, match="codes of 3 bits"):
        convert(contrib_model(contrib("MatMulNBits", "x b s", N=16, K=64, bits=3, block_size=32), {"x": feeds["x"]},
                              constants=_weight(16, 64, 32, 4)))


@pytest.mark.parametrize("kind", [0, 1])
def test_matmul_bnb4(kind) -> None:
    rng = np.random.default_rng(0)
    constants = {"b": rng.integers(0, 256, 24 * 20 // 2, np.uint8), "s": rng.uniform(0.1, 1, 30).astype(np.float32)}
    nodes = contrib("MatMulBnb4", "x b s", N=24, K=20, block_size=16, quant_type=kind)
    check(nodes, [{"x": random(2, 3, 20)}, {"x": random(1, 1, 20)}], constants=constants)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zero", [False, True])
def test_gather_block_quantized(bits, zero) -> None:
    rng = np.random.default_rng(0)
    constants = {"d": rng.integers(0, 256, (10, 64 * bits // 8), np.uint8), "s": random(10, 4)}
    if zero:
        constants["z"] = rng.integers(0, 256, (10, 4 * bits // 8), np.uint8)
    nodes = contrib("GatherBlockQuantized", f"d i s {'z' if zero else ''}", block_size=16, bits=bits, quantize_axis=1)
    check(nodes, [{"i": np.array([[1, 9, -10], [0, -1, 4]])}, {"i": np.zeros((1, 1), np.int64)}], constants=constants)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("axes", [(1, 0), (0, 1), (2, 0), (0, 2)])
def test_gather_block_quantized_of_four_bit_types(signed, zero, axes) -> None:
    rng, element = np.random.default_rng(0), onnx.TensorProto.INT4 if signed else onnx.TensorProto.UINT4
    shape = [3, 4, 6]
    shape[axes[0]] = 40
    blocks = [-(-s // 16) if i == axes[0] else s for i, s in enumerate(shape)]
    feeds = {"i": np.array([[1, 2], [0, -1]])}
    names = f"d i s {'z' if zero else ''}"
    nodes = contrib("GatherBlockQuantized", names, block_size=16, quantize_axis=axes[0], gather_axis=axes[1])
    proto = contrib_model(nodes, feeds, constants={"s": random(*blocks)}, opset=21)
    low = -8 if signed else 0
    for name, dims in (("d", shape), ("z", blocks)):
        if name in names.split():
            values = rng.integers(low, low + 16, dims)
            proto.graph.initializer.append(helper.make_tensor(name, element, dims, values.reshape(-1)))
    for backend in ("numpy", "cpu-x86"):
        assert_same(list(mnn.load(convert(proto), backend=backend).run(feeds).values()), theirs(proto, feeds))
