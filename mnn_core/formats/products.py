"""Matrix products with a constant factor become 1x1 convolutions, as mnnconvert stores them: only convolutions have packed
weights in a `.mnn` file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..ir import Constant, Graph, Op, decoded
from .names import Names


@dataclass(frozen=True)
class Columns:
    """A matrix (K, N), or (N, K) if `swapped`, as the weight (N, K, 1, 1) of a convolution: made when it is written."""

    matrix: Constant
    swapped: bool
    dtype: np.dtype = np.dtype(np.float32)

    @property
    def shape(self) -> tuple[int, ...]:
        rows, columns = self.matrix.shape if len(self.matrix.shape) > 1 else (*self.matrix.shape, 1)
        return (rows, columns, 1, 1) if self.swapped else (columns, rows, 1, 1)

    def decode(self) -> np.ndarray:
        matrix = decoded(self.matrix).reshape(self.shape[:2] if self.swapped else self.shape[1::-1])
        return np.ascontiguousarray(matrix if self.swapped else matrix.T, np.float32).reshape(self.shape)


def as_convolutions(graph: Graph) -> Graph:
    """The graph with each MatMul by a constant matrix (or vector) of floats as Reshape, Convolution and Reshape.

    For an x of any rank (..., K): x is reshaped to (-1, K, 1, 1), the result to the leading dimensions of x and N.
    """
    if not any(_fits(op, graph) for op in graph.ops):
        return graph
    names, constants, ops = Names(graph.tensor_names()), dict(graph.constants), list[Op]()
    leading: dict[str, str] = {}

    def constant(stem: str, value: Any) -> str:
        name = names.fresh(stem)
        constants[name] = value
        return name

    for op in graph.ops:
        if _fits(op, graph):
            ops += _convolution(op, constants, names, constant, leading)
        else:
            ops.append(op)
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
    weight = _columns(op, constants[op.inputs[1]])
    outputs, inputs = weight.shape[:2]
    vector = len(constants[op.inputs[1]].shape) == 1
    rows, product = names.fresh(f"{result}__rows"), names.fresh(f"{result}__matmul_converted")
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
    attrs = {"outputCount": outputs, "inputCount": inputs, "kernelX": 1, "kernelY": 1, "strideX": 1, "strideY": 1,
             "dilateX": 1, "dilateY": 1, "group": 1}
    return [*made, Op("Reshape", [x], [rows], {"dims": (-1, inputs, 1, 1)}, name=rows),
            Op("Convolution", [rows, constant(f"{result}__weight", weight), *op.inputs[2:]], [product], attrs, name=product),
            Op("Reshape", [product, dims], [result], name=op.name or result)]
