"""Matrix products with a constant factor, which files of MNN hold as 1x1 convolutions: only those have packed weights there."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..ir import Constant, Graph, Op, decoded
from .names import Names
from .weights import HalfConstant, QuantizedWeight


def from_convolutions(graph: Graph) -> None:
    """The inverse, for files that were read: a convolution of single pixels between two Reshapes becomes a MatMul.

    It is the same sum, and needs none of the layouts of images. The MatMul is by the weight (N, K), transposed.
    """
    producers, outputs = graph.producers(), {o.name for o in graph.outputs}
    convolutions = {op.outputs[0]: op for op in graph.ops if _is_product(op, graph, producers) and op.outputs[0] not in outputs}
    if not convolutions:
        return
    for op in graph.ops:  # whatever else reads a result wants its four dimensions
        for place, name in enumerate(op.inputs):
            if name in convolutions and (place or op.type != "Reshape" or 0 in op["dims"][2:] or op["dimType"] != "NCHW"):
                del convolutions[name]
    names, ops = Names(graph.tensor_names()), list[Op]()
    for op in graph.ops:
        if op.outputs and op.outputs[0] in convolutions:
            weight = graph.constants[op.inputs[1]]
            count, inputs = weight.shape[:2]
            matrix, rows = names.fresh(f"{op.inputs[1]}.matrix"), names.fresh(f"{op.outputs[0]}.rows")
            if isinstance(weight, np.ndarray):
                graph.constants[matrix] = weight.reshape(count, inputs)
            else:
                graph.constants[matrix] = replace(weight, shape=(count, inputs))  # type: ignore[type-var]
            source = producers[op.inputs[0]].inputs[0]
            ops += [Op("Reshape", [source], [rows], {"dims": (-1, inputs)}, name=rows),
                    Op("MatMul", [rows, matrix, *op.inputs[2:]], op.outputs, {"transposeB": True}, name=op.name)]
        else:
            ops.append(op)
    graph.ops = ops
    read = {n for op in ops for n in op.inputs} | outputs
    made = {c.inputs[0] for c in convolutions.values()}
    graph.ops = [op for op in ops if not (op.outputs[:1] and op.outputs[0] in made and op.outputs[0] not in read)]
    read = {n for op in graph.ops for n in op.inputs} | outputs
    for name in {n for c in convolutions.values() for n in (*c.inputs, *producers[c.inputs[0]].inputs[1:])} - read:
        graph.constants.pop(name, None)


def _is_product(op: Op, graph: Graph, producers: Mapping[str, Op]) -> bool:
    """Whether an op is a convolution of images of one pixel, and does nothing else."""
    if op.type != "Convolution" or len(op.inputs) not in (2, 3) or len(op.outputs) != 1 or op.inputs[1] not in graph.constants:
        return False
    weight, reshape = graph.constants[op.inputs[1]], producers.get(op.inputs[0])
    plain = not (op["relu"] or op["relu6"] or any(op["pads"]) or op["padX"] or op["padY"] or op["hasOutputShape"])
    if not plain or (op["group"] or 1) != 1 or weight.shape[2:] != (1, 1) or (op["strideX"], op["strideY"]) != (1, 1):
        return False
    if not isinstance(weight, (np.ndarray, QuantizedWeight, HalfConstant)) or op["symmetricQuan"]:
        return False
    if len(op.inputs) == 3 and (op.inputs[2] not in graph.constants or graph.constants[op.inputs[2]].shape != weight.shape[:1]):
        return False
    if reshape is None or reshape.type != "Reshape" or reshape["dimType"] != "NCHW":
        return False
    shape = graph.constants.get(reshape.inputs[1]) if len(reshape.inputs) > 1 else None
    dims: tuple[int, ...] = reshape["dims"]
    if len(reshape.inputs) > 1:
        dims = tuple(shape.reshape(-1).tolist()) if isinstance(shape, np.ndarray) else ()
    return len(dims) == 4 and dims[0] != 0 and list(dims[1:]) == [math.prod(weight.shape[1:]), 1, 1]


@dataclass(frozen=True)
class Columns:
    """A matrix (K, N), or (N, K) if `swapped`, as the weight (N, K, 1, 1) of a convolution: made when it is written."""

    matrix: Constant
    swapped: bool
    dtype: np.dtype = field(default=np.dtype(np.float32), init=False)

    @property
    def shape(self) -> tuple[int, ...]:
        rows = self.matrix.shape[0]
        columns = self.matrix.shape[1] if len(self.matrix.shape) > 1 else 1
        return (rows, columns, 1, 1) if self.swapped else (columns, rows, 1, 1)

    def packed(self) -> Constant | None:
        """The weight without decoding it, if the matrix is a packed one."""
        if isinstance(self.matrix, (QuantizedWeight, HalfConstant)) and self.swapped:
            return replace(self.matrix, shape=self.shape)
        return None

    def decode(self) -> np.ndarray:
        matrix = decoded(self.matrix).reshape(self.shape[:2] if self.swapped else self.shape[1::-1])
        return np.ascontiguousarray(matrix if self.swapped else matrix.T, np.float32).reshape(self.shape)


def as_convolutions(graph: Graph, every: bool = True) -> Graph:
    """The graph with each MatMul by a constant matrix (or vector) of floats as Reshape, Convolution and Reshape.

    For an x of any rank (..., K): x is reshaped to (-1, K, 1, 1), the result to the leading dimensions of x and N. every: not
    only those that a file was read with, or whose matrix is packed, which no other op of a file can hold.
    """
    producers, consumers = graph.producers(), graph.consumers()
    outputs = {o.name for o in graph.outputs}

    def between(op: Op) -> Op | None:
        """The Reshape before a product, if another one comes behind it: products of files that were read are so."""
        before = producers.get(op.inputs[0])
        if before is None or before.type != "Reshape" or len(before.inputs) != 1 or len(before["dims"]) != 2 or \
                op.outputs[0] in outputs or not before["dims"][0]:
            return None
        after = consumers.get(op.outputs[0], [])
        return before if after and all(c.type == "Reshape" and 0 not in c["dims"][2:] and c["dimType"] == "NCHW" and
                                       c.inputs[1:].count(op.outputs[0]) == 0 for c in after) else None

    def chosen(op: Op) -> bool:
        return _fits(op, graph) and (every or not isinstance(graph.constants[op.inputs[1]], np.ndarray) or
                                     (op["transposeB"] and between(op) is not None))

    if not any(map(chosen, graph.ops)):
        return graph
    names, constants, ops = Names(graph.tensor_names()), dict(graph.constants), list[Op]()
    leading: dict[str, str] = {}

    def constant(stem: str, value: Any) -> str:
        name = names.fresh(stem)
        constants[name] = value
        return name

    for op in graph.ops:
        if chosen(op):
            before = between(op)
            if before is None:
                ops += _convolution(op, constants, names, constant, leading)
            else:
                ops += _pixels(op, before.inputs[0], op.outputs[0], constants, names, constant)
        else:
            ops.append(op)
    read = {n for op in ops for n in op.inputs} | outputs
    ops = [op for op in ops if op.type != "Reshape" or op.outputs[0] in read]
    return replace(graph, ops=ops, constants=constants)


def _fits(op: Op, graph: Graph) -> bool:
    """Whether an op is a product of a tensor with a constant matrix, and a bias that a convolution can add."""
    if op.type != "MatMul" or len(op.inputs) not in (2, 3) or op["transposeA"] or op.inputs[0] in graph.constants:
        return False
    weight = graph.constants.get(op.inputs[1])
    if weight is None or weight.dtype.kind != "f" or len(weight.shape) not in (1, 2) or not all(weight.shape):
        return False
    columns = _columns(op, weight).shape[0]
    bias = graph.constants.get(op.inputs[2]) if len(op.inputs) > 2 else None
    return len(op.inputs) == 2 or (bias is not None and bias.shape == (columns,))


def _columns(op: Op, weight: Constant) -> Columns:
    return Columns(weight, bool(op["transposeB"]) and len(weight.shape) > 1)


def _convolution(op: Op, constants: dict[str, Constant], names: Names, constant: Callable[[str, Any], str],
                 leading: dict[str, str]) -> list[Op]:
    x, result = op.inputs[0], op.outputs[0]
    outputs = _columns(op, constants[op.inputs[1]]).shape[0]
    vector = len(constants[op.inputs[1]].shape) == 1
    product = names.fresh(f"{result}__matmul_converted")
    made = []
    if x not in leading:  # all dimensions of x but the last
        shape = names.fresh(f"{x}__shape")
        leading[x] = names.fresh(f"{x}__leading")
        ends = [constant(f"{x}__{end}", np.array([at], np.int32)) for end, at in (("first", 0), ("last", -1))]
        made += [Op("Shape", [x], [shape], name=shape),
                 Op("StridedSlice", [shape, *ends], [leading[x]], {"fromType": 1}, name=leading[x])]
    dims = leading[x]
    if not vector:
        dims = names.fresh(f"{result}__dims")
        made.append(Op("Concat", [leading[x], constant(f"{result}__outputs", np.array([outputs], np.int32))], [dims],
                       {"axis": 0}, name=dims))
    return [*made, *_pixels(op, x, product, constants, names, constant),
            Op("Reshape", [product, dims], [result], name=op.name or result)]


def _pixels(op: Op, x: str, product: str, constants: Mapping[str, Constant], names: Names,
            constant: Callable[[str, Any], str]) -> list[Op]:
    """The rows of x as images of one pixel, and their convolution."""
    weight, rows = _columns(op, constants[op.inputs[1]]), names.fresh(f"{op.outputs[0]}__rows")
    outputs, inputs = weight.shape[:2]
    attrs = {"outputCount": outputs, "inputCount": inputs, "kernelX": 1, "kernelY": 1, "strideX": 1, "strideY": 1,
             "dilateX": 1, "dilateY": 1, "group": 1}
    return [Op("Reshape", [x], [rows], {"dims": (-1, inputs, 1, 1)}, name=rows),
            Op("Convolution", [rows, constant(f"{op.outputs[0]}__weight", weight), *op.inputs[2:]], [product], attrs,
               name=product)]
