"""`.mnn` file -> Graph."""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import GraphError, MNNError, ModelFormatError
from ..ir import Graph, Op, TensorInfo, schema
from ..ir.dtypes import NUMPY_OF, named_dtype, stored_dtype
from . import extra as extras
from .blobs import constant_of, shape_of
from .external import ExternalFile
from .layouts import to_logical
from .names import Names
from .op_weights import take_weights
from .products import from_convolutions
from .tables import Decoder

INTERFACE = "mnn_core.interface"

#: Fields of Net that are kept for saving, beside those that become parts of the Graph.
KEPT = ("bizCode", "mnn_uuid", "sourceType", "usage", "preferForwardType")


def read_mnn(source: str | Path | bytes, name: str | None = None) -> Graph:
    """Reads a `.mnn` file, or its bytes.

    Files are memory-mapped; weights stay packed until they are needed. Every offset and length is checked before it is used.
    Raises ModelFormatError for a damaged file (also for external weights outside of its folder) and OSError if it cannot
    be opened.
    """
    path = None if isinstance(source, (bytes, bytearray, memoryview)) else Path(source)
    name = name or (path.name if path else "model")
    if path is None:
        buffer: Any = source
    else:
        with open(path, "rb") as file:
            try:
                buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except ValueError as error:  # an empty file cannot be mapped
                raise ModelFormatError(f"{name}: the file is empty") from error
    try:
        decoder = Decoder(buffer, name)
        if decoder.size < 8 or decoder.size % 4:  # FlatBuffers are padded to whole words
            raise decoder.fail(f"it has {decoder.size} bytes; a whole file has a multiple of 4")
        return read_tables(decoder.root("Net"), name, path)
    except MNNError as error:
        if isinstance(error, ModelFormatError):
            raise
        raise ModelFormatError(f"{name}: {error}") from error


def read_tables(net: Mapping[str, Any], name: str, path: Path | None) -> Graph:
    """A graph from the root table of a file, as the Decoder gives it."""
    if "oplists" not in net or "tensorName" not in net:
        raise ModelFormatError(f"{name}: not a valid model file: it has no list of ops or tensors")
    return _Reader(net, name, path).graph()


#: What an interface can declare beside tensors.
_KINDS = ("tensor", "sequence", "optional", "map")


class _Reader:
    def __init__(self, net: Mapping[str, Any], name: str, path: Path | None) -> None:
        self.net, self.name = net, name
        self.external = ExternalFile(path, name)

    def graph(self) -> Graph:
        net = self.net
        graph = self.body(net["oplists"], net["tensorName"], self.name)
        graph.subgraphs = {}
        for sub in net.get("subgraphs", ()):
            tensors = self.unique(sub.get("tensors", ()))
            body = self.body(sub.get("nodes", ()), sub.get("tensors", ()), sub.get("name", ""))
            body.name = sub.get("name", "")
            by_name = {i.name: i for i in body.inputs}
            inputs = [self.pick(tensors, i, f"an input of subgraph {body.name!r}") for i in sub.get("inputs", ())]
            body.inputs = [by_name.get(n) or TensorInfo(n, None, None) for n in inputs] or body.inputs
            body.outputs = [TensorInfo(self.pick(tensors, i, f"an output of subgraph {body.name!r}"), None, None)
                            for i in sub.get("outputs", ())]
            graph.subgraphs[body.name] = body
        known = set(graph.tensor_names())
        names = net.get("outputName") or self.derived_outputs(graph)
        for output in names:
            if output not in known:
                raise ModelFormatError(f"{self.name}: its output {output!r} is no tensor of it")
        graph.outputs = [TensorInfo(n, None, None) for n in names]
        for part in graph.subgraphs.values():
            to_logical(part)
        self.extra(graph, to_logical(graph))
        for part in (graph, *graph.subgraphs.values()):
            from_convolutions(part)
        try:
            graph.check()
        except GraphError as error:
            raise ModelFormatError(f"{self.name}: {error}") from error
        return graph

    @staticmethod
    def derived_outputs(graph: Graph) -> list[str]:
        used = {n for op in graph.ops for n in op.inputs}
        return [n for op in graph.ops for n in op.outputs if n and n not in used]

    @staticmethod
    def unique(names: tuple[str, ...]) -> list[str]:
        """Tensor names by index; equal or empty ones are told apart by their index."""
        found: list[str] = []
        seen: set[str] = set()
        for i, name in enumerate(names):
            own = name if name and name not in seen else f"{name or 'tensor'}#{i}"
            seen.add(own)
            found.append(own)
        return found

    def pick(self, tensors: list[str], index: int, what: str) -> str:
        if not 0 <= index < len(tensors):
            raise ModelFormatError(f"{self.name}: {what} is tensor {index} of {len(tensors)}")
        return tensors[index]

    def body(self, nodes: tuple[Mapping[str, Any], ...], names: tuple[str, ...], where: str) -> Graph:
        graph = Graph(name=where)
        tensors = self.unique(names)
        own = Names(tensors)
        for number, node in enumerate(nodes):
            kind = node.get("type", "AbsVal")
            label = node.get("name") or f"op {number}"
            outputs = [self.pick(tensors, i, f"an output of {label}") for i in node.get("outputIndexes", ())]
            inputs = ["" if i == -1 else self.pick(tensors, i, f"an input of {label}") for i in node.get("inputIndexes", ())]
            if kind in ("Input", "Const", "TrainableParam") and not outputs:
                raise ModelFormatError(f"{self.name}: {label} ({kind}) has no output")
            if kind == "Input":
                graph.inputs.append(self.input(node.get("main", {}), outputs[0], graph))
            elif kind in ("Const", "TrainableParam"):
                graph.constants[outputs[0]] = self.constant(node, outputs[0])
            else:
                graph.ops.append(self.op(node, kind, inputs, outputs, graph, own))
        return graph

    def input(self, main: Mapping[str, Any], name: str, graph: Graph) -> TensorInfo:
        dims = shape_of(tuple(max(d, 0) for d in main.get("dims", ())), name)
        kind = main.get("dtype", "DT_FLOAT")
        if kind not in NUMPY_OF:
            raise ModelFormatError(f"{self.name}: input {name!r} has the type {kind}, which is not supported")
        graph.extra.setdefault("formats", {})[name] = main.get("dformat", "NC4HW4")
        shape = tuple(None if d < 0 else dims[i] for i, d in enumerate(main.get("dims", ())))
        return TensorInfo(name, stored_dtype(NUMPY_OF[kind]), shape)

    def constant(self, node: Mapping[str, Any], name: str) -> Any:
        blob = node.get("main", {})
        if node.get("main_type") not in ("Blob", None):
            raise ModelFormatError(f"{self.name}: constant {name!r} holds a {node['main_type']}, not a Blob")
        outside = None
        if len(blob.get("external", ())) > 1:
            (outside, *_) = self.external.sections(blob["external"], node.get("externalPath"), name)
        return constant_of(blob, f"{self.name}: {name}", outside)

    def op(self, node: Mapping[str, Any], kind: str | int, inputs: list[str], outputs: list[str], graph: Graph,
           names: Names) -> Op:
        table = node.get("main_type", "NONE")
        main = dict(node.get("main", {}))
        op = Op(kind if isinstance(kind, str) else f"Unknown<{kind}>", inputs, outputs, name=node.get("name", ""))
        tag = node.get("defaultDimentionFormat", "NHWC")
        graph.extra.setdefault("tags", {})[outputs[0] if outputs else ""] = tag
        if kind == "Extra" and table == "Extra":
            own = f"{main.get('engine', '')}.{main.get('type', '')}".removeprefix(f"{extras.ENGINE}.")
            if own == "Raster":
                kind, op.type = own, own
            elif schema.attributes(own) is not None:
                return replace(op, type=own, attrs=extras.attributes_of(main))
        if kind == "Raster":
            if table == "NONE":  # a plain copy
                return replace(op, type="Identity", inputs=inputs[:1])
            return _raster(op, extras.regions_of(main, f"{self.name}: {op}"))
        if table != "NONE":
            common = main.pop("common", {}) if table in ("Convolution2D", "Convolution3D") else {}
            op.attrs = {**common, **main}
            op.param = None if schema.parameter_table(op.type) == table else table
            take_weights(op, table, graph, names, self.external, node.get("externalPath"), self.name)
            if op.type in ("ScatterNd", "ScatterElements"):
                op.attrs.setdefault("opType", "ADD")  # the table's default; ours is to replace
        elif op.type == "UnaryOp":
            op.type = "Identity"
        return op

    def extra(self, graph: Graph, renamed: Mapping[str, str]) -> None:
        """Metadata, the declared interface, and what is only kept."""
        net, tensors = self.net, self.unique(self.net["tensorName"])
        graph.extra.update({k: net[k] for k in KEPT if k in net})
        graph.name = self.name
        if net.get("extraTensorDescribe"):
            described: dict[str, dict[str, Any]] = {}
            for entry in net["extraTensorDescribe"]:
                tensor = self.pick(tensors, entry.get("index", 0), "a described tensor")
                tensor = renamed.get(tensor, tensor)
                described.setdefault(tensor, {**entry, "tensor": tensor})
            graph.extra["extraTensorDescribe"] = list(described.values())
        info = net.get("extraInfo", {})
        if "version" in info:
            graph.extra["version"] = info["version"]
        if info.get("name"):
            graph.extra["authCode"] = info["name"]
        if len(info.get("buffer", ())):
            nested = Decoder(np.ascontiguousarray(info["buffer"]).view(np.uint8), f"{self.name}: metadata").root("Extra")
            graph.metadata = {a.get("key", ""): a.get("s", "") for a in nested.get("attr", ())}
        declared = graph.metadata.pop(INTERFACE, None)
        if declared is not None:
            self.interface(graph, declared)
        else:  # mnnconvert writes an unknown batch as 1
            graph.inputs = [replace(i, shape=(None, *i.shape[1:])) if i.shape and i.shape[0] == 1 else i for i in graph.inputs]

    def interface(self, graph: Graph, text: str) -> None:
        """Declared dtypes and dimension names, as our writer stored them."""
        try:
            declared = json.loads(text)
            for infos, key in ((graph.inputs, "inputs"), (graph.outputs, "outputs")):
                for i, info in enumerate(infos):
                    entry = declared[key].get(info.name)
                    if entry is not None:
                        infos[i] = self.declared(info, entry, key == "outputs")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ModelFormatError(f"{self.name}: its metadata {INTERFACE!r} is damaged: {error}") from error

    @staticmethod
    def declared(info: TensorInfo, entry: Mapping[str, Any], with_shape: bool) -> TensorInfo:
        """An input or output as declared in an entry of the interface."""
        dtype, shape = info.dtype, info.shape
        if entry.get("dtype"):
            dtype = named_dtype(str(entry["dtype"]))
        kind = entry.get("kind", "tensor")
        if kind not in _KINDS:
            raise ValueError(f"unknown kind {kind!r}")
        if with_shape:
            shape = None if entry.get("shape") is None else tuple(entry["shape"])
            if shape is not None and not all(d is None or (isinstance(d, int) and 0 <= d < 2**31) for d in shape):
                raise ValueError(f"impossible shape {entry['shape']}")
        dim_names = tuple(entry.get("dim_names", ()))
        if not all(d is None or isinstance(d, str) for d in dim_names):
            raise ValueError(f"dimension names {dim_names}")
        return TensorInfo(info.name, dtype, shape if kind == "tensor" else None, dim_names, kind)


def _raster(op: Op, attrs: dict[str, Any]) -> Op:
    """A Raster op with each of its inputs once; files have one for each region."""
    inputs = list(dict.fromkeys(op.inputs))
    regions = tuple(replace(r, source=inputs.index(op.inputs[r.source])) if r.source < len(op.inputs) else r
                    for r in attrs["regions"])
    return replace(op, inputs=inputs, attrs={**attrs, "regions": regions})
