# distutils: language = c++
"""The native part: kernel libraries, prepared kernels, and the loop that runs a program. Holds no arithmetic."""

import math
import os
from time import perf_counter as _clock

import numpy as np

from ..errors import BackendError, CancelledError, KernelError, MNNError, OutOfMemoryError
from ..ir.region import Region, flatten
from ..ir.tensor import MAX_RANK

cimport cython
cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memset, strcpy
from libcpp.string cimport string
from libcpp.vector cimport vector

from . cimport native

cnp.import_array()

KERNEL_ABI = native.MNN_KERNEL_ABI


class Declined(Exception):
    """A kernel row does not take an op; the text says why."""


include "tensors.pxi"
include "kernels.pxi"
include "outputs.pxi"
include "program.pxi"
