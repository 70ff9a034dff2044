# Tensors and attributes: from Python to the structs of kernel.h.

_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_PLACES = {"arena": 0, "input": 1, "output": 2, "const": 3, "alias": 4}


cdef class TensorDesc:
    """Shape, dtype and physical layout ("p" plain, "b" channel-blocked with `block` channels) of a tensor."""

    cdef readonly tuple shape
    cdef readonly object dtype
    cdef readonly str layout
    cdef readonly int block

    def __init__(self, shape, dtype, str layout="p", int block=0):
        self.shape, self.dtype, self.layout, self.block = tuple(shape), np.dtype(dtype), layout, block
        if len(self.shape) > MAX_RANK or self.dtype.kind not in _CODES:
            raise ValueError(f"a tensor of shape {self.shape} and dtype {self.dtype}; expected at most {MAX_RANK} dimensions "
                             f"of numbers")

    def __repr__(self):
        return f"TensorDesc({self.shape}, {self.dtype}, {self.layout!r}, {self.block})"


cdef native.mnn_tensor tensor_of(TensorDesc desc, vector[int64_t] &shape) except *:
    """The struct of a tensor; `shape` gets its shape, and must stay where it is as long as the struct is used."""
    cdef native.mnn_tensor t
    memset(&t, 0, sizeof(t))
    for d in desc.shape:
        shape.push_back(d)
    t.dtype.code = _CODES[desc.dtype.kind]
    t.dtype.bits = 8 * desc.dtype.itemsize
    t.dtype.lanes = 1
    t.rank = len(desc.shape)
    t.layout = desc.layout == "b"
    t.block = desc.block
    t.shape = shape.data()
    return t


cdef void *constant_data(TensorDesc desc, cnp.ndarray array) except NULL:
    """The data of a constant, which kernels read as dense rows of the described shape."""
    if desc.layout != "p" or (<object>array).shape != desc.shape or array.dtype != desc.dtype \
            or not cnp.PyArray_IS_C_CONTIGUOUS(array):
        raise ValueError(f"a constant of {array.dtype}{(<object>array).shape} for {desc}; expected a C-contiguous array of it")
    return cnp.PyArray_DATA(array)


cdef class Attributes:
    """Attributes of an op as kernels read them; owns the memory they point to."""

    cdef vector[native.mnn_attr] items
    cdef vector[vector[const char *]] texts
    cdef list owners

    def __init__(self, dict values):
        cdef native.mnn_attr a
        cdef bytes text
        cdef cnp.ndarray array
        self.owners = []
        for name, value in values.items():
            memset(&a, 0, sizeof(a))
            if isinstance(value, (bool, int, np.integer, np.bool_)):
                a.kind, a.v.i = b"i"[0], int(value)
            elif isinstance(value, (float, np.floating)):
                a.kind, a.v.f = b"f"[0], float(value)
            elif isinstance(value, str):
                text = value.encode()
                self.owners.append(text)
                a.kind, a.v.s = b"s"[0], text
            elif isinstance(value, (tuple, list)) and len(value) and all(isinstance(v, str) for v in value):
                self.texts.emplace_back()
                for v in value:
                    text = v.encode()
                    self.owners.append(text)
                    self.texts.back().push_back(text)
                a.kind, a.n, a.v.strings = b"S"[0], len(value), self.texts.back().data()
            elif isinstance(value, (tuple, list, np.ndarray)):
                array = self.numbers(value)
                if array is None:
                    continue
                a.n = array.size
                if array.dtype.kind == "f":
                    a.kind, a.v.floats = b"F"[0], <const double *>cnp.PyArray_DATA(array)
                else:
                    a.kind, a.v.ints = b"I"[0], <const int64_t *>cnp.PyArray_DATA(array)
            else:
                continue
            text = name.encode()
            self.owners.append(text)
            a.name = text
            self.items.push_back(a)

    def numbers(self, value):
        """A sequence as int64 or float64 array that lives as long as self; None if it is neither."""
        if len(value) and isinstance(value[0], Region):
            value = flatten(value)
        try:
            array = np.asarray(value)
        except ValueError:
            return None
        if array.size == 0 or array.dtype.kind in "iub":
            array = np.ascontiguousarray(array, np.int64)
        elif array.dtype.kind == "f":
            array = np.ascontiguousarray(array, np.float64)
        else:
            return None
        self.owners.append(array)
        return array
