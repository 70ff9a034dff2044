"""Plain data to FlatBuffer tables, driven by the schema; the inverse of tables.py.

A FlatBuffer is built from its end: what a table refers to is stored before it. The parts are kept in a list, large vectors as
views of the caller's arrays, so that a file is written without a copy of its weights. https://flatbuffers.dev/internals
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import GraphError
from ..ir.schema import ENUMS, PARAMETERS, TABLES, Field
from .tables import STRUCTS

#: Offsets are signed 32-bit numbers.
MAX_BYTES = 2**31 - 1
_INLINE = ("scalar", "enum", "union_type")


class Encoder:
    """Builds a FlatBuffer from dicts as the Decoder makes them. Every field that a dict has is stored, default or not.

    Places are counted from the end of the buffer, as they are known before its length is.
    """

    def __init__(self) -> None:
        self.parts: list[bytes | memoryview] = []
        self.size = 0
        self.strings: dict[str, int] = {}
        self.vtables: dict[bytes, int] = {}

    def finish(self, table: str, values: Mapping[str, Any]) -> bytes:
        """The whole buffer, with this root table. Raises GraphError if it would exceed the format's 2 GiB."""
        return b"".join(self.chunks(table, values))

    def chunks(self, table: str, values: Mapping[str, Any]) -> list[bytes | memoryview]:
        """The buffer in parts, of which large ones are views of the arrays in `values`. Raises as `finish`."""
        root = self.table(table, values)
        self.pad(4, 8)
        self.put(struct.pack("<I", self.size + 4 - root))
        return self.parts[::-1]

    def put(self, data: bytes | memoryview) -> int:
        """Puts bytes in front of everything so far; returns their place."""
        self.size += len(data)
        if self.size > MAX_BYTES:
            raise GraphError("the model exceeds the 2 GiB of a .mnn file: save it with external weights (save_external_data)")
        self.parts.append(data)
        return self.size

    def pad(self, following: int, align: int) -> None:
        """Zeros, so that what comes after `following` more bytes starts at a multiple of `align`."""
        count = -(self.size + following) % align
        if count:
            self.put(bytes(count))

    def table(self, table: str, values: Mapping[str, Any]) -> int:
        """Adds a table; returns its place."""
        fields = TABLES[table]
        known = {f.name for f in fields}
        unknown = [k for k in values if k not in known]
        if unknown:
            raise GraphError(f"MNN's table {table} has no field {unknown[0]!r}")
        inline: list[tuple[int, Field, Any]] = []
        for f in fields:
            value = values.get(f.name)
            if value is None:
                continue
            if f.kind in _INLINE:
                inline.append((STRUCTS[f.scalar].size, f, self.scalar(table, f, value)))
            else:
                inline.append((4, f, self.child(f, values)))
        inline.sort(key=lambda item: -item[0])  # large ones first, so that little is lost to alignment
        at = 8 if inline and inline[0][0] == 8 else 4
        places: list[tuple[int, int, Field, Any]] = []
        for size, f, value in inline:
            places.append((at, size, f, value))
            at += size
        length = at + -at % 4
        body = bytearray(length)
        self.pad(length, 8 if inline and inline[0][0] == 8 else 4)
        start = self.size + length
        slots = [0] * (max((f.slot for _, f, _ in inline), default=-1) + 1)
        for at, _, f, value in places:
            slots[f.slot] = at
            if f.kind in _INLINE:
                STRUCTS[f.scalar].pack_into(body, at, value)
            else:
                struct.pack_into("<I", body, at, start - at - value)
        vtable = struct.pack(f"<{len(slots) + 2}H", 4 + 2 * len(slots), length, *slots)
        shared = self.vtables.get(vtable)
        # A vtable that is not there yet comes right before its table.
        struct.pack_into("<i", body, 0, (shared - start) if shared else len(vtable))
        self.put(bytes(body))
        if not shared:
            self.vtables[vtable] = self.put(vtable)
        return start

    def scalar(self, table: str, field: Field, value: Any) -> Any:
        """A field's number, checked."""
        if isinstance(value, str):
            members = PARAMETERS if field.kind == "union_type" else ENUMS.get(field.type, {})
            if value not in members:
                raise GraphError(f"{table}.{field.name} is {value!r}; expected one of {', '.join(members)}")
            value = members[value]
        convert = float if field.scalar.startswith("float") else bool if field.scalar == "bool" else int
        try:
            value = convert(value)
            STRUCTS[field.scalar].pack(value)
        except (TypeError, ValueError, OverflowError, struct.error) as error:
            raise GraphError(f"{table}.{field.name} cannot hold {value!r}") from error
        return value

    def child(self, field: Field, values: Mapping[str, Any]) -> int:
        """Adds what a field refers to; returns its place."""
        value = values[field.name]
        if field.kind == "string":
            return self.string(value)
        if field.kind == "table":
            return self.table(field.type, value)
        if field.kind == "union_value":
            return self.table(values[f"{field.name}_type"], value)
        if field.kind == "vector_of_string":
            return self.offsets([self.string(v) for v in value])
        if field.kind == "vector_of_table":
            return self.offsets([self.table(field.type, v) for v in value])
        if field.kind == "vector_of_enum":
            value = [ENUMS[field.type][v] if isinstance(v, str) else v for v in value]
        return self.numbers(np.asarray(value, field.scalar).reshape(-1))

    def numbers(self, array: np.ndarray) -> int:
        """Adds a vector of numbers."""
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        self.pad(array.nbytes, max(4, array.itemsize))
        if array.nbytes:
            self.put(array.view(np.uint8).data if array.nbytes > 4096 else array.tobytes())
        return self.put(struct.pack("<I", array.size))

    def string(self, text: str) -> int:
        """Adds a string; equal ones are stored once."""
        if text not in self.strings:
            data = text.encode("utf-8", errors="surrogateescape")
            self.pad(len(data) + 1, 4)
            self.strings[text] = self.put(struct.pack("<I", len(data)) + data + b"\0")
        return self.strings[text]

    def offsets(self, places: list[int]) -> int:
        """Adds a vector of references."""
        self.pad(0, 4)
        start = self.size + 4 * len(places)  # place of its first element
        data = struct.pack(f"<{len(places)}I", *(start - 4 * i - place for i, place in enumerate(places)))
        return self.put(struct.pack("<I", len(places)) + data)
