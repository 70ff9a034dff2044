"""What is known of shapes before the inputs are: dimensions as numbers where they are fixed, as names where they are not.

Equal names are equal sizes, whatever the inputs; different names may be equal too. A tensor whose rank is not known has no
shape here. Small integer tensors that are computed from shapes have their elements in the same terms, so that a Reshape to
(batch, length, 4, 8) is understood. Only a main graph's inputs are sure to be as declared: passes that look at shapes are
Pass(..., main_only=True).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..errors import MNNError
from ..ir import Graph, Op, Spec
from ..ops import find
from ._shape_rules import RULES, Dim, Shape
from .constant_folding import fold_op

#: Tensors of more elements are not followed.
_MAX_VALUES = 64
#: These copy elements; their outputs are made of what their inputs hold.
_MOVES = frozenset({"GatherV2", "Gather", "StridedSlice", "Slice", "Reshape", "Squeeze", "Unsqueeze", "ExpandDims", "Flatten",
                    "Concat", "Pack", "Identity", "BroadcastTo"})
#: Their outputs have the batch of input 0.
_IMAGES = frozenset({"Convolution", "ConvolutionDepthwise", "Deconvolution", "DeconvolutionDepthwise", "Pooling", "Interp"})
#: Arithmetic that sizes go through.
_REDUCED = {"PROD": "MUL", "SUM": "ADD", "MAXIMUM": "MAXIMUM", "MINIMUM": "MINIMUM"}
_ARITHMETIC = frozenset({"ADD", "SUB", "MUL", "REALDIV", "DIV", "FLOORDIV", "MAXIMUM", "MINIMUM"})


class Shapes:
    """Shapes of a graph's tensors, the values of small integer ones, and the tensors that are wholly known."""

    def __init__(self, graph: Graph) -> None:
        self.shapes: dict[str, Shape] = {}
        self.values: dict[str, list[Dim]] = {}
        self.known: dict[str, np.ndarray] = {}
        self._constants = graph.constants
        for info in graph.inputs:
            if info.shape is not None and info.kind == "tensor":
                names = (*info.dim_names, *[None] * len(info.shape))
                free = [f"={name}" if name else f"{info.name}.{i}" for i, name in enumerate(names)]
                self.shapes[info.name] = tuple(free[i] if d is None else d for i, d in enumerate(info.shape))
        for name, constant in graph.constants.items():
            self.shapes[name] = tuple(int(d) for d in constant.shape)
        for op in graph.ops:
            try:
                self._follow(op)
            except (MNNError, IndexError, ValueError, TypeError, OverflowError):
                continue  # an op that does not fit its inputs: planning says so

    def rank(self, name: str) -> int | None:
        """The number of dimensions of a tensor, if it is known."""
        shape = self.shapes.get(name)
        return None if shape is None else len(shape)

    def array(self, name: str) -> np.ndarray | None:
        """A tensor that is constant, or follows from fixed dimensions."""
        found = self.known.get(name)
        if found is None:
            constant = self._constants.get(name) if name else None
            found = constant if isinstance(constant, np.ndarray) else None
        return found

    def items(self, name: str) -> list[Dim] | None:
        """The elements of a small integer tensor."""
        if name in self.values:
            return self.values[name]
        array = self.array(name)
        if array is None or array.dtype.kind not in "iu" or array.size > _MAX_VALUES:
            return None
        return [int(v) for v in array.reshape(-1)]

    def _follow(self, op: Op) -> None:
        found = find(op.type)
        if found is None or found.dynamic or not found.pure:
            return
        if op.type == "Shape":
            self._shape_op(op)
            return
        arrays = [self.array(n) if n else None for n in op.inputs]
        if op.inputs and all(a is not None or not n for a, n in zip(arrays, op.inputs)):
            for name, result in zip(op.outputs, fold_op(op, arrays) or ()):
                if name and result.size <= _MAX_VALUES:
                    self.known[name], self.shapes[name] = result, result.shape
        if any(n and n not in self.shapes for n in op.outputs):
            shapes = self._exact(op, arrays) or (RULES[op.type](self, op) if op.type in RULES else [])
            for name, shape in zip(op.outputs, shapes):
                if name and shape is not None:
                    self.shapes[name] = shape
        if op.outputs and op.outputs[0] not in self.known:
            self._values_of(op, arrays)

    def _exact(self, op: Op, arrays: Sequence[np.ndarray | None]) -> list[Shape]:
        """Output shapes by the op's own rule, where all dimensions but a batch that it keeps are numbers."""
        found, batch = find(op.type), None
        shapes = [self.shapes.get(n, ()) for n in op.inputs]
        if op.type in _IMAGES and shapes and shapes[0] and isinstance(shapes[0][0], str):
            batch, shapes[0] = shapes[0][0], (1, *shapes[0][1:])
        named = any(isinstance(d, str) for s in shapes for d in s)
        if found is None or named or any(n and n not in self.shapes for n in op.inputs):
            return []
        if any(i < len(arrays) and op.inputs[i] and arrays[i] is None for i in found.content):
            return []
        specs = [Spec(tuple(int(d) for d in s), np.dtype(np.float32) if a is None else a.dtype, a) if n else None
                 for n, s, a in zip(op.inputs, shapes, arrays)]
        try:
            made: list[Shape] = [tuple(s.shape) for s in found.infer(op, specs)]
        except MNNError:
            return []
        return [(batch, *s[1:]) for s in made] if batch is not None else made

    def _shape_op(self, op: Op) -> None:
        shape = self.shapes.get(op.inputs[0])
        if shape is not None:
            part = list(shape[op["start"] if op["hasStart"] else None:op["end"] if op["hasEnd"] else None])
            self._tell(op.outputs[0], (len(part),), part)

    def _tell(self, name: str, shape: Shape, values: list[Dim]) -> None:
        self.shapes[name], self.values[name] = shape, values
        if all(isinstance(v, int) for v in values):
            self.known[name] = np.array(values, np.int32).reshape([int(d) for d in shape])

    def _values_of(self, op: Op, arrays: Sequence[np.ndarray | None]) -> None:
        """The elements of output 0, by moving the inputs' elements, or by arithmetic on them."""
        lists = [self.items(n) if n else None for n in op.inputs]
        named = [self.shapes.get(n, ()) for n in op.inputs]
        shapes = [tuple(d for d in s if isinstance(d, int)) for s in named]
        if not lists or lists[0] is None or list(map(len, named)) != list(map(len, shapes)):
            return
        if op.type == "Cast" and op["dstT"] in ("DT_INT32", "DT_INT64"):
            self._tell(op.outputs[0], named[0], lists[0])
        elif op.type == "Reduction" and op["operation"] in _REDUCED and len(shapes[0]) == 1 and lists[0]:
            total: Dim | None = lists[0][0]
            for v in lists[0][1:]:
                total = None if total is None else _binary(_REDUCED[op["operation"]])(total, v)
            if total is not None:
                self._tell(op.outputs[0], (1,) if op["keepDims"] else (), [total])
        elif op.type in ("BinaryOp", "Select") and all(i is not None for i in lists):
            full = [np.array(i, object).reshape(s) for i, s in zip(lists, shapes)]
            result = np.frompyfunc(_binary(op["opType"]) if op.type == "BinaryOp" else _select, len(full), 1)(*full)
            array = np.asarray(result, object)
            if array.size <= _MAX_VALUES and all(v is not None for v in array.reshape(-1)):
                self._tell(op.outputs[0], array.shape, list(array.reshape(-1)))
        elif op.type in _MOVES:
            data = len(op.inputs) if op.type in ("Concat", "Pack") else 1
            if any(i is None for i in lists[:data]) or any(a is None for a in arrays[data:]) or len(op.outputs) != 1:
                return
            table = [v for i in lists[:data] for v in i or ()]
            ends = np.cumsum([0, *(len(i or ()) for i in lists[:data])])
            places = [np.arange(a, b, dtype=np.int32).reshape(s) for a, b, s in zip(ends, ends[1:], shapes)]
            moved = fold_op(op, [*places, *arrays[data:]])
            if moved and moved[0].size <= _MAX_VALUES:
                self._tell(op.outputs[0], moved[0].shape, [table[i] for i in moved[0].reshape(-1)])


def _binary(kind: str) -> Callable[[Dim, Dim], Dim | None]:
    """Arithmetic of sizes. The same of the same has the same name."""
    op = Op("BinaryOp", ["a", "b"], ["c"], {"opType": kind})

    def join(a: Dim, b: Dim) -> Dim | None:
        if isinstance(a, int) and isinstance(b, int):
            result = fold_op(op, [np.array(v, np.int32) for v in (a, b)])
            return int(result[0]) if result and result[0].dtype.kind in "iu" else None
        if (kind in ("MUL", "REALDIV", "DIV", "FLOORDIV") and b == 1) or (kind in ("ADD", "SUB") and b == 0):
            return a
        if (kind == "MUL" and a == 1) or (kind == "ADD" and a == 0):
            return b
        if kind == "EQUAL":
            return 1 if a == b else 0 if _differ(a, b) or _differ(b, a) else None
        return f"{kind}({a},{b})" if kind in _ARITHMETIC else None

    return join


def _differ(a: Dim, size: Dim) -> bool:
    """Whether a is a negative number and the other one a size, not a difference or the like."""
    return isinstance(a, int) and a < 0 and isinstance(size, str) and "(" not in size


def _select(condition: Dim, a: Dim, b: Dim) -> Dim | None:
    return a if a == b else None if isinstance(condition, str) else a if condition else b
