"""The native runtime: kernel libraries, the thread pool, and programs."""

from ._runtime import (
    KERNEL_ABI,
    CancelToken,
    Declined,
    KernelRow,
    NativeKernel,
    NativeLibrary,
    Program,
    ProgramTensor,
    SharedStore,
    Step,
    TensorDesc,
)
from .threads import default_threads

__all__ = ["KERNEL_ABI", "CancelToken", "Declined", "KernelRow", "NativeKernel", "NativeLibrary", "Program", "ProgramTensor",
           "SharedStore", "Step", "TensorDesc", "default_threads"]
