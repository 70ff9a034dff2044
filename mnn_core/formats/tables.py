"""FlatBuffer tables to plain data, driven by the schema: no table has code of its own. The way back is in encoder.py.

Reading verifies everything before it is used: every offset, vtable, vector and string must lie inside the buffer and be
aligned, tables nest at most 64 deep, and no more is decoded than a buffer of that size can honestly hold: many offsets to one
place would make a small file large and slow. https://flatbuffers.dev/internals
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from ..errors import ModelFormatError
from ..ir.schema import ENUMS, PARAMETERS, TABLES, Field

MAX_DEPTH = 64
MAX_TABLES = 1_000_000

_SCALARS = {"bool": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q",
            "uint64": "Q", "float32": "f", "float64": "d"}
STRUCTS = {name: struct.Struct("<" + code) for name, code in _SCALARS.items()}
_NAMES = {enum: {number: name for name, number in members.items()} for enum, members in ENUMS.items()}
_PARAMETER_NAMES = {number: name for name, number in PARAMETERS.items()}

#: Integer vectors of these tables are data, not attributes: they stay arrays.
DATA_TABLES = frozenset({"Blob", "IDSTQuan"})


class Decoder:
    """Decodes tables of one buffer into dicts that hold the fields that are present.

    Enums become member names (an unknown number stays a number), vectors of integers tuples, vectors of floats and bytes arrays
    that view the buffer, tables dicts, a union field its table with "<name>_type" beside it.
    """

    def __init__(self, buffer: Any, name: str) -> None:
        self.buffer, self.name = memoryview(buffer).cast("B"), name
        self.size = len(self.buffer)
        self.array = np.frombuffer(self.buffer, np.uint8)
        self.tables_left = min(MAX_TABLES, max(256, self.size // 8))
        self.bytes_left = 2 * self.size + 4096
        self.strings: dict[int, str] = {}

    def fail(self, what: str) -> ModelFormatError:
        return ModelFormatError(f"{self.name}: not a valid model file: {what}")

    def number(self, kind: str, at: int, what: str) -> Any:
        """A scalar at a position."""
        if at < 0 or at + STRUCTS[kind].size > self.size:
            raise self.fail(f"{what} at byte {at} lies outside of its {self.size} bytes")
        return STRUCTS[kind].unpack_from(self.buffer, at)[0]

    def root(self, table: str) -> dict[str, Any]:
        """The root table."""
        return self.table(table, self.number("uint32", 0, "the root offset"), table, 0)

    def table(self, table: str, at: int, where: str, depth: int) -> dict[str, Any]:
        """The table at a position."""
        if depth > MAX_DEPTH:
            raise self.fail(f"{where} is nested more than {MAX_DEPTH} deep")
        self.tables_left -= 1
        if self.tables_left < 0:
            raise self.fail("it refers to more tables than it can hold")
        vtable = at - self.number("int32", at, where)
        length = self.number("uint16", vtable, f"the vtable of {where}")
        extent = self.number("uint16", vtable + 2, f"the vtable of {where}")
        if length < 4 or length % 2 or vtable + length > self.size or extent < 4 or at + extent > self.size:
            raise self.fail(f"the vtable of {where} is damaged")
        self.spend(extent)
        found: dict[str, Any] = {}
        room = extent - 4
        for field in TABLES[table]:
            entry = 4 + 2 * field.slot
            offset = self.number("uint16", vtable + entry, where) if entry + 2 <= length else 0
            if offset:
                size = STRUCTS[field.scalar].size if field.kind in ("scalar", "enum", "union_type") else 4
                room -= size
                if offset + size > extent or room < 0:
                    raise self.fail(f"{where}.{field.name} lies outside of its table, or over another field")
                self.field(table, field, at + offset, where, depth, found)
        return found

    def field(self, table: str, field: Field, at: int, where: str, depth: int, found: dict[str, Any]) -> None:
        kind, name = field.kind, field.name
        where = f"{where}.{name}"
        if kind == "scalar":
            found[name] = self.number(field.scalar, at, where)
        elif kind == "enum":
            number = self.number(field.scalar, at, where)
            found[name] = _NAMES[field.type].get(number, number)
        elif kind == "union_type":
            number = self.number("uint8", at, where)
            if number not in _PARAMETER_NAMES:
                raise self.fail(f"{where} is {number}, which no version known here has; it was written by a newer one")
            found[name] = _PARAMETER_NAMES[number]
        elif kind == "union_value":
            member = found.get(f"{name}_type", "NONE")
            if member != "NONE":
                found[name] = self.table(member, self.follow(at, where), f"{where}:{member}", depth + 1)
        elif kind == "string":
            found[name] = self.string(self.follow(at, where), where)
        elif kind == "table":
            found[name] = self.table(field.type, self.follow(at, where), where, depth + 1)
        else:
            found[name] = self.vector(table, field, self.follow(at, where), where, depth)

    def follow(self, at: int, where: str) -> int:
        return at + self.number("uint32", at, where)

    def spend(self, count: int) -> None:
        self.bytes_left -= count
        if self.bytes_left < 0:
            raise self.fail("it refers to the same bytes over and over")

    def extent(self, at: int, item: int, where: str) -> tuple[int, int]:
        """Start and length of a vector."""
        length = self.number("uint32", at, where)
        if at % 4 or (at + 4) % item:
            raise self.fail(f"{where} is not aligned")
        if at + 4 + length * item > self.size:
            raise self.fail(f"{where} has {length} elements, more than the rest of the file")
        return at + 4, length

    def string(self, at: int, where: str) -> str:
        if at not in self.strings:
            start, length = self.extent(at, 1, where)
            if start + length >= self.size or self.buffer[start + length]:
                raise self.fail(f"{where} has no end")
            self.spend(length)
            self.strings[at] = bytes(self.buffer[start : start + length]).decode("utf-8", errors="surrogateescape")
        return self.strings[at]

    def vector(self, table: str, field: Field, at: int, where: str, depth: int) -> Any:
        if field.kind in ("vector_of_scalar", "vector_of_enum"):
            dtype = np.dtype(field.scalar)
            start, length = self.extent(at, dtype.itemsize, where)
            values = self.array[start : start + length * dtype.itemsize].view(dtype)
            if field.kind == "vector_of_enum":
                self.spend(4 * length)
                return tuple(_NAMES[field.type].get(v, v) for v in values.tolist())
            if table in DATA_TABLES and field.name != "dims" and field.name != "external":
                return values
            if field.scalar in ("int32", "int64"):
                self.spend(dtype.itemsize * length)
                return tuple(values.tolist())
            return values
        start, length = self.extent(at, 4, where)
        self.spend(4 * length)
        places = (start + 4 * i for i in range(length))
        if field.kind == "vector_of_string":
            return tuple(self.string(self.follow(p, where), where) for p in places)
        return tuple(self.table(field.type, self.follow(p, where), where, depth + 1) for p in places)
