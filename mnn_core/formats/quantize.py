"""Weights to MNN's quantised blobs, by mnnconvert's formulas."""

from __future__ import annotations

import math

import numpy as np

from ..errors import GraphError
from .weights import QuantizedWeight, pack_bits

#: Elements that are quantised at once, so that little memory is needed beside the result.
_CHUNK = 1 << 21


def quantize(array: np.ndarray, bits: int, asymmetric: bool = True, block: int | None = None, name: str = "weight", *,
             scale_bits: int = 32, hqq: bool = False) -> QuantizedWeight:
    """Weights (output channels first) as a quantised blob.

    bits: 2 to 8. block: input channels that share a scale; used if it is a multiple of 16 and divides them, otherwise each
    output channel has one. scale_bits 16: scales are 16-bit floats; the form is asymmetric then, as mnnconvert's is.
    hqq: the zero points of the asymmetric form are moved to where half-quadratic quantisation has the smallest error.
    Raises GraphError for other numbers of bits.
    """
    if not 2 <= bits <= 8:
        raise GraphError(f"{name}: weights can be quantised to 2 to 8 bits, not {bits}")
    asymmetric = asymmetric or hqq or scale_bits == 16
    rows, per_row = array.shape[0], math.prod(array.shape[1:])
    channels = array.shape[1] if array.ndim > 1 else 1
    blocks = channels // block if block and block >= 16 and block % 16 == 0 and channels % block == 0 else 1
    flat = np.ascontiguousarray(array).reshape(rows * blocks, per_row // blocks)
    top = 2 ** (bits - 1) - 1
    codes = np.empty(flat.shape, np.uint8)
    alpha = np.empty((len(flat), 2 if asymmetric else 1), np.float32)
    step = max(1, _CHUNK // max(1, flat.shape[1]))
    for start in range(0, len(flat), step):
        part = slice(start, start + step)
        codes[part], alpha[part] = _groups(np.asarray(flat[part], np.float32), top, asymmetric, hqq)
    made = from_codes(codes, alpha, bits, tuple(array.shape), name)
    quan = dict(made.quan)
    if scale_bits == 16:
        limit = float(np.finfo(np.float16).max)
        quan["alphaFp16"] = np.clip(quan.pop("alpha"), -limit, limit).astype(np.float16).view(np.uint16)
        quan["scaleStorage"] = "FP16"
    return QuantizedWeight(tuple(array.shape), quan, name)


def from_codes(codes: np.ndarray, alpha: np.ndarray, bits: int, shape: tuple[int, ...],
               name: str = "weight") -> QuantizedWeight:
    """Weights of a shape that are quantised already.

    codes: uint8 (groups, elements of a group), 0 to 2**bits - 1. alpha: float32 (groups, 1), scales by which
    code - 2**(bits - 1) is multiplied, or (groups, 2): the value of code 0, and the scale.
    """
    dims, top = codes.shape, 2 ** (bits - 1) - 1
    asymmetric, wide = alpha.shape[1] == 2, max(dims) > 65535
    header = np.concatenate([
        np.array([len(dims)], np.uint8), np.array(dims, "<u4" if wide else "<u2").view(np.uint8),
        np.array([2**bits & 255], np.uint8), np.arange(-top - 1, top + 1).astype(np.int8).view(np.uint8)])
    buffer = np.concatenate([header, _packed(codes.reshape(-1), bits)]).view(np.int8)
    quan = {"buffer": buffer, "alpha": alpha.reshape(-1), "type": 1, "quantScale": 1.0, "aMaxOrBits": bits,
            "aMin": -top - 1 if asymmetric else 0, "readType": dims[0] if asymmetric else 0, "shapeInt32": wide}
    return QuantizedWeight(shape, quan, name)


def _packed(codes: np.ndarray, bits: int) -> np.ndarray:
    """pack_bits in parts that end at whole bytes."""
    if bits == 8:
        return codes
    return np.concatenate([pack_bits(codes[i : i + _CHUNK], bits) for i in range(0, codes.size, _CHUNK)] or [codes])


def _groups(flat: np.ndarray, top: int, asymmetric: bool, hqq: bool) -> tuple[np.ndarray, np.ndarray]:
    """Codes, counted from 0, and scales of some groups (rows)."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if asymmetric:
            low = flat.min(1, keepdims=True)
            scale = (flat.max(1, keepdims=True) - low) / np.float32(2 * top + 1)
            if hqq:
                low = _half_quadratic(flat, low, scale, 2 * top + 1)
            codes = _round((flat - low) / scale) - top - 1
            alpha = np.concatenate([low, scale], 1)
        else:
            scale = np.abs(flat).max(1, keepdims=True) / np.float32(top)
            codes, alpha = _round(flat / scale), scale
    kept = np.where(scale > 1e-6, codes, np.float32(-top - 1 if asymmetric else 0))
    return (np.clip(kept, -top - 1, top) + np.float32(top + 1)).astype(np.uint8), alpha


def _half_quadratic(flat: np.ndarray, low: np.ndarray, scale: np.ndarray, last: int) -> np.ndarray:
    """The value of code 0 of each group that makes the sum of |error|^0.7 small.

    Badri, Shaji: Half-Quadratic Quantization of Large Machine Learning Models (2023): the error is split off by a
    shrinkage that favours few large errors, and the zero point fitted to the rest, in turns. A group keeps the best of them.
    """
    power, beta = 0.7, 10.0
    best, current = low.copy(), low
    least = np.full(low.shape, np.inf, np.float32)
    for _ in range(20):
        codes = np.clip(_round((flat - current) / scale), 0, last)
        error = flat - (codes * scale + current)
        size = np.abs(error)
        total = (size**power).sum(1, keepdims=True)
        best, least = np.where(total < least, current, best), np.minimum(least, total)
        push = np.where(size > 0, size, 1) ** (power - 1) / beta
        shrunk = np.sign(error) * np.maximum(size - push, 0)
        current = (flat - shrunk - codes * scale).mean(1, keepdims=True)
        beta *= 1.01
    return np.where(np.isfinite(best), best, low).astype(np.float32)


def _round(x: np.ndarray) -> np.ndarray:
    """C's roundf: halves away from zero."""
    return np.trunc(x + np.copysign(np.float32(0.5), x))
