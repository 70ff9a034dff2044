"""A graph as JSON, and back. Lossless: weights are there as base64, in the form in which they are stored."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import MNNError, ModelFormatError
from ..ir import Graph, Op, Region, TensorInfo
from .weights import HalfConstant, QuantizedWeight
from .whole import write_text


def write_json(graph: Graph, path: str | Path | None = None) -> str:
    """A graph as JSON text; written to a file as well if a path is given."""
    text = json.dumps(_graph(graph), indent=1, ensure_ascii=False)
    if path is not None:
        write_text(path, text)
    return text


def read_json(source: str | Path) -> Graph:
    """A graph from a JSON file (Path) or JSON text (str), of this form or MNN's own.

    Raises ModelFormatError for text of another kind.
    """
    text = source.read_text(encoding="utf-8", errors="surrogateescape") if isinstance(source, Path) else source
    try:
        data = json.loads(text)
        if isinstance(data, dict) and "oplists" in data:
            from .mnn_json import tables_of
            from .reader import read_tables

            return read_tables(tables_of(data), source.name if isinstance(source, Path) else "JSON",
                               source if isinstance(source, Path) else None)
        return _read_graph(data)
    except MNNError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError, IndexError) as error:
        name = source.name if isinstance(source, Path) else "JSON"
        raise ModelFormatError(f"{name}: not a model in JSON form: {error!r}") from error


def _info(info: TensorInfo) -> dict[str, Any]:
    return {"name": info.name, "dtype": info.dtype.name if info.dtype is not None else None, "shape": info.shape,
            "dim_names": info.dim_names}


def _graph(graph: Graph) -> dict[str, Any]:
    return {
        "name": graph.name,
        "inputs": [_info(i) for i in graph.inputs],
        "outputs": [_info(o) for o in graph.outputs],
        "ops": [{"type": op.type, "name": op.name, "inputs": op.inputs, "outputs": op.outputs,
                 **({"param": op.param} if op.param else {}), "attrs": _value(op.attrs)} for op in graph.ops],
        "constants": {name: _value(value) for name, value in graph.constants.items()},
        "subgraphs": {name: _graph(sub) for name, sub in graph.subgraphs.items()},
        "metadata": graph.metadata,
        "extra": _value(graph.extra),
    }


def _value(value: Any) -> Any:
    """A value as JSON; what JSON lacks becomes an object with one key that begins with $."""
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"$array": {"dtype": value.dtype.str, "shape": value.shape, "data": data}}
    if isinstance(value, HalfConstant):
        return {"$half": {"shape": value.shape, "kind": value.kind, "raw": _value(value.raw)}}
    if isinstance(value, QuantizedWeight):
        return {"$quantized": {"shape": value.shape, "name": value.name, "quan": _value(dict(value.quan))}}
    if isinstance(value, Region):
        return {"$region": asdict(value)}
    if isinstance(value, dict):
        return {k: _value(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return {"$tuple": [_value(v) for v in value]}
    if isinstance(value, list):
        return [_value(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value


def _read_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_read_value(v) for v in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((key, inner),) = value.items()
        if key == "$array":
            return np.frombuffer(base64.b64decode(inner["data"]), np.dtype(inner["dtype"])).reshape(inner["shape"])
        if key == "$half":
            return HalfConstant(tuple(inner["shape"]), _read_value(inner["raw"]), inner["kind"])
        if key == "$quantized":
            made = QuantizedWeight(tuple(inner["shape"]), _read_value(inner["quan"]), inner["name"])
            made.check()
            return made
        if key == "$region":
            fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in inner.items()}
            return Region(**fields)
        if key == "$tuple":
            return tuple(_read_value(v) for v in inner)
    return {k: _read_value(v) for k, v in value.items()}


def _read_info(info: dict[str, Any]) -> TensorInfo:
    shape = info["shape"]
    return TensorInfo(info["name"], np.dtype(info["dtype"]) if info["dtype"] else None, None if shape is None else tuple(shape),
                      tuple(info.get("dim_names", ())))


def _read_graph(data: dict[str, Any]) -> Graph:
    return Graph(
        ops=[Op(op["type"], list(op["inputs"]), list(op["outputs"]), _read_value(op["attrs"]), op["name"], op.get("param"))
             for op in data["ops"]],
        inputs=[_read_info(i) for i in data["inputs"]],
        outputs=[_read_info(o) for o in data["outputs"]],
        constants={name: _read_value(v) for name, v in data["constants"].items()},
        subgraphs={name: _read_graph(sub) for name, sub in data["subgraphs"].items()},
        metadata=dict(data["metadata"]), extra=_read_value(data["extra"]), name=data["name"])
