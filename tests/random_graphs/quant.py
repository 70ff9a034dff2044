"""Quantisation, and signal processing."""

from __future__ import annotations

import numpy as np

from .draft import Draft, Tensor
from .families import family


def _parameters(g: Draft, op: str, x: Tensor, kind: np.dtype, dtype: np.dtype) -> tuple[list[Tensor | None], dict[str, object]]:
    """Scale and zero point, of a tensor, of an axis or of blocks."""
    shape: tuple[int, ...] = ()
    attrs: dict[str, object] = {}
    form = g.integer(0, (2 if g.opset >= 21 else 1) if g.opset >= 13 and x.rank and x.value.size else 0)
    if form == 1:
        axis = g.axis(x.rank)
        attrs["axis"], shape = axis, (x.shape[axis],)
    elif form == 2:
        axis, block = g.axis(x.rank), g.integer(1, 3)
        attrs |= {"axis": axis, "block_size": block}
        dims = list(x.shape)
        dims[axis] = -(-dims[axis] // block)
        shape = tuple(dims)
    scale = g.given(g.values(dtype, shape, 0.02, 0.3), True if g.integer(0, 3) else None)
    zero = g.given(g.values(kind, shape, -5, 20), True if g.integer(0, 3) else None) if g.flag() else None
    return [scale, zero], attrs


@family("QuantizeLinear")
def quantize(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor([d for d in g.types(op) if d.kind == "f"], (0, 4), low=-20, high=20)
    kinds = [np.uint8, np.int8] + ([np.uint16, np.int16] if g.opset >= 21 else [])
    (scale, zero), attrs = _parameters(g, op, x, np.dtype(g.pick(kinds)), x.dtype)
    return g.node(op, [x, scale, zero], fragile=True, **attrs)


@family("DequantizeLinear")
def dequantize(g: Draft, op: str) -> list[Tensor]:
    kinds = [np.uint8, np.int8, np.int32] + ([np.uint16, np.int16] if g.opset >= 21 else [])
    x = g.tensor(kinds, (0, 4), low=-100, high=100)
    dtype = g.dtype([np.float32, np.float16]) if g.opset >= 19 else np.dtype(np.float32)
    (scale, zero), attrs = _parameters(g, op, x, x.dtype, dtype)
    if zero and x.dtype == np.int32:
        zero = None
    return g.node(op, [x, scale, zero], **attrs)


@family("DynamicQuantizeLinear")
def dynamic_quantize(g: Draft, op: str) -> list[Tensor]:
    return g.node(op, [g.tensor([np.float32], (1, 4))], 3, fragile=True)


@family("HannWindow", "HammingWindow", "BlackmanWindow")
def window(g: Draft, op: str) -> list[Tensor]:
    return g.node(op, [g.given(np.array(g.integer(2, 9), g.pick([np.int64, np.int32])))], periodic=g.pick([None, 0, 1]),
                  output_datatype=g.pick([None, 1, 11]))


@family("DFT")
def dft(g: Draft, op: str) -> list[Tensor]:
    complex_ = g.flag()
    inverse = complex_ and g.flag()
    onesided = not inverse and not complex_ and g.flag()
    x = g.tensor([np.float32, np.float64], shape=(*g.dims(g.integer(1, 2)), g.integer(2, 6), 2 if complex_ else 1))
    length = g.given(np.array(g.integer(2, 6), np.int64), True) if g.flag() else None
    axis = g.integer(1, x.rank - 2)
    attrs = {"inverse": int(inverse) or None, "onesided": int(onesided) or None}
    if g.opset < 20:
        return g.node(op, [x, length], axis=axis, **attrs)
    return g.node(op, [x, length, g.const(np.array(axis, np.int64)) if g.flag() else None], **attrs)


@family("STFT")
def stft(g: Draft, op: str) -> list[Tensor]:
    size = g.integer(2, 5)
    x = g.tensor([np.float32, np.float64], shape=(g.integer(1, 2), g.integer(6, 12), 1))
    step = g.const(np.array(g.integer(1, 3), np.int64))
    window = g.tensor([x.dtype], shape=(size,)) if g.flag() else None
    length = g.const(np.array(size, np.int64)) if window is None or g.flag() else None
    return g.node(op, [x, step, window, length], onesided=g.pick([None, 0, 1]))


@family("MelWeightMatrix")
def mel(g: Draft, op: str) -> list[Tensor]:
    numbers = [np.array(v, np.int64) for v in (g.integer(2, 6), g.pick([16, 32, 64]), 8000)]
    edges = [np.array(v, np.float32) for v in (g.pick([0.0, 100.0]), 3900.0)]
    return g.node(op, [g.given(v, True) for v in (*numbers, *edges)])


@family("TfIdfVectorizer")
def tf_idf(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor([np.int64, np.int32], (1, 2), low=0, high=4)
    return g.node(op, [x], mode=g.pick(["TF", "IDF", "TFIDF"]), min_gram_length=1, max_gram_length=2,
                  max_skip_count=g.integer(0, 2), ngram_counts=[0, 3], ngram_indexes=[0, 1, 2, 3, 4, 5],
                  pool_int64s=[0, 2, 3, 1, 2, 2, 3, 3, 1], weights=[1.0, 0.5, 2.0, 1.5, 1.0, 0.25] if g.flag() else None)
