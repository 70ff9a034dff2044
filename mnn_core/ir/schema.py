"""Attribute schemas: which attributes an op type has, with types and defaults.

The op vocabulary is MNN's. An op's attributes are the fields of its parameter table in MNN's schema, under MNN's
names; enums are held as member names ("MAXPOOL"), integer vectors as tuples, float and byte vectors as arrays, tables as
dicts. Convolution tables are flattened: the fields of their `common` table stand beside the rest. Fields that hold
weights are not attributes but constant inputs of the op (see formats/); they are listed in WEIGHT_FIELDS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._schema import ENUMS, PARAMETERS, TABLES, Field

#: OpType name -> number in MNN files.
OP_NUMBERS: Mapping[str, int] = ENUMS["OpType"]
OP_NAMES: Mapping[int, str] = {number: name for name, number in OP_NUMBERS.items()}

#: Fields of parameter tables that become constant inputs instead of attributes.
WEIGHT_FIELDS: Mapping[str, frozenset[str]] = {
    "Convolution2D": frozenset({"weight", "bias", "quanParameter", "external"}),
    "Convolution3D": frozenset({"weight", "bias", "external"}),
    "Scale": frozenset({"scaleData", "biasData", "external"}),
    "LayerNorm": frozenset({"gamma", "beta", "external"}),
    "GroupNorm": frozenset({"gamma", "beta", "external"}),
    "PRelu": frozenset({"slope"}),
}

_ZERO = {"bool": False, "float32": 0.0, "float64": 0.0}


@dataclass(frozen=True)
class Attr:
    """One attribute: its default, and the schema field it is stored in (None for custom ops)."""

    default: Any
    field: Field | None = None


def _default(f: Field) -> Any:
    if f.kind == "enum":
        if f.default is not None and not isinstance(f.default, int):
            return f.default
        members = ENUMS[f.type]
        return next((name for name, number in members.items() if number == (f.default or 0)), f.default or 0)
    if f.kind == "scalar":
        return _ZERO.get(f.scalar, 0) if f.default is None else f.default
    if f.kind in ("vector_of_scalar", "vector_of_enum", "vector_of_string", "vector_of_table"):
        return ()
    return None


def table_attributes(table: str) -> dict[str, Attr]:
    """Attributes of a parameter table, convolution `common` flattened and weight fields left out."""
    hidden = WEIGHT_FIELDS.get(table, frozenset())
    found: dict[str, Attr] = {}
    for f in TABLES[table]:
        if f.name == "common" and f.kind == "table":
            found.update(table_attributes(f.type))
        elif f.name not in hidden and f.kind != "union_type":
            found[f.name] = Attr(_default(f), f)
    return found


_attributes: dict[str, Mapping[str, Attr]] = {}
_parameters: dict[str, str | None] = {}


def declare(op_type: str, param: str | None, attributes: Mapping[str, Any] | None = None) -> None:
    """Declares the attributes of an op type: those of an MNN parameter table, and further ones, name -> default.

    A further attribute that the table has too is stored there, but has its own default where it is not set: one that differs
    from the table's must be written to files, and set when a file is read that leaves it out.
    """
    found = table_attributes(param) if param else {}
    stored = {name: attr.field for name, attr in found.items()}
    found.update({name: Attr(default, stored.get(name)) for name, default in (attributes or {}).items()})
    _attributes[op_type], _parameters[op_type] = found, param


def attributes(op_type: str) -> Mapping[str, Attr] | None:
    """Declared attributes of an op type; None if no definition of it was loaded."""
    return _attributes.get(op_type)


def parameter_table(op_type: str) -> str | None:
    """The MNN parameter table in which an op type keeps its attributes (None: it has none, or is unknown)."""
    return _parameters.get(op_type)


__all__ = ["ENUMS", "OP_NAMES", "OP_NUMBERS", "PARAMETERS", "TABLES", "WEIGHT_FIELDS", "Attr", "Field", "attributes",
           "declare", "parameter_table", "table_attributes"]
