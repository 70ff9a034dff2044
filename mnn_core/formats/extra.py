"""Attributes of Extra ops: MNN's Attribute tables to plain values and back; how custom ops are stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..errors import GraphError, ModelFormatError
from ..ir import Region
from .blobs import blob_of, constant_of

#: Engine name under which ops of ours are stored whose attributes MNN's own tables cannot hold.
ENGINE = "mnn_core"

_KINDS = {bool: ("b", "DT_BOOL"), int: ("i", "DT_INT32"), float: ("f", "DT_FLOAT"), str: ("s", "DT_STRING")}


def attribute_of(key: str, value: Any) -> dict[str, Any]:
    """A value as an Attribute table. Raises GraphError unless it is a number, text, a list of them, or an array."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**31) <= value < 2**31:
        value = np.array(value)
    if isinstance(value, np.ndarray):
        stored = blob_of(value, key) if value.dtype != np.int64 else {
            "dataType": "DT_INT64", "dims": value.shape, "int64s": value.reshape(-1)}
        return {"key": key, "tensor": stored}
    for kind, (where, name) in _KINDS.items():
        if isinstance(value, kind):
            return {"key": key, "type": name, where: value}
        if isinstance(value, (tuple, list)) and all(isinstance(v, kind) for v in value):
            items = tuple(value) if kind is not float else np.array(value, np.float32)
            return {"key": key, "type": name, "list": {where: items}}
    if isinstance(value, (tuple, list)) and all(isinstance(v, (int, float)) for v in value):
        return {"key": key, "type": "DT_FLOAT", "list": {"f": np.array(value, np.float32)}}
    raise GraphError(f"attribute {key!r} cannot be stored in a .mnn file: {type(value).__name__}")


def value_of(attribute: Mapping[str, Any]) -> Any:
    """The value of an Attribute table."""
    if "tensor" in attribute:
        blob = attribute["tensor"]
        if blob.get("dataType") == "DT_INT64":
            return np.array(blob.get("int64s", ()), np.int64).reshape(blob.get("dims", ()))
        found = constant_of(blob, attribute.get("key", "attribute"))
        return found if isinstance(found, np.ndarray) else found.decode()
    kind = {name: where for where, name in _KINDS.values()}.get(attribute.get("type", ""))
    if "list" in attribute:
        values = attribute["list"]
        where = kind if kind in values else next((k for k in ("i", "f", "s", "b") if len(values.get(k, ()))), "i")
        items = values.get(where, ())
        return tuple(items.tolist()) if isinstance(items, np.ndarray) else tuple(items)
    if kind is None:
        kind = next((k for k in ("s", "f", "i", "b") if attribute.get(k)), "i")
    return attribute.get(kind, {"b": False, "i": 0, "f": 0.0, "s": ""}[kind])


def extra_of(engine: str, kind: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The Extra table of a custom op."""
    return {"type": kind, "engine": engine,
            "attr": tuple(attribute_of(k, v) for k, v in attributes.items() if v is not None)}


def attributes_of(extra: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes in an Extra table, by name."""
    return {a.get("key", ""): value_of(a) for a in extra.get("attr", ())}


def regions_of(extra: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Attributes of a Raster op: in files, one region of 3 dimensions for each input, as 11 integers."""
    plain = attributes_of(extra)
    numbers = plain.get("region", ())
    for values in (numbers, plain.get("shape", ())):
        if not isinstance(values, tuple) or not all(isinstance(v, int) for v in values):
            raise ModelFormatError(f"{name}: its regions and shape must be lists of integers")
    fill = plain.get("fill", 0)
    if not isinstance(fill, (int, float)):
        raise ModelFormatError(f"{name}: its fill is {fill!r}, expected a number")
    regions = tuple(
        Region(i, n[8:11], n[0], n[1:4], n[4], n[5:8])
        for i, n in enumerate(numbers[11 * i : 11 * i + 11] for i in range(len(numbers) // 11)))
    return {"regions": regions, "shape": tuple(plain.get("shape", ())), "fill": fill}


def raster_of(regions: Iterable[Region], shape: tuple[int, ...], fill: float | None) -> tuple[list[int], dict[str, Any]]:
    """Source of each region and the Extra table of a Raster op; regions of more than 3 dimensions become several.

    MNN's Raster fills with 0 only: with any other number the table is that of a custom op of ours.
    """
    sources: list[int] = []
    numbers: list[int] = []
    for region in regions:
        for part in _in_three(region):
            sources.append(part.source)
            numbers += (part.src_offset, *part.src_strides, part.dst_offset, *part.dst_strides, *part.size)
    table: dict[str, Any] = {"region": tuple(numbers), "shape": tuple(shape)}
    return sources, extra_of(ENGINE, "Raster", {**table, "fill": fill}) if fill else extra_of("", "", table)


def _in_three(r: Region) -> list[Region]:
    if len(r.size) <= 3:
        ones, zeros = (1,) * (3 - len(r.size)), (0,) * (3 - len(r.size))
        return [Region(r.source, ones + r.size, r.src_offset, zeros + r.src_strides, r.dst_offset, zeros + r.dst_strides)]
    cut = r.size.index(min(r.size))

    def others(values: tuple[int, ...]) -> tuple[int, ...]:
        return values[:cut] + values[cut + 1:]

    return [part for i in range(r.size[cut])
            for part in _in_three(Region(r.source, others(r.size), r.src_offset + i * r.src_strides[cut], others(r.src_strides),
                                         r.dst_offset + i * r.dst_strides[cut], others(r.dst_strides)))]
