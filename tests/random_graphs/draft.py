"""A random model while it is drawn: its tensors with their values, which onnxruntime computes node by node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from .faults import fault
from .peer import Refused, run_onnxruntime

T = TypeVar("T")
Draw = Callable[[Any], Any]

#: Relative error of one operator by the type of its result; the engine computes doubles as floats.
EPSILON = {"float16": 1e-3, "float32": 1e-6, "float64": 1e-6}
#: Results that are more uncertain than this tell right from wrong no more.
TOO_UNCERTAIN = 0.02
#: Tensors with larger values are not used any further.
LARGE = 1000.0
#: Nor are tensors with more elements, lest chains grow without bounds.
SMALL = 300
#: Operators whose results are parts of their inputs, bit by bit.
MOVES = frozenset({
    "Compress", "Concat", "ConcatFromSequence", "DepthToSpace", "Dropout", "Expand", "Flatten", "Gather", "GatherElements",
    "GatherND", "Identity",
    "MaxPool", "Pad", "Relu", "Reshape", "ReverseSequence", "Scatter", "SequenceAt",
    "SequenceConstruct", "SequenceErase", "SequenceInsert", "Slice", "SpaceToDepth", "Split", "SplitToSequence", "Squeeze",
    "Tile",
    "TopK", "Transpose", "Trilu", "Unsqueeze", "Where",
})

_integers = {(low, high): st.integers(low, high) for low in range(-6, 6) for high in range(low, 12)}


@dataclass(eq=False)
class Tensor:
    """A tensor of the model. noise: relative error of its value in any engine; constant: it is an initializer."""

    name: str
    value: Any
    noise: float = 0.0
    constant: bool = False
    owner: Any = None
    fixed: bool = False  # its shape is to be declared
    element: int = 1  # type of the elements of an empty sequence

    @property
    def dtype(self) -> np.dtype:
        return self.value.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def rank(self) -> int:
        return self.value.ndim

    @property
    def calm(self) -> bool:
        """Whether it is small, all values are finite, and none is large."""
        return self.value.size <= SMALL and bool((np.abs(self.value.astype(np.float64)) <= LARGE).all())


def value_info(tensor: Tensor, shape: Sequence[Any] | None = None) -> onnx.ValueInfoProto:
    """The declaration of a tensor, of its own shape if none is given."""
    kind = helper.np_dtype_to_tensor_dtype(tensor.dtype)
    return helper.make_tensor_value_info(tensor.name, kind, list(tensor.shape) if shape is None else list(shape))


class Draft:
    """A graph under construction; parent: the one around it, whose tensors its nodes may use.

    counts: (operator, "run" or "refused") -> how often; shared by all drafts of a campaign.
    """

    def __init__(self, draw: Draw, opset: int, counts: Counter[tuple[str, str]], parent: Draft | None = None) -> None:
        self.draw, self.opset, self.counts, self.parent = draw, opset, counts, parent
        self.rng: np.random.Generator = parent.rng if parent else np.random.default_rng(draw(st.integers(0, 9999)))
        self.empty: bool = parent.empty if parent else draw(_integers[0, 11]) == 11
        self.names: Counter[str] = parent.names if parent else Counter()
        self.tensors: list[Tensor] = []
        self.nodes: list[tuple[onnx.NodeProto, list[Tensor]]] = []
        self.inputs: list[Tensor] = []
        self.used: set[Tensor] = set()
        self.chained = parent is not None

    # What is chosen.

    def integer(self, low: int, high: int) -> int:
        """low to high, both included; the simplest is low."""
        found = _integers.get((low, high))
        return self.draw(found if found is not None else st.integers(low, high))

    def pick(self, options: Sequence[T]) -> T:
        """One of some options; the simplest is the first."""
        return options[self.integer(0, len(options) - 1)]

    def flag(self) -> bool:
        """False, or True in half of the cases."""
        return bool(self.integer(0, 1))

    def rarely(self) -> bool:
        """True in one case of five."""
        return self.integer(0, 4) == 4

    def dims(self, rank: int, low: int = 1, high: int = 4) -> tuple[int, ...]:
        """A shape; in a few graphs one with empty dimensions."""
        return tuple(0 if self.empty and self.rarely() else self.integer(low, high) for _ in range(rank))

    def types(self, op: str, index: int = 0) -> list[np.dtype]:
        """The types that the standard allows for an input."""
        return list(_types(op, self.opset, index))

    def dtype(self, options: Iterable[Any]) -> np.dtype:
        """One of some types, often float32."""
        found = [np.dtype(d) for d in options]
        if np.dtype(np.float32) in found and not self.flag():
            return np.dtype(np.float32)
        return self.pick(found)

    def axis(self, rank: int) -> int:
        """An axis, from either end."""
        return self.integer(0, rank - 1) - (rank if self.flag() else 0)

    def axes(self, rank: int, low: int = 1) -> list[int]:
        """Different axes in any order, some counted from the end; low: at least how many."""
        order = [int(i) for i in self.rng.permutation(rank)][:self.integer(min(low, rank), rank)]
        return [a - rank if self.flag() else a for a in order]

    def broadcast(self, shape: tuple[int, ...], grow: bool = True) -> tuple[int, ...]:
        """A shape that broadcasts with another one; grow=False: to it."""
        dims = list(shape)
        for i in range(len(dims)):
            if self.integer(0, 2) == 2:
                dims[i] = 1
            elif grow and dims[i] == 1:
                dims[i] = self.integer(1, 3)
        dims = dims[self.integer(0, len(dims)):] if self.rarely() else dims
        return (*([self.integer(1, 2)] if grow and len(shape) < 4 and self.rarely() else []), *(dims if len(dims) else []))

    # Tensors.

    def name(self, stem: str) -> str:
        self.names[stem] += 1
        return f"{stem}{self.names[stem]}"

    def values(self, dtype: Any, shape: Sequence[int], low: float = -3, high: float = 3) -> np.ndarray:
        """Random values; floats are exact in 16 bits, and lie within bounds."""
        dtype, shape = np.dtype(dtype), tuple(shape)
        if dtype.kind == "b":
            return self.rng.integers(0, 2, shape).astype(bool)
        if dtype.kind == "f":
            return self.rng.uniform(low, high, shape).astype(np.float16).astype(dtype)
        low = max(low, 0) if dtype.kind == "u" else low
        return self.rng.integers(int(np.ceil(low)), max(int(high), int(np.ceil(low))) + 1, shape).astype(dtype)

    def given(self, value: Any, constant: bool | None = None) -> Tensor:
        """A new tensor: an input of the model or a constant, as drawn if not said."""
        value = np.asarray(value)
        if constant is None:
            constant = self.flag()
        found = Tensor(self.name("c" if constant or self.parent else "x"), value, 0.0, bool(constant or self.parent), self)
        self.tensors.append(found)
        if not found.constant:
            self.inputs.append(found)
        return found

    def const(self, value: Any) -> Tensor:
        """A new constant."""
        return self.given(value, True)

    def ints(self, *values: int, constant: bool | None = None) -> Tensor:
        """A vector of int64; mostly a constant."""
        return self.given(np.array(values, np.int64), not self.rarely() if constant is None else constant)

    def tensor(self, dtypes: Iterable[Any], rank: tuple[int, int] = (0, 4), shape: Sequence[int] | None = None, low: float = -3,
               high: float = 3, constant: bool | None = None) -> Tensor:
        """A tensor that fits: of a chain one that is there already, if there is one. low, high: bounds of its values."""
        dtypes = [np.dtype(d) for d in dtypes]
        if self.chained and not constant and self.integer(0, 5) != 5:
            fits = [t for t in self.pool() if t.dtype in dtypes and rank[0] <= t.rank <= rank[1]
                    and (shape is None or t.shape == tuple(shape))]
            if (low, high) != (-3, 3):
                fits = [t for t in fits if t.value.size == 0 or (t.value.min() >= low and t.value.max() <= high)]
            if fits:
                return fits[-1 - self.integer(0, len(fits) - 1)]
        dtype = self.dtype(dtypes)
        return self.given(self.values(dtype, self.dims(self.integer(*rank)) if shape is None else shape, low, high), constant)

    def pool(self) -> list[Tensor]:
        """Tensors that further nodes may use; those of the graph around this one come first."""
        return [*(self.parent.pool() if self.parent else []), *(t for t in self.tensors if isinstance(t.value, np.ndarray)
                                                               and t.calm)]

    # Nodes.

    def node(self, op: str, inputs: Sequence[Tensor | None], outputs: int | Sequence[bool] = 1, domain: str = "",
             captures: Sequence[Tensor] = (), fragile: bool = False, **attrs: Any) -> list[Tensor]:
        """Adds a node and returns its outputs. outputs: how many, or which are wanted.

        captures: tensors that its bodies use. fragile: its result jumps where its exact inputs change slightly.
        Raises Refused if onnxruntime does not run it, or if rounding decides about its result.
        """
        wanted = [True] * outputs if isinstance(outputs, int) else list(outputs)
        while wanted and not wanted[-1]:
            wanted.pop()
        names = [t.name if t else "" for t in inputs]
        while names and not names[-1]:
            names.pop()
        attrs = {k: v for k, v in attrs.items() if v is not None}
        if why := fault(op, [t.value if t else None for t in inputs], attrs, self.opset):
            raise Refused(why)
        proto = helper.make_node(op, names, [self.name("t") if w else "" for w in wanted], domain=domain, **attrs)
        read = list(dict.fromkeys([*(t for t in inputs if t), *captures]))
        try:
            values, noise = self._evaluate(op, proto, read, fragile)
        except Refused as error:
            self.counts[op, "refused"] += 1
            self.counts[f"{op}-{self.opset}({', '.join(str(t.dtype) if t else '' for t in inputs)}): {error}"[:300], "why"] += 1
            raise
        self.counts[op, "run"] += 1
        self.nodes.append((proto, read))
        self.used.update(read)
        found = [Tensor(n, v, e, owner=self) for n, v, e in zip([n for n in proto.output if n], values, noise)]
        self.tensors += found
        return found

    def _evaluate(self, op: str, proto: onnx.NodeProto, read: list[Tensor], fragile: bool) -> tuple[list[Any], list[float]]:
        graph = helper.make_graph([proto], "g", [_declared(t) for t in read if not t.constant],
                                  [onnx.ValueInfoProto(name=n) for n in proto.output if n],
                                  [numpy_helper.from_array(t.value, t.name) for t in read if t.constant])
        model = model_of(graph, self.opset, proto.domain)
        values = run_onnxruntime(model.SerializeToString(), {t.name: t.value for t in read if not t.constant})
        for value in values:
            if isinstance(value, np.ndarray) and value.size > 100 * SMALL:
                raise Refused("the result is large")
            if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.dtype.itemsize > 3 and value.size \
                    and (value.max() > 2**31 - 1 or value.min() < -(2**31)):
                raise Refused("the result exceeds 32 bits, in which the engine computes")
        noise = [_base_noise(op, v) for v in values]
        if op in MOVES:
            most = max((t.noise for t in read), default=0.0)
            noise = [most if _is_float(v) or isinstance(v, list) else 0.0 for v in values]
        if fragile or any(t.noise for t in read):
            for _ in range(2):
                feeds = {t.name: self._shaken(t, 1e-6 if fragile else 0.0) for t in read}
                free = helper.make_graph([proto], "g", [_declared(t) for t in read if not t.constant or t.noise or fragile],
                                         graph.output, [c for c, t in zip(graph.initializer, [t for t in read if t.constant])
                                                        if not (t.noise or fragile)])
                given = {i.name for i in free.input}
                other = run_onnxruntime(model_of(free, self.opset, proto.domain).SerializeToString(),
                                        {n: v for n, v in feeds.items() if n in given})
                noise = [max(e, _difference(a, b) * 2) for a, b, e in zip(values, other, noise)]
        if max(noise, default=0.0) > TOO_UNCERTAIN:
            raise Refused("rounding decides about the result")
        return values, noise

    def _shaken(self, tensor: Tensor, least: float) -> Any:
        """A value with random errors of the size that it may have."""
        if not _is_float(tensor.value):
            return tensor.value
        by = max(tensor.noise, least)
        if not by or not tensor.value.size:
            return tensor.value
        scale = np.abs(tensor.value.astype(np.float64)).max()
        error = self.rng.choice([-1.0, 1.0], tensor.shape) * by * scale
        return np.asarray(tensor.value.astype(np.float64) + error, tensor.dtype)


def _declared(tensor: Tensor) -> onnx.ValueInfoProto:
    if isinstance(tensor.value, np.ndarray):
        return value_info(tensor)
    kind = helper.np_dtype_to_tensor_dtype(tensor.value[0].dtype) if tensor.value else tensor.element
    return helper.make_tensor_sequence_value_info(tensor.name, kind, None)


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _base_noise(op: str, value: Any) -> float:
    return EPSILON.get(str(value.dtype), 1e-2) if _is_float(value) else 0.0


def _difference(a: Any, b: Any) -> float:
    """Of two results, relative to the largest value; infinite if shapes or integers differ."""
    if not isinstance(a, np.ndarray):
        return 0.0 if isinstance(b, type(a)) and len(a) == len(b) else float("inf")
    if a.shape != b.shape:
        return float("inf")
    if a.dtype.kind != "f":
        return 0.0 if np.array_equal(a, b) else float("inf")
    a, b = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(a)
    if (finite != np.isfinite(b)).any():
        return float("inf")
    if not finite.any():
        return 0.0
    return float(np.abs(a[finite] - b[finite]).max() / max(np.abs(a[finite]).max(), 1e-3))


def model_of(graph: onnx.GraphProto, opset: int, *domains: str) -> onnx.ModelProto:
    """A model of a graph."""
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains if d)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=max(10, helper.find_min_ir_version_for(opsets[:1])))


_KINDS = {
    "tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(float16)": np.float16,
    "tensor(double)": np.float64, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(bool)": np.bool_,
    "tensor(uint32)": np.uint32, "tensor(uint64)": np.uint64, "tensor(int16)": np.int16, "tensor(uint16)": np.uint16,
}
_schemas: dict[tuple[str, int, int], tuple[np.dtype, ...]] = {}


def _types(op: str, opset: int, index: int) -> tuple[np.dtype, ...]:
    key = (op, opset, index)
    if key not in _schemas:
        schema = onnx.defs.get_schema(op, opset, "")
        kind = schema.inputs[min(index, len(schema.inputs) - 1)].type_str
        allowed = next((set(c.allowed_type_strs) for c in schema.type_constraints if c.type_param_str == kind), {kind})
        _schemas[key] = tuple(np.dtype(d) for k, d in _KINDS.items() if k in allowed)
    return _schemas[key]


FLOATS = (np.float32, np.float16, np.float64)
INDICES = (np.int64, np.int32)


__all__ = ["FLOATS", "INDICES", "Draft", "Refused", "Tensor", "model_of", "run_onnxruntime", "value_info"]
