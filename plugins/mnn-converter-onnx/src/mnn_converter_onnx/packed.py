"""Weights of few bits as onnxruntime packs them: several codes in a byte, the first in its lowest bits."""

from __future__ import annotations

import numpy as np

from mnn_core import ModelFormatError

from .builder import Builder
from .rules import Unsupported


def constant(b: Builder, name: str, what: str) -> np.ndarray:
    """The value of an input that must be constant. Raises Unsupported if it is not."""
    value = b.value(name)
    if value is None:
        raise Unsupported(f"{what} that is not constant: it is decoded when the model is converted")
    return value


def unpack(data: np.ndarray, bits: int, count: int) -> np.ndarray:
    """The first `count` codes along the last axis of bytes, uint8. Raises Unsupported and ModelFormatError."""
    if bits not in (2, 4, 8):
        raise Unsupported(f"codes of {bits} bits; expected 2, 4 or 8")
    data = data.astype(np.uint8)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    codes = ((data[..., None] >> shifts) & np.uint8(2**bits - 1)).reshape(*data.shape[:-1], -1)
    if codes.shape[-1] < count:
        raise ModelFormatError(f"packed codes of shape {list(data.shape)} hold {codes.shape[-1]} in a row; expected {count}")
    return codes[..., :count]


def zero_points(value: np.ndarray | None, bits: int, shape: tuple[int, ...]) -> np.ndarray:
    """Zero points as float32 in the shape of the scales: packed along the last axis, or floats, or the middle code."""
    if value is None:
        return np.full(shape, 2 ** (bits - 1), np.float32)
    if value.dtype.kind == "f":
        return value.astype(np.float32).reshape(shape)
    rows = (-1,) if len(shape) == 1 else (*shape[:-1], -1)
    return unpack(value.reshape(rows), bits, shape[-1]).astype(np.float32)
