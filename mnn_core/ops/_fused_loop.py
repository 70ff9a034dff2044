"""While with a LoopParam: a numeric loop over strided views, as real MNN's own lowering makes it.

In iteration i, operand v of a command is the tensor `indexes[v]`, from element `view[v].offset + steps[v] * j` on, seen with
three strides over the box `size`; j is i, or element i of the tensor `iterIndexes[v]`. Operand 0 is written. A matrix
product has the box (e, l, h) and sums over l.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..errors import GraphError
from ..ir import Op, schema
from ..ir.dtypes import numpy_dtype
from .registry import definition

Command = Mapping[str, Any]


def fused_loop(op: Op) -> Callable[[Sequence[np.ndarray | None]], list[np.ndarray]]:
    """The loop as a function of the op's inputs. Raises GraphError for what its tables cannot mean."""
    defaults = {name: attr.default for name, attr in schema.table_attributes("LoopParam").items()}
    param = {**defaults, **op.attrs}
    shapes = [info["blob"] for info in param["extraTensorInfos"]]
    if len(shapes) < len(op.outputs):
        raise GraphError(f"{op} has {len(op.outputs)} outputs; its extraTensorInfos describe {len(shapes)}")

    def loop(arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        tensors: list[np.ndarray | None] = [None] * max(param["tensorNumber"], len(op.inputs) + len(op.outputs))
        for slot, array in zip(param["inputIndexes"], arrays):
            tensors[_slot(op, slot, tensors)] = None if array is None else np.ascontiguousarray(array).reshape(-1)
        outputs = []
        for slot, blob in zip(param["outputIndexes"], shapes):
            out = np.zeros(tuple(blob["dims"] or ()), numpy_dtype(blob["dataType"]))
            outputs.append(out)
            tensors[_slot(op, slot, tensors)] = out.reshape(-1)
        for command in param["initCommand"] or ():
            if command.get("op") is not None:
                _step(op, command, tensors, 0)
        for i in range(param["loopNumber"]):
            for command in param["commands"]:
                _step(op, command, tensors, i)
        return outputs

    return loop


def _slot(op: Op, slot: int, tensors: Sequence[Any]) -> int:
    if not 0 <= slot < len(tensors):
        raise GraphError(f"{op}: its loop names tensor {slot} of {len(tensors)}")
    return slot


def _step(op: Op, command: Command, tensors: Sequence[np.ndarray | None], i: int) -> None:
    views = [_operand(op, command, tensors, v, i) for v in range(len(command["indexes"]))]
    out, inputs = views[0], views[1:]
    inner = command.get("op") or {"type": "Copy"}
    kind, attrs = inner["type"], dict(inner.get("main") or {})
    if kind == "MatMul":
        a, b = inputs[0][:, :, 0], inputs[1][0, :, :]
        value = (a.astype(np.float64) @ b.astype(np.float64)).astype(out.dtype)[:, None, :]
        if len(inputs) > 2:
            value = value + inputs[2][:, :1, :]
        out = out[:, :1, :]
    elif kind in ("BinaryOp", "UnaryOp"):
        made = Op(kind, [""] * len(inputs), [""], attrs, op.name)
        value = definition(made).compute(made, *(v.copy() for v in inputs))
    elif kind in ("Copy", "Raster"):
        value = inputs[0].copy()
    else:
        raise GraphError(f"{op}: its loop runs {kind}; known are MatMul, BinaryOp, UnaryOp and copies")
    fuse = command.get("fuse", -1)
    if fuse is not None and fuse >= 0:
        names = {number: name for name, number in schema.ENUMS["BinaryOpOperation"].items()}
        made = Op("BinaryOp", ["", ""], [""], {"opType": names[fuse]}, op.name)
        value = definition(made).compute(made, out.copy(), np.ascontiguousarray(value))
    out[...] = value


def _operand(op: Op, command: Command, tensors: Sequence[np.ndarray | None], v: int, i: int) -> np.ndarray:
    flat = tensors[_slot(op, command["indexes"][v], tensors)]
    if flat is None:
        raise GraphError(f"{op}: its loop reads tensor {command['indexes'][v]}, which is absent")
    by = command["iterIndexes"][v] if v < len(command["iterIndexes"] or ()) else -1
    at = i
    if by >= 0:
        table = tensors[_slot(op, by, tensors)]
        if table is None or i >= table.size:
            raise GraphError(f"{op}: iteration {i} has no index in tensor {by}")
        at = int(table[i])
    view = command["view"][v]
    size = tuple(command["size"])
    strides = tuple(view["stride"] or (0, 0, 0))
    if 0 in size:
        return np.zeros(size, flat.dtype)
    start = view["offset"] + (command["steps"][v] if v < len(command["steps"] or ()) else 0) * at
    low = start + sum(min(0, s) * (n - 1) for n, s in zip(size, strides))
    high = start + sum(max(0, s) * (n - 1) for n, s in zip(size, strides))
    if low < 0 or high >= flat.size:
        raise GraphError(f"{op}: iteration {i} touches elements {low}..{high} of a tensor of {flat.size}")
    return as_strided(flat[start:], size, tuple(s * flat.itemsize for s in strides))
