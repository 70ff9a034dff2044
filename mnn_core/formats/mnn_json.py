"""MNN's own JSON form of a model: the tables of its file as FlatBuffers' tools print them, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelFormatError
from ..ir.schema import PARAMETERS, TABLES, Field
from .tables import DATA_TABLES, Decoder


def dump(source: str | Path | bytes) -> str:
    """A `.mnn` file as MNN's JSON text. Raises ModelFormatError for a damaged file."""
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    name = "model" if isinstance(source, bytes) else Path(source).name
    return json.dumps(_plain(Decoder(data, name).root("Net")), indent=1, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype == np.float32:  # the shortest decimal that is the same float
            return [float(np.format_float_scientific(v)) if np.isfinite(v) else float(v) for v in value]
        return value.tolist()
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return value


def tables_of(data: Mapping[str, Any], table: str = "Net", where: str = "JSON") -> dict[str, Any]:
    """A table in JSON form as the Decoder gives it. Raises ModelFormatError for what the schema does not have."""
    fields = {f.name: f for f in TABLES[table]}
    found: dict[str, Any] = {}
    for key, value in data.items():
        if key not in fields:
            raise ModelFormatError(f"{where}: MNN's table {table} has no field {key!r}")
        found[key] = _value(table, fields[key], value, data, f"{where}.{key}")
    return found


def _value(table: str, field: Field, value: Any, data: Mapping[str, Any], where: str) -> Any:
    if not isinstance(value, dict) and field.kind in ("table", "union_value"):
        raise ModelFormatError(f"{where} is {value!r}; expected a table")
    if field.kind == "table":
        return tables_of(value, field.type, where)
    if field.kind == "union_value":
        kind = data.get(f"{field.name}_type")
        if not isinstance(kind, str) or kind not in PARAMETERS:
            raise ModelFormatError(f"{where}: its {field.name}_type {kind!r} is no table of MNN")
        return tables_of(value, kind, where)
    if field.kind == "vector_of_table":
        return tuple(tables_of(v, field.type, f"{where}[{i}]") for i, v in enumerate(value))
    if field.kind in ("vector_of_string", "vector_of_enum"):
        return tuple(value)
    if field.kind == "vector_of_scalar":
        if field.scalar in ("int32", "int64") and (table not in DATA_TABLES or field.name in ("dims", "external")):
            return tuple(int(v) for v in value)
        return np.array(value, field.scalar)
    return value
