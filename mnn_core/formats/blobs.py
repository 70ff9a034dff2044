"""Constants: MNN's Blob tables to arrays and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import GraphError, ModelFormatError
from ..ir import Constant, decoded
from .external import numbers
from .weights import HalfConstant

#: DataType -> (field of Blob, NumPy dtype of the values in it).
_FIELDS: dict[Any, tuple[str, type[np.generic]]] = {
    "DT_FLOAT": ("float32s", np.float32), "DT_INT32": ("int32s", np.int32), "DT_INT8": ("int8s", np.int8),
    "DT_UINT8": ("uint8s", np.uint8), "DT_INT64": ("int64s", np.int64), "DT_HALF": ("uint8s", np.uint16),
    "DT_BFLOAT16": ("uint8s", np.uint16), "DT_BOOL": ("int32s", np.int32), "DT_INT16": ("int32s", np.int32),
    "DT_UINT16": ("int32s", np.int32)}
_MAX_RANK = 32


def shape_of(dims: tuple[int, ...], name: str) -> tuple[int, ...]:
    """Dimensions from a file, checked."""
    if len(dims) > _MAX_RANK or any(d < 0 for d in dims) or math.prod(d for d in dims if d) > 2**40:
        raise ModelFormatError(f"{name}: impossible shape {list(dims)}")
    return tuple(dims)


def constant_of(blob: Mapping[str, Any], name: str, external: np.ndarray | None = None) -> Constant:
    """A Blob as an array, or as a packed constant for 16-bit floats. external: its bytes, if they are in another file.

    Raises ModelFormatError if the data do not fill the shape.
    """
    kind = blob.get("dataType", "DT_FLOAT")
    if kind == "DT_STRING":
        return _text_of(blob, name)
    if kind not in _FIELDS:
        raise ModelFormatError(f"{name}: constants of type {kind} are not supported")
    where, dtype = _FIELDS[kind]
    shape = shape_of(tuple(blob.get("dims", ())), name)
    raw = external if external is not None else blob.get(where, np.zeros(0, dtype))
    size = np.dtype(dtype).itemsize
    stored = _blocks(shape) if blob.get("dataFormat") == "NC4HW4" and len(shape) > 1 else shape
    if raw.nbytes != math.prod(stored) * size:
        raise ModelFormatError(f"{name}: a constant of shape {list(shape)} and type {kind} needs "
                               f"{math.prod(stored) * size} bytes; {raw.nbytes} are stored")
    values = numbers(raw, dtype, name)
    if stored is not shape:
        wide = np.moveaxis(values.reshape(stored), (1, 0, -1), (0, 1, 2)).reshape(shape[0], stored[0] * 4, *shape[2:])
        values = np.ascontiguousarray(wide[:, :shape[1]]).reshape(-1)
    if kind in ("DT_HALF", "DT_BFLOAT16"):
        return HalfConstant(shape, values, "f2" if kind == "DT_HALF" else "bf16")
    if kind == "DT_INT64":
        limits = np.iinfo(np.int32)
        values = np.clip(values, limits.min, limits.max).astype(np.int32)
    return values.reshape(shape)


def _blocks(shape: tuple[int, ...]) -> tuple[int, ...]:
    """How MNN lays out NC4HW4: blocks of 4 channels, outside of the batch."""
    return (-(-shape[1] // 4), shape[0], *shape[2:], 4)


def _text_of(blob: Mapping[str, Any], name: str) -> np.ndarray:
    shape, strings = shape_of(tuple(blob.get("dims", ())), name), blob.get("strings", ())
    if len(strings) != math.prod(shape):
        raise ModelFormatError(f"{name}: a constant of shape {list(shape)} needs {math.prod(shape)} strings; "
                               f"{len(strings)} are stored")
    text = np.empty(len(strings), object)
    text[:] = strings
    return text.reshape(shape)


def blob_of(constant: Constant, name: str = "constant") -> dict[str, Any]:
    """A constant as a Blob. Raises GraphError for dtypes that MNN's files cannot hold."""
    if isinstance(constant, HalfConstant):
        kind = "DT_HALF" if constant.kind == "f2" else "DT_BFLOAT16"
        return _blob(constant.shape, kind, "uint8s", np.ascontiguousarray(constant.raw).view(np.uint8))
    array = decoded(constant)
    if array.dtype.kind == "O" and all(isinstance(v, str) for v in array.reshape(-1)):
        return _blob(array.shape, "DT_STRING", "strings", array)
    if array.dtype.kind == "f":
        return _blob(array.shape, "DT_FLOAT", "float32s", array.astype(np.float32, copy=False))
    if array.dtype in (np.int8, np.uint8):
        return _blob(array.shape, f"DT_{array.dtype.name.upper()}", f"{array.dtype.name}s", array)
    if array.dtype.kind in "iub":
        limits = np.iinfo(np.int32)
        narrow = array.astype(np.int32) if array.dtype.kind == "b" else np.clip(array, limits.min, limits.max).astype(np.int32)
        return _blob(array.shape, "DT_INT32", "int32s", narrow)
    raise GraphError(f"{name}: a .mnn file cannot hold constants of type {array.dtype}")


def _blob(shape: tuple[int, ...], kind: str, where: str, values: np.ndarray) -> dict[str, Any]:
    found: dict[str, Any] = {"dataFormat": "NCHW", "dataType": kind}
    if shape:
        found["dims"] = shape
    if values.size:
        flat = np.ascontiguousarray(values).reshape(-1)
        found[where] = tuple(flat) if kind == "DT_STRING" else flat
    return found
