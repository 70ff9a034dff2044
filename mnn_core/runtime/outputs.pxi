# Output arrays: NumPy's own, on memory that is aligned where that matters.

cdef size_t _ALIGNED_FROM = 16384  # bytes; for less, NumPy's small blocks are quicker to get than aligned stores save


cdef void *_new(void *_, size_t bytes) noexcept nogil:
    return native.aligned_new(bytes, False)

cdef void *_zeros(void *_, size_t count, size_t size) noexcept nogil:
    return native.aligned_new(count * size, True) if size == 0 or count <= (<size_t>-1) // size else NULL

cdef void *_renew(void *_, void *p, size_t bytes) noexcept nogil:
    return native.aligned_renew(p, bytes)

cdef void _delete(void *_, void *p, size_t bytes) noexcept nogil:
    native.aligned_delete(p)


cdef cnp.PyDataMem_Handler _handler
strcpy(_handler.name, "mnn_aligned")
_handler.version = 1
_handler.allocator.malloc = _new
_handler.allocator.calloc = _zeros
_handler.allocator.realloc = _renew
_handler.allocator.free = _delete
cdef object _aligned = PyCapsule_New(&_handler, "mem_handler", NULL)


cdef cnp.ndarray empty(tuple shape, int dtype, size_t nbytes):
    """An array with undefined contents that owns its memory."""
    cdef cnp.npy_intp dims[32]
    cdef int rank = len(shape), d
    for d in range(rank):
        dims[d] = shape[d]
    if nbytes < _ALIGNED_FROM:
        return cnp.PyArray_EMPTY(rank, dims, dtype, 0)
    before = cnp.PyDataMem_SetHandler(_aligned)  # of this thread, and only for this array
    try:
        return cnp.PyArray_EMPTY(rank, dims, dtype, 0)
    except MemoryError as error:
        raise OutOfMemoryError(f"no memory for an output of shape {shape} ({nbytes} bytes)") from error
    finally:
        cnp.PyDataMem_SetHandler(before)
