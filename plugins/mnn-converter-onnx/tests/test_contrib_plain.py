"""Small operators of onnxruntime's domain."""

from __future__ import annotations

import math

import numpy as np
import pytest
from contrib_cases import check, check_values, contrib
from onnx_cases import random

from mnn_core import ConversionError

pytestmark = pytest.mark.filterwarnings("ignore::mnn_core.PlacementWarning")


@pytest.mark.parametrize(("nodes", "feeds", "constants"), [
    (contrib("Trilu", "x"), {"x": random(2, 4, 5)}, {}),
    (contrib("Trilu", "x k", upper=0), {"x": random(4, 5)}, {"k": np.array(-1)}),
    (contrib("GridSample", "x g", align_corners=1), {"x": random(1, 2, 4, 5), "g": random(1, 3, 3, 2, seed=1)}, {}),
    (contrib("GridSample", "x g", mode="bicubic", padding_mode="reflection"),
     {"x": random(1, 2, 4, 5), "g": random(1, 3, 3, 2, seed=1)}, {}),
    (contrib("Pad", "x p v", mode="constant"), {"x": random(2, 3)}, {"p": np.array([0, 1, 2, 1]), "v": np.array([1.5], "f")}),
    (contrib("Pad", "x p", mode="reflect"), {"x": random(4, 3)}, {"p": np.array([0, 1, 2, 1])}),
    (contrib("GatherND", "x i"), {"x": random(3, 4, 5), "i": np.array([[0, 1], [2, 3]])}, {}),
    (contrib("SampleOp", "x"), {"x": random(3)}, {}),
    (contrib("Range", "a b c"), {"a": np.float32(1), "b": np.array([4.1], "f"), "c": np.float32(0.5)}, {}),
    (contrib("Range", "a b"), {"a": np.array(2), "b": np.array([6])}, {}),
    (contrib("ExpandDims", "x a"), {"x": random(3, 4)}, {"a": np.array(-1, np.int32)}),
    (contrib("ExpandDims", "x a"), {"x": random(3, 4)}, {"a": np.array([1], np.int32)}),
    (contrib("Inverse", "x"), {"x": random(2, 4, 4) + 3 * np.eye(4, dtype=np.float32)}, {}),
    (contrib("CDist", "a b", metric="euclidean"), {"a": random(5, 7), "b": random(3, 7, seed=1)}, {}),
    (contrib("CDist", "a b"), {"a": random(5, 7), "b": random(3, 7, seed=1)}, {}),
    (contrib("NGramRepeatBlock", "i s", ngram_size=3),
     {"i": np.array([[0, 1, 2, 3, 1, 2], [0, 1, 0, 1, 0, 1]]), "s": random(2, 5)}, {}),
    (contrib("UnfoldTensor", "x", dim=1, size=3, step=2), {"x": random(2, 8, 3)}, {}),
    (contrib("UnfoldTensor", "x", size=2), {"x": random(2, 5)}, {}),
])
def test_against_onnxruntime(nodes, feeds, constants) -> None:
    check(nodes, feeds, constants=constants, tolerance=1e-4)


def test_unique() -> None:
    feeds = [{"x": np.array(v, "f")} for v in ([2, 1, 1, 3, 4, 3], [5])]
    check(contrib("Unique", "x", "y i c"), feeds, ("y", "i", "c"))


@pytest.mark.parametrize("positive", [0, 1])
@pytest.mark.parametrize("x", [np.array([[3, -4, 0]], np.int32), np.array([3, -7]), np.array([1.5, -2], "f"),
                               np.array([3, 4], np.uint32)])
def test_murmur_hash(positive, x) -> None:
    check(contrib("MurmurHash3", "x", positive=positive, seed=5), {"x": x})


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_crop_and_resize(mode) -> None:
    boxes = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.6, 0.9], [0.8, 0.9, 0.1, -0.4]], "f")
    check(contrib("CropAndResize", "x r i s", mode=mode, extrapolation_value=0.5),
          {"x": random(2, 3, 6, 7), "r": boxes, "i": np.array([0, 1, 1], np.int32)},
          constants={"s": np.array([4, 5], np.int32)})


def test_complex_products() -> None:
    a, b = random(2, 3, 4, 2), random(2, 3, 4, 2, seed=1)
    first, second = (v[..., 0] + 1j * v[..., 1] for v in (a, b))
    for name, want in (("ComplexMul", first * second), ("ComplexMulConj", first * second.conj())):
        check_values(contrib(name, "a b"), {"a": a, "b": b}, [np.stack([want.real, want.imag], -1).astype(np.float32)])


@pytest.mark.parametrize("shape", [(8,), (2, 6), (2, 3, 10)])
def test_real_transforms(shape) -> None:
    x = random(*shape)
    pairs = np.fft.rfft(x)
    pairs = np.stack([pairs.real, pairs.imag], -1).astype(np.float32)
    check_values(contrib("Rfft", "x", signal_ndim=1), {"x": x}, [pairs])
    check_values(contrib("Irfft", "x", signal_ndim=1), {"x": pairs}, [x])
    with pytest.raises(ConversionError, match="another form"):
        check_values(contrib("Rfft", "x", signal_ndim=2), {"x": x}, [pairs])


def test_torch_embedding() -> None:
    table, places = random(7, 4), np.array([[1, 6], [0, 3]])
    check_values(contrib("TorchEmbedding", "w i"), {"w": table, "i": places}, [table[places]])


def _bucket(distance: int, both: bool, buckets: int, furthest: int) -> int:
    """Of key position - query position, after the paper's released code."""
    found, n = 0, -distance
    if both:
        buckets //= 2
        found, n = (buckets if n < 0 else 0), abs(n)
    n = max(n, 0)
    exact = buckets // 2
    if n < exact:
        return found + n
    return found + min(buckets - 1, exact + int(math.log(n / exact) / math.log(furthest / exact) * (buckets - exact)))


@pytest.mark.parametrize("both", [0, 1])
@pytest.mark.parametrize(("queries", "keys"), [(30, 30), (1, 17)])
def test_relative_position_bias(both, queries, keys) -> None:
    heads, table = 3, random(3, 16)
    want = np.array([[[table[h, _bucket(k - q, bool(both), 16, 20)] for k in range(keys)] for q in range(queries)]
                     for h in range(heads)])
    check_values(contrib("RelativePositionBias", "t q k", is_bidirectional=both, max_distance=20),
                 {"q": np.array([queries]), "k": np.array([keys])}, [want[None]], constants={"t": table.reshape(16, heads)})


def test_gated_relative_position_bias() -> None:
    n, d = 2, 4
    x, bias, relative = random(2, 5, n * d), random(n * d, seed=1), random(1, n, 5, 5, seed=2)
    weight, shift, factor = random(d, 6, seed=3), random(6, seed=4), random(1, n, 1, 1, seed=5)
    heads = (x + bias).reshape(2, 5, n, d).transpose(0, 2, 1, 3)
    gates = 1 / (1 + np.exp(-(heads @ weight + shift).reshape(2, n, 5, 2, 3).sum(-1)))
    want = relative * (gates[..., :1] * (gates[..., 1:] * factor - 1) + 2)
    check_values(contrib("GatedRelativePositionBias", "q b r w s e", num_heads=n),
                 {"q": x, "r": relative}, [want.astype(np.float32)],
                 constants={"b": bias, "w": weight, "s": shift, "e": factor})


def test_what_is_refused() -> None:
    with pytest.raises(ConversionError, match="metric 'cosine'"):
        check_values(contrib("CDist", "a b", metric="cosine"), {"a": random(2, 3), "b": random(2, 3)}, [])
    with pytest.raises(ConversionError, match="hashes of float64"):
        check_values(contrib("MurmurHash3", "x"), {"x": np.array([1.0])}, [])
