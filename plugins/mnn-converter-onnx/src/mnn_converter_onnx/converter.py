"""The converter: an ONNX file, its bytes or a ModelProto becomes a Graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

from mnn_core import ConversionError, Converter, Graph, GraphError, ModelFormatError, plugins
from mnn_core.converter import Reference
from mnn_core.errors import NarrowingWarning, warn
from mnn_core.ops import all_ops

from . import graphs, rules
from .builder import Builder
from .context import Context
from .ops import load_rules
from .scope import Scope

#: Operator sets that are tested.
_OPSETS = (7, 23)


class OnnxConverter(Converter):
    """Reads ONNX models of operator sets 7 to 23."""

    id = "onnx"
    extensions = (".onnx",)

    def load(self, source: str | Path | bytes | Any, **options: Any) -> Graph:
        """Reads an `.onnx` file, its bytes, or an onnx.ModelProto.

        options: allow_custom_op=True keeps operators that nobody knows; folder=PATH: where the external data of a model
        given as bytes or ModelProto lies; for_training=True keeps batch normalisations and Dropout. Raises ModelFormatError and
        ConversionError.
        """
        load_rules()
        plugins.load_ops()
        model, folder = _read(source)
        folder = Path(options["folder"]) if options.get("folder") is not None else folder
        try:
            return _convert(model, folder, bool(options.get("allow_custom_op")), bool(options.get("for_training")))
        except GraphError as error:
            raise ModelFormatError(f"the model makes no consistent graph: {error}") from error

    def operators(self) -> Mapping[str, str]:
        load_rules()
        return rules.table()

    def describe(self) -> list[dict[str, str]]:
        from .describe import rows

        load_rules()
        plugins.load_ops()
        return rows()

    def reference(self, source: str | Path | bytes | Any, every: bool = True) -> Reference:
        from .reference import OnnxRuntime

        return OnnxRuntime(source, every)


def _read(source: Any) -> tuple[onnx.ModelProto, Path | None]:
    if isinstance(source, onnx.ModelProto):
        return source, None
    folder = None
    if isinstance(source, (bytes, bytearray, memoryview)):
        data, label = bytes(source), "the ONNX model"
    else:
        path = Path(source)
        data, folder, label = path.read_bytes(), path.parent, str(path)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:  # protobuf's DecodeError, whose class depends on its implementation
        raise ModelFormatError(f"{label} is no ONNX model, or is damaged: {error}") from error
    if _has_broken_text(model):
        raise ModelFormatError(f"{label} is damaged: it has names that are not UTF-8")
    if not model.HasField("graph") or not model.graph.output:
        raise ModelFormatError(f"{label} is no ONNX model, or is damaged: it has no graph with outputs ({len(data)} bytes)")
    return model, folder


def _has_broken_text(message: Any) -> bool:
    """Whether a string anywhere in a message is not UTF-8; protobuf gives such strings as bytes."""
    for field, value in message.ListFields():
        if field.type not in (field.TYPE_STRING, field.TYPE_MESSAGE):
            continue
        several = [value] if isinstance(value, (str, bytes)) or hasattr(value, "ListFields") else value
        if any(isinstance(v, bytes) if field.type == field.TYPE_STRING else _has_broken_text(v) for v in several):
            return True
    return False


def _convert(model: onnx.ModelProto, folder: Path | None, allow_custom_op: bool, for_training: bool = False) -> Graph:
    opsets = {("" if o.domain == "ai.onnx" else o.domain): int(o.version) for o in model.opset_import}
    if not opsets:
        raise ModelFormatError("the model imports no operator set; it is damaged, or older than ONNX 1.0")
    version = opsets.get("")
    if version is not None and not 1 <= version <= onnx.defs.onnx_opset_version():
        raise ConversionError(f"the model uses operator set {version} of ONNX; supported: {_OPSETS[0]} to {_OPSETS[1]}"
                              " (export it again with a lower opset_version, or upgrade the onnx package)")
    graph = Graph(name=model.graph.name)
    context = Context(model, folder, graph, allow_custom_op, opsets=opsets, for_training=for_training)
    context.custom = {_split(d.onnx): name for name, d in all_ops().items() if d.onnx}
    context.functions = {("" if f.domain == "ai.onnx" else f.domain, f.name): f for f in model.functions}
    context.taken = {n for node in model.graph.node for n in node.output}
    context.taken |= {i.name for i in (*model.graph.input, *model.graph.output)} | {t.name for t in model.graph.initializer}
    scope = Scope(Builder(context, graph))
    graphs.add_constants(model.graph, scope)
    graphs.add_inputs(model.graph, scope)
    graphs.add_nodes(model.graph.node, [o.name for o in model.graph.output], scope)
    context.finish()
    graphs.add_outputs(model.graph, scope)
    graph.metadata = {p.key: p.value for p in model.metadata_props}
    graph.extra["sourceType"] = "ONNX"
    _tidy(graph)
    _warn_of_narrowing(graph, context.narrowed)
    graph.check()
    return graph


#: Inputs that are an upper bound of how many there can be: turns of a loop, boxes to select.
_COUNTS = {"While": 0, "NonMaxSuppressionV2": 2}


def _warn_of_narrowing(graph: Graph, narrowed: list[str]) -> None:
    """Tells which constants lost values, but for bounds of slices and counts, which mean all that there are either way."""
    read = {n for g in (graph, *graph.subgraphs.values()) for op in g.ops if op.type not in ("StridedSlice", "Slice")
            for i, n in enumerate(op.inputs) if i != _COUNTS.get(op.type)}
    read |= {o.name for g in (graph, *graph.subgraphs.values()) for o in g.outputs}
    lost = [n for n in narrowed if n in read]
    if lost:
        warn(f"integers are computed as int32 and floats as float32; these constants hold larger numbers, which became the "
             f"nearest that there are: {', '.join(map(repr, lost[:5]))}{', ...' if len(lost) > 5 else ''}", NarrowingWarning)


def _split(onnx_name: str) -> tuple[str, str]:
    domain, _, name = onnx_name.rpartition(".")
    return domain, name


def _tidy(graph: Graph) -> None:
    """Drops constants that nothing reads."""
    for g in (graph, *graph.subgraphs.values()):
        used = {n for op in g.ops for n in op.inputs} | {o.name for o in g.outputs}
        g.constants = {n: c for n, c in g.constants.items() if n in used}
