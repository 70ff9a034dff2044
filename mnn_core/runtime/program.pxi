# Programs: what a plan is compiled to.

cdef class ProgramTensor:
    """A tensor of a program and where it lies.

    place: ("arena", byte offset), ("input", number), ("output", number), ("const", array) or ("alias", tensor, byte offset).
    """

    cdef readonly TensorDesc desc
    cdef readonly tuple place

    def __init__(self, TensorDesc desc, tuple place):
        self.desc, self.place = desc, place


cdef class Step:
    """kernel: a NativeKernel, or a function of input arrays (None: absent) and output arrays. -1: an absent input."""

    cdef readonly object kernel
    cdef readonly tuple inputs, outputs
    cdef readonly str name

    def __init__(self, kernel, tuple inputs, tuple outputs, str name):
        self.kernel, self.inputs, self.outputs, self.name = kernel, inputs, outputs, name


cdef class CancelToken:
    """Stops runs that it was given to: `model.run(..., cancel=token)`, then `token.cancel()` in another thread."""

    cdef native.atomic_int flag

    def __cinit__(self):
        self.flag.store(0)

    def cancel(self):
        """Stops every run that has this token, between two steps or two pieces of a step's work."""
        self.flag.store(1)

    @property
    def cancelled(self):
        return self.flag.load() != 0


@cython.no_gc_clear  # the program must be there when a context in a reference cycle is given back
cdef class _Run:
    """One run's context, given back when the run and all arrays that look into it are gone."""

    cdef Program program
    cdef native.Context *context

    def __dealloc__(self):
        if self.context is not NULL:
            self.program.core.release(self.context)


cdef class Program:
    """Tensors and steps of a compiled plan. May be run by several threads at once."""

    cdef native.Program core
    cdef list tensors, steps, bounds
    cdef list input_dtypes, input_shapes
    cdef list output_shapes, output_types
    cdef vector[size_t] output_bytes
    cdef readonly size_t arena_bytes

    def __init__(self, list tensors, list steps, list inputs, list outputs, size_t arena_bytes):
        cdef ProgramTensor p
        cdef vector[int64_t] shape
        cdef native.mnn_tensor t
        cdef int64_t where, offset
        cdef void *data
        cdef native.Step made
        cdef Step s
        self.tensors, self.steps, self.arena_bytes = list(tensors), list(steps), arena_bytes
        for p in tensors:
            shape.clear()
            t = tensor_of(p.desc, shape)
            where = offset = 0
            data = NULL
            if p.place[0] == "const":
                data = constant_data(p.desc, p.place[1])
            else:
                where = p.place[1]
                offset = p.place[2] if len(p.place) > 2 else 0
            self.core.add_tensor(t, shape, <native.Place><int>_PLACES[p.place[0]], where, offset, data)
        for s in steps:
            made = native.Step()
            if isinstance(s.kernel, NativeKernel):
                made.kernel = &(<NativeKernel>s.kernel).prepared
            for i in s.inputs:
                made.ins.push_back(i)
            for i in s.outputs:
                made.outs.push_back(i)
            self.core.add_step(made)
        self.core.finish(arena_bytes, len(inputs), len(outputs))
        ins = [(<ProgramTensor>tensors[i]).desc for i in inputs]
        self.input_dtypes, self.input_shapes = [d.dtype for d in ins], [d.shape for d in ins]
        outs = [(<ProgramTensor>tensors[i]).desc for i in outputs]
        self.output_shapes, self.output_types = [d.shape for d in outs], [d.dtype.num for d in outs]
        for d in outs:
            self.output_bytes.push_back(math.prod(d.shape) * d.dtype.itemsize)
        self.bounds = self._bounds()

    def _bounds(self):
        """Stretches (begin, end, native) of steps of one kind."""
        found = []
        for i, s in enumerate(self.steps):
            kind = isinstance((<Step>s).kernel, NativeKernel)
            if found and found[-1][2] == kind:
                found[-1] = (found[-1][0], i + 1, kind)
            else:
                found.append((i, i + 1, kind))
        return found

    def run(self, inputs, *, CancelToken cancel=None, bint profile=False):
        """Runs once; C-contiguous arrays in the order of the inputs. Returns fresh arrays that the caller owns.

        profile: return (outputs, seconds of each step). Raises KernelError naming the step, CancelledError.
        """
        cdef cnp.ndarray array
        cdef void *small[32]
        cdef vector[void *] large
        cdef void **pointers = small
        cdef Py_ssize_t n_in = len(inputs), n_out = len(self.output_shapes), i
        cdef _Run context
        cdef const native.atomic_int *flag = NULL
        cdef size_t begin, end, reached
        cdef vector[double] seconds
        cdef double *times = NULL
        if n_in != len(self.input_shapes):
            raise ValueError(f"{n_in} arrays given to a program of {len(self.input_shapes)} inputs")
        if n_in + n_out > 32:
            large.resize(n_in + n_out)
            pointers = large.data()
        for i in range(n_in):
            array = inputs[i]
            if array.dtype is not self.input_dtypes[i] and array.dtype != self.input_dtypes[i]:
                raise ValueError(f"input {i} is {array.dtype}, the program was made for {self.input_dtypes[i]}")
            if (<object>array).shape != self.input_shapes[i]:
                raise ValueError(f"input {i} is {(<object>array).shape}, the program was made for {self.input_shapes[i]}")
            if not cnp.PyArray_ISCARRAY_RO(array):
                raise ValueError(f"input {i} is not a C-contiguous, aligned array")
            pointers[i] = cnp.PyArray_DATA(array)
        outputs = []
        for i in range(n_out):
            array = empty(self.output_shapes[i], self.output_types[i], self.output_bytes[i])
            pointers[n_in + i] = cnp.PyArray_DATA(array)
            outputs.append(array)
        context = _Run()
        context.program = self
        context.context = self.core.acquire()
        if context.context is NULL:
            raise OutOfMemoryError(f"no memory for an arena of {self.arena_bytes} bytes")
        if cancel is not None:
            flag = &cancel.flag
        self.core.bind(context.context[0], pointers, pointers + n_in, flag)
        if profile:
            seconds.resize(len(self.steps) + 1)
            times = seconds.data()
        for b, e, is_native in self.bounds:
            begin, end = b, e
            if is_native:
                with nogil:
                    reached = self.core.run(context.context[0], begin, end, times + begin if times is not NULL else times)
                if reached != end:
                    self._failed(context, reached)
            else:
                for i in range(begin, end):
                    if context.context.is_cancelled():
                        self._failed(context, i)
                    self._python(context, i, inputs, outputs, times + i if times is not NULL else times)
        if profile:
            return outputs, [seconds[i] for i in range(<Py_ssize_t>len(self.steps))]
        return outputs

    cdef _failed(self, _Run context, size_t step):
        if context.context.is_cancelled():
            raise CancelledError("the run was cancelled")
        cdef Step s = self.steps[step]
        text = (<bytes>context.context.error).decode(errors="replace")
        raise KernelError(f"{s.name}: kernel {(<NativeKernel>s.kernel).row.name} failed: {text or 'it gave no reason'}")

    cdef _python(self, _Run context, Py_ssize_t index, inputs, list outputs, double *seconds):
        cdef Step s = self.steps[index]
        start = _clock()
        ins = [None if t < 0 else self._view(context, t, inputs, outputs) for t in s.inputs]
        outs = [self._view(context, t, inputs, outputs) for t in s.outputs]
        for array in ins:
            if array is not None and not any(array is o for o in outs):
                array.flags.writeable = False
        try:
            s.kernel(ins, outs)
        except MNNError:
            raise
        except Exception as error:
            raise KernelError(f"{s.name}: {type(error).__name__}: {error}") from error
        if seconds is not NULL:
            seconds[0] = _clock() - start

    cdef _view(self, _Run context, int tensor, inputs, list outputs):
        """A tensor of this run as an array, which keeps the memory alive that it looks at."""
        cdef ProgramTensor p = self.tensors[tensor], base = p
        cdef cnp.npy_intp dims[32]
        cdef cnp.ndarray array
        cdef int rank = len(p.desc.shape), d
        while base.place[0] == "alias":
            base = self.tensors[base.place[1]]
        kind = base.place[0]
        owner = inputs[base.place[1]] if kind == "input" else outputs[base.place[1]] if kind == "output" \
            else base.place[1] if kind == "const" else context
        for d in range(rank):
            dims[d] = p.desc.shape[d]
        array = cnp.PyArray_SimpleNewFromData(rank, dims, p.desc.dtype.num, self.core.data(context.context[0], tensor))
        cnp.set_array_base(array, owner)
        return array
