"""Builds one graph: what conversion rules use to add ops and constants, and to ask what is known of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mnn_core import Graph, ModelFormatError, Op, TensorInfo
from mnn_core.ir.dtypes import LOW_PRECISION, OBJECT, dtype_name, stored_dtype
from mnn_core.ops import find
from mnn_core.passes.constant_folding import fold_op

from .context import Context
from .rules import Unsupported
from .tensors import Type, as_stored, loses

#: Ops whose first output has the rank of their first input.
_SAME_RANK = frozenset({
    "ReLU", "ReLU6", "UnaryOp", "Softmax", "ELU", "Selu", "PReLU", "Cast", "Scale", "Convolution", "ConvolutionDepthwise",
    "Deconvolution", "DeconvolutionDepthwise", "Pooling", "Interp", "Permute", "Padding", "Identity", "LayerNorm", "Concat",
    "StridedSlice", "CumSum", "Reverse", "ReverseSequence", "Tile", "Slice", "Pooling3D", "Convolution3D", "ConvTranspose3D",
    "LRN", "ScatterElements", "GroupNorm",
})


#: Ops of other packages than the core -> the package.
_PACKAGES = {**{f"ai.onnx.ml.{name}": "mnn-ops-ml" for name in (
    "CastMap", "DictVectorizer", "LabelEncoder", "OneHotEncoder", "SVMKernel", "SVMProbabilities", "SVMVotes", "TreeEnsemble",
    "ZipMap")}, "onnx.TfIdfVectorizer": "mnn-ops-ml"}


class Builder:
    """A graph under construction. parent: the builder of the graph around a subgraph, whose tensors may be captured.

    captures: tensors of the parent that this graph reads, in order; they are inputs here, under the same name.
    """

    def __init__(self, context: Context, graph: Graph, parent: Builder | None = None) -> None:
        self.context, self.graph, self.parent = context, graph, parent
        self.captures: list[str] = []
        self.known: set[str] = set()
        self._dtypes: dict[str, np.dtype] = {}
        self._low: dict[str, np.dtype] = {}
        self._types: dict[str, Type] = {}
        self._ranks: dict[str, int] = {}
        self._lengths: dict[str, int] = {}
        self._origin: dict[str, str] = {}
        self._shared: dict[tuple[Any, ...], str] = {}
        self.node_name = ""

    def declare(self, name: str, dtype: Type | None, rank: int | None = None, origin: str | None = None) -> None:
        """Notes what is known of a tensor, a sequence or an optional; origin: its name in the ONNX model."""
        self.known.add(name)
        self._low.pop(name, None)
        if isinstance(dtype, tuple):
            self._types[name], self._dtypes[name] = dtype, OBJECT
        elif dtype is not None:
            self._types.pop(name, None)
            self._dtypes[name] = dtype
            if dtype.name in LOW_PRECISION:
                self._low[name], self._dtypes[name] = dtype, LOW_PRECISION[dtype.name]
        if rank is not None:
            self._ranks[name] = rank
        if origin is not None:
            self._origin[name] = origin

    def capture(self, name: str) -> None:
        """Makes a tensor of the graph around this one readable here."""
        assert self.parent is not None
        if name in self.known:
            return
        self.declare(name, self.parent.type(name), self.parent.rank(name))
        constant = self.parent.graph.constants.get(name)
        if constant is not None:
            self.graph.constants[name] = constant
        else:
            self.captures.append(name)
            self.graph.inputs.append(TensorInfo(name, self.parent.dtype(name), None))

    def op(self, op_type: str, inputs: Sequence[str], outputs: Sequence[str] | int = 1, *, dtype: Any = None,
           **attrs: Any) -> str:
        """Adds an op and returns its first output. outputs: names, or how many new tensors.

        dtype: the declared dtype of the outputs, that of input 0 if not given. Ops on small constants are computed at once.
        """
        if find(op_type) is None:
            package = f"; {_PACKAGES[op_type]} has it: pip install {_PACKAGES[op_type]}" if op_type in _PACKAGES else ""
            raise Unsupported(f"it needs op {op_type!r}, which is not among the ops that are loaded{package}")
        stem = self.node_name or op_type
        names = [self.context.fresh(f"{stem}/{op_type}") for _ in range(outputs)] if isinstance(outputs, int) else list(outputs)
        ins = list(inputs)
        while ins and not ins[-1]:
            ins.pop()
        op = Op(op_type, ins, names, attrs, name=self.node_name or names[0])
        first = next((i for i in ins if i), "")
        declared: Type | None = self.type(first) if dtype is None and first in self._dtypes else dtype
        if not isinstance(declared, tuple) and declared is not None:
            declared = np.dtype(declared)
        for name in names:
            if name:
                self.declare(name, declared)
        self._guess_rank(op)
        values = [self.value(i) if i else None for i in ins]
        if ins and all(v is not None for v, i in zip(values, ins) if i):
            folded = fold_op(op, values)
            if folded is not None:
                for name, value in zip(names, folded):
                    if name:
                        self.graph.constants[name] = value
                return names[0]
        self.graph.ops.append(op)
        return names[0]

    def _guess_rank(self, op: Op) -> None:
        """What ops and vectors of sizes tell: ONNX's own inference knows no more than the model's file declares."""
        ranks = [self._ranks.get(i) for i in op.inputs if i]
        rank = None
        if op.type in _SAME_RANK and ranks:
            rank = ranks[0]
        elif op.type in ("BinaryOp", "Select") and all(r is not None for r in ranks):
            rank = max(r for r in ranks if r is not None)
        elif op.type == "Fill":
            rank = self._length(op.inputs[0])
        elif op.type == "Reshape":
            rank = len(op["dims"]) if len(op.inputs) == 1 else self._length(op.inputs[1])
        elif op.type == "Shape" and (of := self.rank(op.inputs[0])) is not None:
            first, last = op["start"] if op["hasStart"] else 0, op["end"] if op["hasEnd"] else of
            rank, self._lengths[op.outputs[0]] = 1, len(range(of)[first:last])
        if op.type == "Concat" and op["axis"] == 0 and all(lengths := [self._length(i) for i in op.inputs]):
            rank, self._lengths[op.outputs[0]] = 1, sum(n for n in lengths if n)
        if rank is not None:
            for name in op.outputs:
                self._ranks.setdefault(name, rank)

    def _length(self, name: str) -> int | None:
        """Number of elements of a vector, if it can be told before the model runs."""
        shape = self.shape(name)
        return shape[0] if shape is not None and len(shape) == 1 and shape[0] is not None else self._lengths.get(name)

    def const(self, value: Any, name: str | None = None, dtype: Any = None) -> str:
        """Adds a constant, in the dtype that MNN computes in, and returns its name. dtype: the declared one."""
        array = np.asarray(value)
        stored = np.ascontiguousarray(as_stored(array)).reshape(array.shape)
        if name is None:
            key = (stored.dtype.str, stored.shape, stored.tobytes()) if stored.size <= 16 and stored.dtype != OBJECT else None
            if key is not None and key in self._shared:
                return self._shared[key]
            name = self.context.fresh(f"{self.node_name}/const" if self.node_name else "const")
            if key is not None:
                self._shared[key] = name
        self.graph.constants[name] = stored
        if array.size and array.dtype.itemsize >= 4 and stored.dtype != array.dtype and loses(array, stored):
            self.context.narrowed.append(name)
        self.declare(name, np.dtype(dtype) if dtype is not None else array.dtype, array.ndim)
        return name

    def type(self, name: str) -> Type:
        """What a tensor, sequence or optional was declared as, types that NumPy lacks included."""
        return self._types.get(name) or self._low.get(name) or self.dtype(name)

    def ints(self, *values: int) -> str:
        """A constant vector of integers."""
        return self.const(np.array(values, np.int64))

    def value(self, name: str) -> np.ndarray | None:
        """The value of a tensor that is constant, else None."""
        found = self.graph.constants.get(name)
        return found if isinstance(found, np.ndarray) or found is None else found.decode()

    def vector(self, name: str, what: str) -> tuple[int, ...] | None:
        """A constant's integers, None if it is not constant. Raises ModelFormatError if it holds no integers."""
        value = self.value(name)
        if value is None:
            return None
        if value.dtype.kind not in "iu" or value.ndim > 1:
            raise ModelFormatError(f"{what} is {value.dtype}{list(value.shape)}; expected a vector of integers")
        return tuple(int(v) for v in value.reshape(-1))

    def dtype(self, name: str) -> np.dtype:
        """Declared dtype of a tensor: what ONNX says it is, not what it is stored as. Unknown ones count as float32.

        bfloat16 and float8 count as float32 too, 4-bit integers as 8-bit ones (see `type`), text and sequences as object.
        """
        return self._dtypes.get(name, np.dtype(np.float32))

    def is_float(self, name: str) -> bool:
        """Whether a tensor holds floats."""
        return self.dtype(name).kind == "f"

    def rank(self, name: str) -> int | None:
        """Rank of a tensor if it can be told before the model runs."""
        constant = self.graph.constants.get(name)
        if constant is not None:
            return len(constant.shape)
        if name in self._ranks:
            return self._ranks[name]
        shape = self.shape(name)
        return None if shape is None else len(shape)

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        """Shape of a tensor as far as it can be told before the model runs."""
        constant = self.graph.constants.get(name)
        if constant is not None:
            return tuple(constant.shape)
        return self.context.shape(self._origin[name]) if name in self._origin else None

    # Short forms of the commonest ops.

    def binary(self, kind: str, a: str, b: str, outputs: Sequence[str] | int = 1, *, dtype: Any = None) -> str:
        """A BinaryOp."""
        return self.op("BinaryOp", [a, b], outputs, dtype=dtype, opType=kind)

    def unary(self, kind: str, x: str, outputs: Sequence[str] | int = 1, *, dtype: Any = None) -> str:
        """A UnaryOp."""
        return self.op("UnaryOp", [x], outputs, dtype=dtype, opType=kind)

    def number(self, value: float, like: str) -> str:
        """A rank-0 constant of the dtype of another tensor."""
        dtype = stored_dtype(self.dtype(like))
        return self.const(np.array(value, dtype), dtype=self.dtype(like))

    def cast(self, x: str, to: Any, outputs: Sequence[str] | int = 1) -> str:
        """A Cast; `to` is the declared dtype. Nothing is added if both are computed in the same one."""
        target = stored_dtype(np.dtype(to))
        if outputs == 1 and stored_dtype(self.dtype(x)) == target:
            return x
        return self.op("Cast", [x], outputs, dtype=to, dstT=dtype_name(target))

    def shape_of(self, x: str) -> str:
        """The shape of a tensor, as a vector of integers."""
        return self.op("Shape", [x], dtype=np.int64)

    def gather(self, x: str, indices: str, axis: int = 0, outputs: Sequence[str] | int = 1) -> str:
        """A GatherV2. Constant indices that count from the end are counted from the front, as MNN wants them."""
        value = self.value(indices)
        if value is not None and (value < 0).any() and self.value(x) is None:
            shape = self.shape(x)
            if shape is not None and -len(shape) <= axis < len(shape) and shape[axis] is not None:
                indices = self.const(np.where(value < 0, value + shape[axis], value))
            else:
                length = self.size(x, axis)
                added = length if value.ndim == 0 else self.binary("MUL", length, self.const((value < 0).astype(np.int32)))
                indices = self.binary("ADD", added, self.const(value))
        return self.op("GatherV2", [x, indices, self.const(np.int32(axis))], outputs, dtype=self.dtype(x))

    def size(self, x: str, axis: int) -> str:
        """The size of one dimension of a tensor, as a rank-0 integer; axes from the end need a known rank in MNN."""
        rank = self.rank(x)
        if axis < 0 and rank is not None:
            axis += rank
        return self.gather(self.shape_of(x), self.const(np.int32(axis)))

    def reshape(self, x: str, dims: Sequence[int], outputs: Sequence[str] | int = 1) -> str:
        """A Reshape to fixed dims (0 copies one, -1 infers one)."""
        return self.op("Reshape", [x], outputs, dims=tuple(dims))

    def identity(self, x: str, output: str) -> None:
        """Makes `output` another name of x."""
        constant = self.graph.constants.get(x)
        if constant is not None:
            self.graph.constants[output] = constant
            self.declare(output, self.dtype(x), len(constant.shape))
        else:
            self.op("Identity", [x], [output])
