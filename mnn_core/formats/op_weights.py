"""Weights between op tables and graph constants: in files they lie inside the op, in a Graph they are constant inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ModelFormatError
from ..ir import Constant, Graph, Op, decoded
from .external import ExternalFile, numbers
from .names import Names
from .weights import HalfConstant, QuantizedWeight, stored_count

CONVOLUTIONS = frozenset({"Convolution", "ConvolutionDepthwise", "Deconvolution", "DeconvolutionDepthwise", "Convolution3D",
                          "ConvTranspose3D"})
#: Their weights are integers that stay in the attribute symmetricQuan.
INT8_CONVOLUTIONS = frozenset({"ConvInt8", "DepthwiseConvInt8"})
#: Table -> its weight fields in the order of the op's inputs.
VECTORS = {"Scale": ("scaleData", "biasData"), "LayerNorm": ("gamma", "beta"), "GroupNorm": ("gamma", "beta"),
           "PRelu": ("slope",)}


def kernel_of(op: Op) -> tuple[int, ...]:
    """Spatial size of a convolution's kernel, as its attributes tell."""
    if op.param == "Convolution3D" or op.type in ("Convolution3D", "ConvTranspose3D"):
        return tuple(int(k) for k in op.attrs.get("kernels", ())) or (1, 1, 1)
    return int(op.attrs.get("kernelY", 1)), int(op.attrs.get("kernelX", 1))


def weight_shape(op: Op, count: int, name: str) -> tuple[int, ...]:
    """Shape of a convolution's weight of `count` elements (mnn_format: OIHW, depthwise C1HW, transposed IOHW)."""
    kernel, outputs = kernel_of(op), int(op.attrs.get("outputCount", 0))
    area = math.prod(kernel)
    group = int(op.attrs.get("group", 1)) or 1
    if outputs <= 0 or area <= 0 or group <= 0 or any(k <= 0 for k in kernel):
        raise ModelFormatError(f"{name}: {op} has kernel {list(kernel)}, group {group} and {outputs} output channels")
    if op.type.endswith("Depthwise"):
        shape: tuple[int, ...] = (outputs, 1, *kernel)
    elif op.type in ("Deconvolution", "ConvTranspose3D"):
        per = outputs // group
        shape = (count // (per * area) if per else 0, per, *kernel)
    else:
        shape = (outputs, count // (outputs * area), *kernel)
    if math.prod(shape) != count or count == 0:
        raise ModelFormatError(f"{name}: {op} stores {count} weights, which do not fill {outputs} output channels of kernel "
                               f"{list(kernel)} in {group} groups")
    return shape


def take_weights(op: Op, table: str, graph: Graph, names: Names, files: ExternalFile, path: str | None, name: str) -> None:
    """Moves the weights of an op that was just read from its attributes into constants of the graph."""
    if table in VECTORS:
        external = op.attrs.pop("external", ())
        found = [op.attrs.pop(f, None) for f in VECTORS[table]]
        if len(external) > 1:
            sections = files.sections(external, path, op.name)
            found = [numbers(s, np.float32, f"{name}: {op}") for s in sections[: len(found)]] + found[len(sections):]
        if op.type == "PReLU" and found[0] is not None and found[0].size == 1:
            found[0] = found[0].reshape(())
        if table == "GroupNorm":
            _put_before(op, graph, names, VECTORS[table], found)
        else:
            _append(op, graph, names, VECTORS[table], found)
    elif table in ("Convolution2D", "Convolution3D") and op.type in CONVOLUTIONS:
        _take_convolution(op, graph, names, op.attrs.pop("external", ()), files, path, name)
    elif op.type in INT8_CONVOLUTIONS and op.attrs.get("quanParameter"):
        _take_int8(op, op.attrs.pop("external", ()), files, path, name)


def _append(op: Op, graph: Graph, names: Names, fields: tuple[str, ...], values: list[Constant | None]) -> None:
    if all(v is None or v.shape == (0,) for v in values):
        return
    for field, value in zip(fields, values):
        if value is None or value.shape == (0,):
            op.inputs.append("")
            continue
        own = names.fresh(f"{op.outputs[0] if op.outputs else op.name}.{field}")
        graph.constants[own] = value
        op.inputs.append(own)


def _put_before(op: Op, graph: Graph, names: Names, fields: tuple[str, ...], values: list[Constant | None]) -> None:
    """Puts weights between input 0 and the others: the output shape of a transposed convolution, the addend of a GroupNorm."""
    others = op.inputs[1:]
    del op.inputs[1:]
    _append(op, graph, names, fields, values)
    if others:
        op.inputs += [*[""] * (1 + len(fields) - len(op.inputs)), *others]


def _take_convolution(op: Op, graph: Graph, names: Names, external: tuple[int, ...], files: ExternalFile, path: str | None,
                      name: str) -> None:
    weight, bias = op.attrs.pop("weight", None), op.attrs.pop("bias", None)
    quan = op.attrs.pop("quanParameter", None)
    if len(external) > 1:
        sections = files.sections(external, path, op.name)
        label = f"{name}: {op}"
        if quan is None:
            weight = numbers(sections[0], np.float32, label)
            bias = numbers(sections[1], np.float32, label) if len(sections) > 1 else None
        else:
            scales = "alphaFp16" if quan.get("scaleStorage") == "FP16" else "alpha"
            quan = {**quan, "buffer": sections[0].view(np.int8)}
            if len(sections) > 1 and sections[1].size:
                quan[scales] = numbers(sections[1], np.uint16 if scales == "alphaFp16" else np.float32, label)
            if len(sections) > 2:
                bias = numbers(sections[2], np.float32, label)
            if len(sections) > 3 and sections[3].size:
                quan["index"] = numbers(sections[3], np.uint32, label)
    packed: Constant | None = None
    if quan is not None and (len(quan.get("buffer", ())) or len(quan.get("index", ()))):
        packed = _quantised(op, quan, name)
    elif weight is not None and weight.size:
        packed = weight.reshape(weight_shape(op, weight.size, name))
    if packed is None:
        if len(op.inputs) < 2:
            raise ModelFormatError(f"{name}: {op} has no weights")
        return
    if bias is not None and bias.size not in (0, int(op.attrs.get("outputCount", 0))):
        raise ModelFormatError(f"{name}: {op} has {bias.size} biases for {op.attrs.get('outputCount')} output channels")
    _put_before(op, graph, names, ("weight", "bias"), [packed, bias])


def _take_int8(op: Op, external: tuple[int, ...], files: ExternalFile, path: str | None, name: str) -> None:
    """Moves weights that are stored as a quantised blob of scale 1 to symmetricQuan."""
    quan = op.attrs.pop("quanParameter")
    if len(external) > 1:
        sections = files.sections(external, path, op.name)
        quan = {**quan, "buffer": sections[0].view(np.int8)}
        if len(sections) > 1 and sections[1].size:
            quan["alpha"] = numbers(sections[1], np.float32, f"{name}: {op}")
    if len(quan.get("buffer", ())):
        label = f"{name}: {op}"
        weight = QuantizedWeight(weight_shape(op, stored_count(quan, label), name), quan, label)
        weight.check()
        values = np.clip(np.rint(weight.decode()), -128, 127).astype(np.int8).reshape(-1)
        op.attrs["symmetricQuan"] = {**(op.attrs.get("symmetricQuan") or {}), "weight": values}


def _quantised(op: Op, quan: Mapping[str, Any], name: str) -> Constant:
    label = f"{name}: {op}"
    shape = weight_shape(op, stored_count(quan, label), name)
    if quan.get("type") == 3:
        return HalfConstant(shape, numbers(quan["buffer"], np.uint16, label))
    made = QuantizedWeight(shape, quan, label)
    made.check()
    return made


def put_weights(op: Op, graph: Graph, table: str) -> tuple[dict[str, Any], list[str]] | None:
    """The inverse: fields to add to the op's table and the inputs that remain; None if MNN needs constants there."""
    if op.type in CONVOLUTIONS:
        return _put_convolution(op, graph)
    fields = VECTORS.get(table)
    if fields is None:
        return {}, op.inputs
    first = 2 if table == "LayerNorm" and len(op.outputs) == 2 else 1
    names = op.inputs[first : first + len(fields)]
    if not all(n == "" or n in graph.constants for n in names):
        return None
    arrays = [decoded(graph.constants[n]).reshape(-1).astype(np.float32, copy=False) if n else None for n in names]
    size = next((a.size for a in arrays if a is not None), 0)
    found: dict[str, Any] = {}
    if size:
        found = {f: a if a is not None else np.full(size, f in ("gamma", "scaleData"), np.float32)
                 for f, a in zip(fields, [*arrays, None, None])}
    if table == "Scale":
        found["channels"] = size
    elif table == "PRelu":
        found["slopeCount"] = size
    return found, [*op.inputs[:first], *op.inputs[first + len(fields):]]


def _put_convolution(op: Op, graph: Graph) -> tuple[dict[str, Any], list[str]] | None:
    names = [*op.inputs[1:3], "", ""][:2]
    weight = graph.constants.get(names[0])
    if weight is None or (names[1] and names[1] not in graph.constants):
        known = op.type == "Convolution" or op.attrs.get("outputCount")
        return ({}, op.inputs[: 3 if names[1] else 2]) if known and "3D" not in op.type and len(op.inputs) <= 3 else None
    transposed = op.type in ("Deconvolution", "ConvTranspose3D")
    group = op.attrs.get("group", 1) or 1
    depthwise = op.type.endswith("Depthwise")
    outputs = weight.shape[1] * group if transposed else weight.shape[0]
    inputs = weight.shape[0] if transposed or depthwise else weight.shape[1] * group
    bias = decoded(graph.constants[names[1]]).reshape(-1) if names[1] else np.zeros(outputs, np.float32)
    found: dict[str, Any] = {"outputCount": outputs, "inputCount": inputs, "bias": bias.astype(np.float32, copy=False)}
    if depthwise:
        found["group"] = outputs
    if isinstance(weight, QuantizedWeight):
        found["quanParameter"] = dict(weight.quan)
    elif isinstance(weight, HalfConstant) and weight.kind == "f2":
        found["quanParameter"] = {"type": 3, "buffer": np.ascontiguousarray(weight.raw).view(np.int8)}
    else:
        found["weight"] = decoded(weight).astype(np.float32, copy=False).reshape(-1)
    return found, [op.inputs[0], *op.inputs[3:]]
