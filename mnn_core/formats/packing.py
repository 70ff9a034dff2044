"""How weights are stored: options of the writer, applied to one constant at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import GraphError
from ..ir import Constant
from .quantize import quantize
from .weights import half

_CHUNK = 1 << 22


@dataclass(frozen=True)
class Packing:
    """fp16: 16-bit floats. bits: 2 to 8, integers (0: none), asymmetric with a zero point, block input channels to a scale,
    scale_bits 16: scales as 16-bit floats. hqq: scales and zero points that half-quadratic optimisation finds.
    align_denormalized: numbers too small for a normal float become 0.
    """

    fp16: bool = False
    bits: int = 0
    asymmetric: bool = False
    block: int | None = None
    scale_bits: int = 32
    hqq: bool = False
    align_denormalized: bool = False

    def __post_init__(self) -> None:
        if self.bits and not 2 <= self.bits <= 8:
            raise GraphError(f"weights can be quantised to 2 to 8 bits, not {self.bits}")
        if self.block is not None and self.block < 1:
            raise GraphError(f"blocks of {self.block} input channels cannot share a scale; expected 1 or more")
        if self.scale_bits not in (16, 32):
            raise GraphError(f"scales are stored with 16 or 32 bits, not {self.scale_bits}")

    def weight(self, constant: Constant, name: str) -> Constant:
        """The weight of a convolution, output channels first."""
        if not isinstance(constant, np.ndarray) or constant.dtype.kind != "f" or not constant.size:
            return constant
        array = self.aligned(constant)
        if self.bits:
            return quantize(array, self.bits, self.asymmetric or self.hqq, self.block, name, scale_bits=self.scale_bits,
                            hqq=self.hqq)
        return half(array) if self.fp16 else array

    def constant(self, constant: Constant) -> Constant:
        """Any other constant."""
        if not isinstance(constant, np.ndarray) or constant.dtype.kind != "f":
            return constant
        array = self.aligned(constant)
        return half(array) if self.fp16 else array

    def aligned(self, array: np.ndarray) -> np.ndarray:
        """The array, with 0 for numbers that are denormalised; a copy only if there are any."""
        if not self.align_denormalized or array.dtype.kind != "f":
            return array
        tiny, flat = np.finfo(np.float32).tiny, array.reshape(-1)
        for start in range(0, flat.size, _CHUNK):
            part = np.abs(flat[start : start + _CHUNK])
            if ((part < tiny) & (part > 0)).any():
                return np.where(np.abs(array) < tiny, array.dtype.type(0), array)
        return array
