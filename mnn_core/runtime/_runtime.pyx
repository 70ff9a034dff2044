"""The native part: kernel libraries, thread pool, and the loop that runs a plan. Holds no arithmetic."""

cdef extern from "mnn/kernel.h":
    enum: MNN_KERNEL_ABI

KERNEL_ABI = MNN_KERNEL_ABI
