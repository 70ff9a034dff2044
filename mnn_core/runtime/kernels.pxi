# Kernel libraries, their rows, and kernels prepared from them.

cdef _names(str text):
    """"f32,f32->f32" as two lists."""
    ins, _, outs = text.partition("->")
    return [t.strip() for t in ins.split(",") if t.strip()], [t.strip() for t in outs.split(",") if t.strip()]


cdef bint _fits(list patterns, list types):
    """Whether types match the patterns; the last pattern repeats, absent (None) tensors match anything."""
    if not patterns:
        return not types
    for i, t in enumerate(types):
        pattern = patterns[i] if i < len(patterns) else patterns[-1]
        if t is not None and pattern != "*" and pattern != t:
            return False
    return True


cdef class KernelRow:
    """One row of a library's table."""

    cdef const native.mnn_kernel *kernel
    cdef NativeLibrary library
    cdef readonly str name, op, types, isa, layouts
    cdef readonly int inplace
    cdef readonly int block
    cdef list in_types, out_types, in_layouts, out_layouts

    def __repr__(self):
        return f"<KernelRow {self.name}: {self.op} {self.types} {self.layouts} {self.isa}>"

    def layout_of_input(self, int i, int n_in=0):
        """Layout that input i must have: "p" plain, "b" blocked, "f" any that all f tensors share."""
        return self.in_layouts[min(i, len(self.in_layouts) - 1)] if self.in_layouts else "p"

    def layout_of_output(self, int i):
        """Layout that output i gets."""
        return self.out_layouts[min(i, len(self.out_layouts) - 1)] if self.out_layouts else "p"

    def prepare(self, attrs, list inputs, list outputs, list constants, int threads, SharedStore shared, str name):
        """Prepares the kernel for an op: TensorDescs (None: absent input), and arrays where inputs are constant.

        Raises Declined with the kernel's reason.
        """
        cdef vector[native.mnn_tensor] ins, outs
        cdef vector[vector[int64_t]] shapes
        cdef vector[uint32_t] uses
        cdef native.mnn_tensor t
        cdef string why
        cdef Attributes attributes = Attributes(dict(attrs))
        cdef NativeKernel made = NativeKernel()
        shapes.resize(len(inputs) + len(outputs))
        for i, desc in enumerate(inputs):
            if desc is None:
                memset(&t, 0, sizeof(t))
                t.rank = -1
            else:
                t = tensor_of(desc, shapes[i])
                if constants[i] is not None:
                    t.data = constant_data(desc, constants[i])
            ins.push_back(t)
        for i, desc in enumerate(outputs):
            outs.push_back(tensor_of(desc, shapes[len(inputs) + i]))
        made.row, made.shared = self, shared
        if not native.prepare(self.kernel, ins, outs, attributes.items, threads, shared.store, made.prepared, why, uses):
            raise Declined(why.decode(errors="replace"))
        for i in uses:
            shared.owners[id(constants[i])] = constants[i]
        return made


cdef class SharedStore:
    """Memory that the kernels of one model share: packed weights."""

    cdef native.SharedStore store
    cdef dict owners  # constants whose addresses are keys: they must not be freed and their address used again

    def __cinit__(self):
        self.owners = {}

    @property
    def nbytes(self):
        """Bytes held."""
        return self.store.bytes()


cdef class NativeKernel:
    """A prepared kernel. It keeps what it needs alive: its library, the shared memory."""

    cdef native.Prepared prepared
    cdef readonly KernelRow row
    cdef SharedStore shared

    @property
    def scratch_bytes(self):
        """Scratch memory that a run needs."""
        return self.prepared.scratch_bytes


cdef class NativeLibrary:
    """A kernel library, opened for the life of the process.

    isa: use only rows of this instruction set and of those after it in the table. Raises BackendError if the file is no kernel
    library, was built for another ABI, or has no such isa.
    """

    cdef const native.mnn_library *table
    cdef readonly str name, path
    cdef readonly list isas
    cdef readonly int block
    cdef dict by_op

    def __init__(self, path, isa=None):
        cdef string error
        cdef KernelRow row
        cdef const char *at
        self.path = os.fspath(path)
        cdef bytes encoded = os.fsencode(self.path)
        self.table = native.open_library(encoded, error)
        if self.table is NULL:
            raise BackendError(f"cannot open the kernel library {self.path}: {error.decode(errors='replace')}")
        if self.table.abi != native.MNN_KERNEL_ABI:
            older = "the library" if self.table.abi < native.MNN_KERNEL_ABI else "mnn-core"
            raise BackendError(f"the kernel library {self.path} was built for kernel ABI {self.table.abi}, this mnn_core has "
                               f"{native.MNN_KERNEL_ABI}; upgrade {older}")
        if self.table.size < sizeof(native.mnn_library) or self.table.kernel_size < sizeof(native.mnn_kernel):
            raise BackendError(f"the kernel library {self.path} has a table of {self.table.size} bytes and rows of "
                               f"{self.table.kernel_size}; expected at least {sizeof(native.mnn_library)} and "
                               f"{sizeof(native.mnn_kernel)}: build it again with this mnn_core's header")
        self.name = self.table.name.decode()
        found, self.isas, blocks = [], [], {}
        at = <const char *>self.table.kernels
        for _ in range(self.table.n_kernels):
            row = KernelRow()
            row.kernel = <const native.mnn_kernel *>at
            at += self.table.kernel_size
            row.isa = row.kernel.isa.decode()
            if row.isa and not self.table.supports(row.kernel.isa):
                continue
            row.library = self
            row.name, row.op = row.kernel.name.decode(), row.kernel.op.decode()
            row.types, row.layouts = row.kernel.types.decode(), row.kernel.layouts.decode()
            row.in_types, row.out_types = _names(row.types)
            row.in_layouts, row.out_layouts = _names(row.layouts)
            row.inplace = row.kernel.inplace
            row.block = self.table.block(row.kernel.isa)
            blocks[row.isa] = row.block
            if row.isa and row.isa not in self.isas:
                self.isas.append(row.isa)
            found.append(row)
        if isa is not None and isa not in self.isas:
            raise BackendError(f"the kernel library {self.name} has nothing for {isa!r} on this machine; it has: "
                               f"{', '.join(self.isas) or 'none'}")
        allowed = [*self.isas[self.isas.index(isa) if isa else 0:], ""]
        self.block = next((blocks[i] for i in allowed if blocks.get(i)), 0)
        self.by_op = {}
        for row in found:
            if row.isa in allowed and ("b" not in row.layouts or row.block == self.block):
                self.by_op.setdefault(row.op, []).append(row)

    def op_types(self):
        """Types of the ops that have a row."""
        return set(self.by_op)

    def rows(self, str op_type, list in_types, list out_types):
        """Rows for an op on element types ("f32", ...; None: absent), in the table's order: the best first."""
        cdef KernelRow row
        return [row for row in self.by_op.get(op_type, ()) if _fits(row.in_types, in_types) and _fits(row.out_types, out_types)]
