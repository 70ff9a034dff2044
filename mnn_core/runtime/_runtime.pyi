"""Types of the native module."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import DTypeLike

KERNEL_ABI: int

class Declined(Exception): ...

class TensorDesc:
    shape: tuple[int, ...]
    dtype: np.dtype
    layout: str
    block: int
    def __init__(self, shape: Sequence[int], dtype: DTypeLike, layout: str = "p", block: int = 0) -> None: ...

class SharedStore:
    @property
    def nbytes(self) -> int: ...

class NativeKernel:
    row: KernelRow
    @property
    def scratch_bytes(self) -> int: ...

class KernelRow:
    name: str
    op: str
    types: str
    isa: str
    layouts: str
    inplace: int
    block: int
    def layout_of_input(self, i: int, n_in: int = 0) -> str: ...
    def layout_of_output(self, i: int) -> str: ...
    def prepare(self, attrs: Mapping[str, Any], inputs: list[TensorDesc | None], outputs: list[TensorDesc],
                constants: list[np.ndarray | None], threads: int, shared: SharedStore, name: str) -> NativeKernel: ...

class NativeLibrary:
    name: str
    path: str
    isas: list[str]
    block: int
    def __init__(self, path: str | os.PathLike[str], isa: str | None = None) -> None: ...
    def op_types(self) -> set[str]: ...
    def rows(self, op_type: str, in_types: list[str | None], out_types: list[str]) -> list[KernelRow]: ...

class ProgramTensor:
    desc: TensorDesc
    place: tuple
    def __init__(self, desc: TensorDesc, place: tuple) -> None: ...

class Step:
    kernel: NativeKernel | Callable[[list[np.ndarray | None], list[np.ndarray]], None]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    name: str
    def __init__(self, kernel: NativeKernel | Callable[[list[np.ndarray | None], list[np.ndarray]], None],
                 inputs: tuple[int, ...], outputs: tuple[int, ...], name: str) -> None: ...

class CancelToken:
    def cancel(self) -> None: ...
    @property
    def cancelled(self) -> bool: ...

class Program:
    arena_bytes: int
    def __init__(self, tensors: list[ProgramTensor], steps: list[Step], inputs: list[int], outputs: list[int],
                 arena_bytes: int) -> None: ...
    @overload
    def run(self, inputs: Sequence[np.ndarray], *, cancel: CancelToken | None = None,
            profile: Literal[False] = False) -> list[np.ndarray]: ...
    @overload
    def run(self, inputs: Sequence[np.ndarray], *, cancel: CancelToken | None = None,
            profile: Literal[True]) -> tuple[list[np.ndarray], list[float]]: ...
