"""Graph -> `.mnn` file."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..errors import GraphError
from ..ir import Constant, Graph, Op, TensorInfo, schema
from ..ir.dtypes import OBJECT, dtype_name, stored_dtype
from . import extra as extras
from .blobs import blob_of
from .compat import for_mnn
from .encoder import Encoder
from .foreign import parameters
from .layouts import blocked_inputs, to_formats
from .names import Names
from .op_weights import CONVOLUTIONS, put_weights
from .packing import Packing
from .products import Columns, as_convolutions
from .reader import INTERFACE, KEPT
from .recurrent import quantized_recurrent
from .whole import WholeFiles, release

VERSION = "3.6.1"
#: Constants of fewer elements stay inside the file when weights are external, as mnnconvert does.
_EXTERNAL_FROM = 1024
#: Attributes that name a subgraph.
_BODIES = ("then_graph", "else_graph", "cond_graph", "body_graph")
#: Lists that MNN reads even where the file has none, and crashes.
_READ_UNASKED = frozenset({("Reshape", "dims")})
_NO_TABLE = frozenset({"NONE", None})


def write_mnn(
    graph: Graph,
    path: str | Path | None = None,
    *,
    fp16: bool = False,
    weight_quant_bits: int | None = None,
    weight_quant_asymmetric: bool = True,
    weight_quant_block: int | None = None,
    weight_quant_scale_bits: int = 32,
    hqq: bool = False,
    convert_matmul_to_conv: bool | None = None,
    align_denormalized: bool = False,
    keep_input_format: bool = True,
    save_external_data: bool = False,
) -> bytes:
    """Writes a graph as a `.mnn` file that MNN 3.6 loads too; returns its bytes, or none if they went to a path.

    fp16: store weights and float constants as 16-bit floats. weight_quant_bits: store the weights of convolutions, matrix
    products and recurrent layers as integers of 2 to 8 bits, weight_quant_asymmetric with a zero point, weight_quant_block with
    a scale for so many input channels, weight_quant_scale_bits of 16 with short scales, hqq with better zero points.
    convert_matmul_to_conv: products with a constant matrix become 1x1 convolutions; None: if their weights are packed.
    align_denormalized: weights that are no normal floats become 0. keep_input_format=False: images come in and go out in
    NC4HW4. save_external_data: weights go to `<path>.weight`, and are never in memory all at once. Files appear whole or not at
    all. Ops whose attributes MNN's tables cannot hold are stored as Extra ops, which MNN loads but cannot run.

    Raises GraphError for a graph that is inconsistent or cannot be stored, OSError if a file cannot be written.
    """
    graph.check()
    packing = Packing(fp16, weight_quant_bits or 0, weight_quant_asymmetric, weight_quant_block, weight_quant_scale_bits, hqq,
                      align_denormalized)
    products = fp16 or packing.bits > 0 if convert_matmul_to_conv is None else convert_matmul_to_conv
    if path is None:
        if save_external_data:
            raise GraphError("external weights need a path to stand beside")
        return Encoder().finish("Net", _Writer(graph, packing, products, keep=keep_input_format).net())
    target = Path(path)
    with WholeFiles() as files:
        outside = files.open(target.with_name(f"{target.name}.weight")) if save_external_data else None
        chunks = Encoder().chunks("Net", _Writer(graph, packing, products, outside, keep_input_format).net())
        file = files.open(target)
        for chunk in chunks:
            file.write(chunk)
            if isinstance(chunk, memoryview):
                release(chunk)
    return b""


class _Writer:
    """outside: the open file of external weights, or None. keep: inputs and outputs are NCHW."""

    def __init__(self, graph: Graph, packing: Packing, products: bool, outside: BinaryIO | None = None,
                 keep: bool = True) -> None:
        self.graph, self.packing, self.products, self.outside, self.keep = graph, packing, products, outside, keep
        self.outside_bytes = 0

    def net(self) -> dict[str, Any]:
        graph = self.graph
        names: dict[str, int] = {}
        net: dict[str, Any] = {
            "bizCode": "MNN", "sourceType": "ONNX", "mnn_uuid": str(uuid.uuid4()),
            **{k: v for k, v in graph.extra.items() if k in KEPT},
            "oplists": self.body(graph, names),
            "outputName": tuple(o.name for o in graph.outputs),
        }
        same: dict[str, list[str]] = {name: [name] for name in names}
        for made, name in self.twins.items():
            same.setdefault(name, []).append(made)
        described = [{**{k: v for k, v in d.items() if k != "tensor"}, "index": names[n]}
                     for d in graph.extra.get("extraTensorDescribe", ()) for n in same.get(d["tensor"], ()) if n in names]
        if graph.subgraphs:
            net["subgraphs"] = tuple(self.subgraph(name, graph.subgraphs[name]) for name in _inner_first(graph))
        if described:
            net["extraTensorDescribe"] = tuple(described)
        net["tensorName"] = tuple(names)
        named = {"name": graph.extra["authCode"]} if "authCode" in graph.extra else {}
        net["extraInfo"] = {**named, "version": graph.extra.get("version", VERSION), "buffer": self.metadata()}
        return net

    def metadata(self) -> np.ndarray:
        declared = {"inputs": {i.name: _declared(i, False) for i in self.graph.inputs},
                    "outputs": {o.name: _declared(o, True) for o in self.graph.outputs}}
        every = {**self.graph.metadata, INTERFACE: json.dumps(declared, separators=(",", ":"))}
        table = {"type": "Meta", "engine": "MNN", "attr": tuple({"key": k, "s": v} for k, v in every.items())}
        return np.frombuffer(Encoder().finish("Extra", table), np.int8)

    def subgraph(self, name: str, sub: Graph) -> dict[str, Any]:
        names: dict[str, int] = {}
        nodes = self.body(sub, names)

        def index(tensor: str) -> int:
            return names.setdefault(tensor, len(names))

        inputs = tuple(index(i.name) for i in sub.inputs)
        outputs = tuple(index(o.name) for o in sub.outputs)
        return {"name": name, "inputs": inputs, "outputs": outputs, "tensors": tuple(names), "nodes": nodes}

    def body(self, graph: Graph, names: dict[str, int]) -> tuple[dict[str, Any], ...]:
        """The ops of one graph as tables; `names` gets an index for each tensor."""
        graph = for_mnn(graph)
        if self.packing.bits:
            graph = quantized_recurrent(graph, self.packing)
        graph = as_convolutions(graph, self.products)

        def index(name: str) -> int:
            return -1 if not name else names.setdefault(name, len(names))

        nodes = []
        keep = self.keep or graph.inputs is not self.graph.inputs  # subgraphs go by NCHW
        images = () if keep else blocked_inputs(graph)
        for info in graph.inputs:
            layout = "NC4HW4" if info.name in images else "NCHW"
            main: dict[str, Any] = {"dtype": dtype_name(_computed(info)), "dformat": layout}
            if info.shape:
                main["dims"] = tuple(-1 if d is None else d for d in info.shape)
            nodes.append({"type": "Input", "name": info.name, "outputIndexes": (index(info.name),), "main_type": "Input",
                          "main": main})
        formatted, twins = to_formats(graph, keep)
        ops = [self.node(op, graph) for op in formatted]
        fresh = Names(n for _, inputs, outputs in ops for n in (*inputs, *outputs)).fresh
        read = {n for _, inputs, _ in ops for n in inputs} | {o.name for o in graph.outputs}
        for name, constant in graph.constants.items():
            if name in read:
                nodes.append(self.constant(name, constant, index(name)))
        for node, inputs, outputs in ops:
            node["inputIndexes"] = tuple(index(n) for n in inputs)
            # An output that nobody wants needs a tensor all the same.
            node["outputIndexes"] = tuple(index(n or fresh(f"{node['name']}.unused")) for n in outputs)
            nodes.append(node)
        for info in graph.outputs:
            index(info.name)
        self.twins = twins
        return tuple(nodes)

    def constant(self, name: str, constant: Constant, index: int) -> dict[str, Any]:
        blob = blob_of(self.packing.constant(constant), name)
        release(constant)
        if self.outside is not None and np.prod(constant.shape, dtype=np.int64) > _EXTERNAL_FROM:
            where = next((k for k in ("float32s", "int32s") if k in blob), None)  # MNN loads no others from there
            if where is not None:
                blob["external"] = self.put([blob.pop(where)])
        return {"type": "Const", "name": name, "outputIndexes": (index,), "main_type": "Blob", "main": blob}

    def put(self, arrays: list[np.ndarray | None]) -> tuple[int, ...]:
        """Appends arrays to the external file; returns (offset, sizes in bytes ...)."""
        assert self.outside is not None
        start, sizes = self.outside_bytes, []
        for array in arrays:
            sizes.append(0 if array is None else array.nbytes)
            if array is not None and array.size:
                self.outside.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
                release(array)
        self.outside_bytes += sum(sizes)
        return (start, *sizes)

    def node(self, op: Op, graph: Graph) -> tuple[dict[str, Any], list[str], list[str]]:
        """An op as its table (without tensor indices), and the tensors that it reads and writes."""
        node: dict[str, Any] = {"name": op.name or (op.outputs[0] if op.outputs else op.type), "defaultDimentionFormat": "NCHW"}
        if op.type.startswith("Unknown<"):
            return {**node, "type": int(op.type[8:-1]), **self.main(op.param, op.attrs)}, op.inputs, op.outputs
        if op.type == "Raster" and "regions" in op.attrs:
            sources, table = extras.raster_of(op["regions"], op["shape"], op["fill"])
            kind = "Extra" if table["type"] else "Raster"
            inputs = [op.inputs[i] for i in sources] or op.inputs[:1]
            return {**node, "type": kind, "main_type": "Extra", "main": table}, inputs, op.outputs
        if op.type == "Where":  # without a table, MNN returns a row for every element
            return {**node, "type": "Where", "main_type": "Extra", "main": {}}, op.inputs, op.outputs
        param, attrs, fits = parameters(op)
        weights = put_weights(self.packed(op, graph), self.stored, param or "") if fits else None
        if weights is None:
            engine, _, kind = op.type.rpartition(".")
            table = extras.extra_of(engine or extras.ENGINE, kind, attrs)
            return {**node, "type": "Extra", "main_type": "Extra", "main": table}, op.inputs, op.outputs
        stored, inputs = weights
        if op.type == "ScatterElements" and param == "BinaryOp":
            attrs.setdefault("opType", -1)
        if self.outside is not None and param:
            stored = self.moved(param, stored)
        return {**node, "type": op.type, **self.main(param, {**attrs, **stored})}, inputs, op.outputs

    def packed(self, op: Op, graph: Graph) -> Op:
        """Sets `self.stored` to a graph of the op's constants, its convolution weight packed as asked for."""
        constants = {n: graph.constants[n] for n in op.inputs[1:] if n in graph.constants}
        if op.type in CONVOLUTIONS and len(op.inputs) > 1 and op.inputs[1] in constants and "3D" not in op.type:
            weight = constants[op.inputs[1]]
            plain = (weight.packed() or weight.decode()) if isinstance(weight, Columns) else weight
            constants[op.inputs[1]] = packed = self.packing.weight(plain, op.name or op.inputs[1])
            if packed is not weight:
                release(weight.matrix if isinstance(weight, Columns) else weight)
        self.stored = Graph(constants=constants)
        return op

    def moved(self, param: str, stored: dict[str, Any]) -> dict[str, Any]:
        """Fields with their weights moved to the external file."""
        stored = dict(stored)
        if param in ("Convolution2D", "Convolution3D") and ("weight" in stored or "quanParameter" in stored):
            bias = stored.pop("bias")
            if "weight" in stored:
                stored["external"] = self.put([stored.pop("weight"), bias])
            else:
                quan = dict(stored["quanParameter"])
                scales = quan.pop("alphaFp16" if quan.get("scaleStorage") == "FP16" else "alpha", None)
                stored["external"] = self.put([quan.pop("buffer", None), scales, bias, quan.pop("index", None)])
                stored["quanParameter"] = quan
        elif param in ("Scale", "LayerNorm", "GroupNorm"):
            pair = ("scaleData", "biasData") if param == "Scale" else ("gamma", "beta")
            if all(k in stored for k in pair):
                stored["external"] = self.put([stored.pop(k) for k in pair])
        return stored

    @staticmethod
    def main(param: str | None, values: Mapping[str, Any]) -> dict[str, Any]:
        """main_type and main of an op's table."""
        if param in _NO_TABLE or param not in schema.PARAMETERS:
            return {"main_type": "NONE"}
        if param in ("Convolution2D", "Convolution3D"):
            inner = {f.name for f in schema.TABLES[f"{param}Common"]}
            values = {**{k: v for k, v in values.items() if k not in inner},
                      "common": {k: v for k, v in values.items() if k in inner}}
        kept = {k: v for k, v in values.items() if not isinstance(v, tuple) or v or (param, k) in _READ_UNASKED}
        return {"main_type": param, "main": kept}


def _inner_first(graph: Graph) -> list[str]:
    """Names of the subgraphs, each after those that it uses: MNN builds them in the order of the file."""
    found: dict[str, None] = {}
    pending = [(name, False) for name in reversed(graph.subgraphs)]
    while pending:
        name, entered = pending.pop()
        if entered or name in found or name not in graph.subgraphs:
            if entered:
                found[name] = None
            continue
        used = [op.attrs.get(k) for op in graph.subgraphs[name].ops for k in _BODIES]
        pending += [(name, True), *((n, False) for n in used if n and n != name)]
    return list(found)


def _computed(info: TensorInfo) -> np.dtype:
    return OBJECT if info.kind != "tensor" else stored_dtype(info.dtype or np.dtype(np.float32))


def _declared(info: TensorInfo, with_shape: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if info.dtype is not None:
        found["dtype"] = info.dtype.name
    if info.kind != "tensor":
        found["kind"] = info.kind
    if any(info.dim_names):
        found["dim_names"] = info.dim_names
    if with_shape and info.shape is not None:
        found["shape"] = info.shape
    return found


