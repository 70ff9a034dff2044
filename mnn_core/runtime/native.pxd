# Declarations of the C++ side for Cython.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

cdef extern from "mnn/kernel.h" nogil:
    enum: MNN_KERNEL_ABI
    ctypedef struct mnn_dtype:
        uint8_t code, bits
        uint16_t lanes
    ctypedef struct mnn_tensor:
        void *data
        mnn_dtype dtype
        int32_t rank, layout, block
        const int64_t *shape
    ctypedef union mnn_value "decltype(mnn_attr::v)":
        int64_t i
        double f
        const char *s
        const int64_t *ints
        const double *floats
        const char **strings
    ctypedef struct mnn_attr:
        const char *name
        int32_t kind, n
        mnn_value v
    ctypedef struct mnn_kernel:
        const char *name
        const char *op
        const char *types
        const char *isa
        const char *layouts
        uint32_t inplace
    ctypedef struct mnn_library:
        uint32_t abi, size
        const char *name
        int (*supports)(const char *)
        int32_t (*block)(const char *)
        size_t n_kernels, kernel_size
        const mnn_kernel *kernels

cdef extern from "<atomic>" namespace "std" nogil:
    cdef cppclass atomic_int "std::atomic<int>":
        void store(int)
        int load()

cdef extern from "executor.hpp" namespace "mnn" nogil:
    cdef cppclass SharedStore:
        size_t bytes()
    cdef cppclass Prepared:
        const mnn_kernel *kernel
        size_t scratch_bytes
        int32_t threads
    cbool prepare(const mnn_kernel *, const vector[mnn_tensor] &, const vector[mnn_tensor] &, const vector[mnn_attr] &,
                  int32_t, SharedStore &, Prepared &, string &, vector[uint32_t] &) except +
    cdef enum Place "mnn::Place":
        pass
    cdef cppclass Step:
        Step()
        const Prepared *kernel
        vector[int32_t] ins "in"
        vector[int32_t] outs "out"
    cdef cppclass Context:
        char error[1024]
        cbool is_cancelled()
    cdef cppclass Program:
        void add_tensor(const mnn_tensor &, const vector[int64_t] &, Place, int64_t, int64_t, void *) except +
        void add_step(Step) except +
        void finish(size_t, int64_t, int64_t) except +
        Context *acquire() except +
        void release(Context *)
        void bind(Context &, void **, void **, const atomic_int *)
        size_t run(Context &, size_t, size_t, double *)
        void *data(const Context &, int32_t)
        cbool native(size_t)

cdef extern from "memory.hpp" namespace "mnn" nogil:
    void *aligned_new(size_t bytes, cbool zeroed)
    void *aligned_renew(void *, size_t bytes)
    void aligned_delete(void *)

cdef extern from "library.hpp" namespace "mnn" nogil:
    const mnn_library *open_library(const char *path, string &error) except +
