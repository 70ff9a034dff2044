"""Packed weights: MNN's quantised blobs (table IDSTQuan) and 16-bit floats, decoded on demand, and their encoders.

A quantised blob splits the weights, in order, into groups of equal length: one for each output channel, or several (block
quantisation). Each group has a scale, and in the asymmetric form the float value of one code. Codes are stored with 2 to 8
bits, most significant bit first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import ModelFormatError
from .external import numbers

#: Elements that are converted at once.
_CHUNK = 1 << 21


def unpack_bits(data: np.ndarray, bits: int, count: int) -> np.ndarray:
    """`count` unsigned numbers of `bits` bits each from bytes, most significant bit first; uint8."""
    data = np.ascontiguousarray(data).view(np.uint8)
    if bits == 8:
        return data[:count]
    if bits == 4:
        return np.stack([data >> 4, data & 15], 1).reshape(-1)[:count]
    spread = np.unpackbits(data, count=count * bits).reshape(count, bits)
    return np.packbits(spread, axis=1).reshape(-1) >> (8 - bits)


def pack_bits(codes: np.ndarray, bits: int) -> np.ndarray:
    """The inverse of unpack_bits; the unused bits of the last byte are 0."""
    codes = np.ascontiguousarray(codes, np.uint8)
    if bits == 8:
        return codes
    return np.packbits(np.unpackbits(codes[:, None], axis=1)[:, 8 - bits:].reshape(-1))


@dataclass(frozen=True)
class HalfConstant:
    """float32 values stored as 16-bit floats ("f2"), or bfloat16 ("bf16"); raw: uint16 bit patterns."""

    shape: tuple[int, ...]
    raw: np.ndarray
    kind: str = "f2"
    dtype: np.dtype = field(default=np.dtype(np.float32), init=False)

    def decode(self) -> np.ndarray:
        if self.kind == "bf16":
            return (self.raw.astype(np.uint32) << 16).view(np.float32).reshape(self.shape)
        return self.raw.view(np.float16).astype(np.float32).reshape(self.shape)


def half(array: np.ndarray) -> HalfConstant:
    """An array as 16-bit floats; values beyond their range become the largest of them, as mnnconvert does."""
    limit = float(np.finfo(np.float16).max)
    flat = np.ascontiguousarray(array).reshape(-1)
    stored = np.empty(flat.size, np.float16)
    for start in range(0, flat.size, _CHUNK):  # parts, so that little memory is needed beside the result
        part = slice(start, start + _CHUNK)
        stored[part] = np.clip(flat[part].astype(np.float32, copy=False), -limit, limit)
    return HalfConstant(tuple(array.shape), stored.view(np.uint16))


class _Stream:
    """Reads a blob's header; refuses to read past its end."""

    def __init__(self, data: np.ndarray, name: str) -> None:
        self.data, self.at, self.name = np.ascontiguousarray(data).view(np.uint8), 0, name

    def bytes(self, count: int) -> np.ndarray:
        if count < 0 or self.at + count > self.data.size:
            raise ModelFormatError(f"{self.name}: quantised weights end after {self.data.size} bytes; "
                                   f"{count} more are needed at byte {self.at}")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, dtype: str = "<u1") -> int:
        return int(self.bytes(np.dtype(dtype).itemsize).view(dtype)[0])

    def table(self) -> np.ndarray:
        """The sorted table of code values."""
        return np.sort(self.bytes(self.number() or 256).view(np.int8))

    def dims(self, wide: bool) -> int:
        """Product of the dimensions, and how many the first is (for the sparse form) kept in `rows`."""
        dims = [self.number("<u4" if wide else "<u2") for _ in range(self.number())]
        self.rows = dims[0] if dims else 1
        return math.prod(dims)


def _bits(count: int) -> int:
    return max(1, (count - 1).bit_length())


@dataclass(frozen=True)
class QuantizedWeight:
    """Weights in MNN's quantised form. quan: the fields of IDSTQuan as they stand in the file. name: for errors."""

    shape: tuple[int, ...]
    quan: Mapping[str, Any]
    name: str = "weight"
    dtype: np.dtype = field(default=np.dtype(np.float32), init=False)

    def check(self) -> None:
        """Raises ModelFormatError unless the blob has a code for every element, and scales that divide them."""
        count = math.prod(self.shape)
        kind = self.quan.get("type", 0)
        stored = stored_count(self.quan, self.name)
        if stored != count:
            raise ModelFormatError(f"{self.name}: {stored} quantised weights are stored; its shape {list(self.shape)} needs "
                                   f"{count}")
        if kind in (1, 2, 4):
            groups, odd = divmod(self.alpha.size, 2 if self.asymmetric else 1)
            if groups == 0 or odd or count % groups:
                raise ModelFormatError(f"{self.name}: {self.alpha.size} scales do not divide {count} weights evenly")

    @property
    def alpha(self) -> np.ndarray:
        """Scales, or pairs of (value of the reference code, scale); float32."""
        if self.quan.get("scaleStorage", "FP32") == "FP16":
            return np.asarray(self.quan.get("alphaFp16", ()), np.uint16).view(np.float16).astype(np.float32)
        return np.asarray(self.quan.get("alpha", ()), np.float32)

    @property
    def asymmetric(self) -> bool:
        return bool(self.quan.get("readType", 0)) or self._old

    @property
    def _old(self) -> bool:
        q = self.quan
        return q.get("type") == 4 and q.get("aMin", 0) == 0 and abs(q.get("quantScale", 0.0)) < 1e-6

    def codes(self) -> np.ndarray:
        """The integer of each element, int8, in the weight's shape (types 1, 2 and 4)."""
        return _codes(self).reshape(self.shape)

    def decode(self) -> np.ndarray:
        kind = self.quan.get("type", 0)
        if kind == 3:
            return numbers(self.quan["buffer"], np.float16, self.name).astype(np.float32).reshape(self.shape)
        if kind == 0:
            dense = np.zeros(math.prod(self.shape), np.float32)
            dense[np.asarray(self.quan.get("index", ()), np.uint32)] = self.alpha
            return dense.reshape(self.shape)
        codes, alpha, q = self.codes().reshape(-1), self.alpha, self.quan
        groups = alpha.size // (2 if self.asymmetric else 1)
        values: np.ndarray = codes.reshape(groups, -1).astype(np.float32)
        scale = np.float32(1) if q.get("has_scaleInt") or self._old else np.float32(q.get("quantScale", 0.0))
        with np.errstate(all="ignore"):
            if self.asymmetric:
                pairs = alpha.reshape(groups, 2)
                reference = q.get("aMin", 0) or -128
                if reference < 0:
                    values -= np.float32(reference)
                values = values * (pairs[:, 1:] * scale) + pairs[:, :1] * scale
            else:
                values = values * (alpha[:, None] * scale)
        return np.ascontiguousarray(values, np.float32).reshape(self.shape)


def stored_count(quan: Mapping[str, Any], name: str) -> int:
    """How many weights a blob holds, by its header; all its parts are checked to be there."""
    kind = quan.get("type", 0)
    buffer = np.asarray(quan.get("buffer", ()), np.int8)
    if kind == 0:
        index = np.asarray(quan.get("index", ()), np.uint32)
        count, values = int(quan.get("weightSize", 0)), np.asarray(quan.get("alpha", ())).size
        if values != index.size or (index.size and int(index.max()) >= count):
            raise ModelFormatError(f"{name}: sparse weights have {values} values and {index.size} positions up to "
                                   f"{int(index.max(initial=0))} of {count}")
        return _plausible(count, index.nbytes, name)
    if kind == 3:
        if buffer.size % 2:
            raise ModelFormatError(f"{name}: 16-bit weights of {buffer.size} bytes")
        return buffer.size // 2
    if kind == 4:
        return buffer.size
    if kind not in (1, 2):
        raise ModelFormatError(f"{name}: quantised weights of an unknown type {kind}")
    stream = _Stream(buffer, name)
    count = stream.dims(bool(quan.get("shapeInt32")))
    if kind == 1:
        table = stream.table()
        if (stream.data.size - stream.at) * 8 < count * _bits(table.size):
            raise ModelFormatError(f"{name}: {count} weights of {_bits(table.size)} bits do not fit in "
                                   f"{stream.data.size - stream.at} bytes")
        return count
    return _plausible(count, buffer.size, name)


def _plausible(count: int, stored: int, name: str) -> int:
    """The count of sparse weights; refuses a small file that would fill the memory with zeros."""
    if count > 256 * max(stored, 16384):
        raise ModelFormatError(f"{name}: {count} weights are said to be in {stored} bytes")
    return count


def _codes(weight: QuantizedWeight) -> np.ndarray:
    q, count = weight.quan, math.prod(weight.shape)
    kind, buffer = q.get("type", 0), np.asarray(q.get("buffer", ()), np.int8)
    if kind == 4:
        return buffer
    stream = _Stream(buffer, weight.name)
    stream.dims(bool(q.get("shapeInt32")))
    if kind == 1:
        table = stream.table()
        bits = _bits(table.size)
        index = unpack_bits(stream.bytes((count * bits + 7) // 8), bits, count)
        return _pick(table, index, weight.name)
    nnz, step_bits = stream.number("<u4"), stream.number()
    if not 1 <= step_bits <= 8 or nnz > count:
        raise ModelFormatError(f"{weight.name}: sparse weights with {nnz} entries and steps of {step_bits} bits")
    steps = unpack_bits(stream.bytes((nnz * step_bits + 7) // 8), step_bits, nnz)
    table = stream.table()
    bits = _bits(table.size)
    index = unpack_bits(stream.bytes((nnz * bits + 7) // 8), bits, nnz)
    places = np.cumsum(steps, dtype=np.int64)
    if nnz and places[-1] >= count:
        raise ModelFormatError(f"{weight.name}: sparse weights reach element {places[-1]} of {count}")
    codes = _background(weight, stream.rows, count)
    codes[places] = _pick(table, index, weight.name)
    return codes


def _pick(table: np.ndarray, index: np.ndarray, name: str) -> np.ndarray:
    if index.size and int(index.max()) >= table.size:
        raise ModelFormatError(f"{name}: code {int(index.max())} is outside of the table of {table.size} values")
    return table[index]


def _background(weight: QuantizedWeight, rows: int, count: int) -> np.ndarray:
    """Codes of the elements that the sparse form leaves out: those of the value 0."""
    if not weight.asymmetric or weight.alpha.size != 2 * rows:
        return np.zeros(count, np.int8)
    low, scale = weight.alpha.reshape(rows, 2).T
    reference = weight.quan.get("aMin", 0) or -128
    with np.errstate(divide="ignore", invalid="ignore"):
        zero = np.where(scale > 1e-6, np.round(-low / scale), 0) + reference
    return np.repeat(zero.astype(np.int8), count // rows)
