"""What is known of a tensor before it exists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np

#: Real MNN allows 8 dimensions (MNN_MAX_TENSOR_DIM); NumPy 1.26 ends at 32.
MAX_RANK = 32


@dataclass(frozen=True)
class TensorInfo:
    """Name, dtype and shape of a graph input or output, as the model's author declared them.

    shape: None stands for a dimension that may change from call to call; shape None means unknown rank.
    dim_names: a name for each dimension, or None; equal names must have equal sizes in one call.
    dtype None: not declared (outputs of files that do not store it). An object dtype means text.
    kind: "tensor", or "sequence", "optional" or "map", which have no shape; dtype is that of the tensors in them.
    """

    name: str
    dtype: np.dtype | None
    shape: tuple[int | None, ...] | None
    dim_names: tuple[str | None, ...] = ()
    kind: str = "tensor"

    def __str__(self) -> str:
        dtype = "?" if self.dtype is None else "string" if self.dtype.kind == "O" else self.dtype.name
        if self.kind != "tensor":
            return f"{self.name}: {self.kind}({dtype})"
        dims = "?" if self.shape is None else ",".join(
            str(d) if d is not None else (self.dim_names[i] if i < len(self.dim_names) else None) or "?"
            for i, d in enumerate(self.shape)
        )
        return f"{self.name}: {dtype}[{dims}]"


@dataclass(frozen=True)
class Spec:
    """Shape and dtype of a tensor at plan time, with its value where it is already known.

    Shapes are complete here: a plan is made for one set of input shapes. `value` is set for constants and for what
    can be computed from shapes; shape inference of such ops as Reshape reads it.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    value: np.ndarray | None = field(default=None, compare=False)

    @classmethod
    def of(cls, array: np.ndarray) -> Spec:
        """The spec of an array whose value is known."""
        return cls(tuple(array.shape), array.dtype, array)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        n = 1
        for d in self.shape:
            n *= d
        return n

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def with_shape(self, shape: Sequence[int]) -> Spec:
        """Same dtype, another shape, value unknown."""
        return Spec(tuple(int(d) for d in shape), self.dtype)

    def without_value(self) -> Spec:
        return replace(self, value=None)

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


@runtime_checkable
class PackedConstant(Protocol):
    """A constant that is stored in a packed form (quantised, half precision, memory-mapped) and decoded on demand."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype:
        """dtype of the decoded array."""
        ...

    def decode(self) -> np.ndarray:
        """The constant as a plain C-contiguous array."""
        ...


Constant = np.ndarray | PackedConstant


def decoded(constant: Constant) -> np.ndarray:
    """A constant as a NumPy array; packed ones are decoded (not cached: callers that run often keep the result)."""
    return constant if isinstance(constant, np.ndarray) else constant.decode()
