"""ONNX tensors (raw, typed, external, sparse) to NumPy arrays. Nothing in the file is trusted."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx

from mnn_core import ConversionError, ModelFormatError

T = onnx.TensorProto

#: Element type -> (declared dtype, how the raw bytes are read, the field that holds typed values).
_TYPES: dict[int, tuple[type, type, str]] = {
    T.FLOAT: (np.float32, np.float32, "float_data"),
    T.DOUBLE: (np.float64, np.float64, "double_data"),
    T.FLOAT16: (np.float16, np.uint16, "int32_data"),
    T.BFLOAT16: (np.float32, np.uint16, "int32_data"),
    T.INT8: (np.int8, np.int8, "int32_data"),
    T.UINT8: (np.uint8, np.uint8, "int32_data"),
    T.INT16: (np.int16, np.int16, "int32_data"),
    T.UINT16: (np.uint16, np.uint16, "int32_data"),
    T.INT32: (np.int32, np.int32, "int32_data"),
    T.INT64: (np.int64, np.int64, "int64_data"),
    T.UINT32: (np.uint32, np.uint32, "uint64_data"),
    T.UINT64: (np.uint64, np.uint64, "uint64_data"),
    T.BOOL: (np.bool_, np.uint8, "int32_data"),
    T.INT4: (np.int8, np.uint8, "int32_data"),
    T.UINT4: (np.uint8, np.uint8, "int32_data"),
}
_FOUR_BITS = (T.INT4, T.UINT4)
#: A dense array made from a sparse tensor, or from 4-bit values, may be this big, or a thousand times its data.
_MAX_DENSE = 1 << 26
#: Largest rank that NumPy 1.26 holds.
_MAX_RANK = 32


def declared_dtype(elem_type: int, what: str) -> np.dtype:
    """dtype of an ONNX element type. Raises ConversionError for strings, complex numbers and other types without one."""
    if elem_type not in _TYPES:
        known = T.DataType.Name(elem_type) if elem_type in T.DataType.values() else str(elem_type)
        raise ConversionError(f"{what} has element type {known}; supported: "
                              f"{', '.join(T.DataType.Name(t) for t in sorted(_TYPES))}")
    return np.dtype(_TYPES[elem_type][0])


def to_array(tensor: onnx.TensorProto, folder: Path | None, what: str) -> np.ndarray:
    """The value of a tensor, in its declared dtype (bfloat16 as float32, 4-bit integers as 8-bit ones).

    folder: where external data lies; None if the model has no folder. what: names the tensor in errors.
    Raises ModelFormatError if data and shape do not agree, and ConversionError for element types without a dtype here.
    """
    dtype = declared_dtype(tensor.data_type, what)
    _, raw_type, field = _TYPES[tensor.data_type]
    dims = _dims(tensor.dims, what)
    count = math.prod(dims)
    four = tensor.data_type in _FOUR_BITS
    stored = (count + 1) // 2 if four else count
    size = stored * np.dtype(raw_type).itemsize
    if tensor.data_location == T.EXTERNAL:
        data = _external(tensor, folder, size, what)
    elif tensor.HasField("raw_data"):
        data = tensor.raw_data
    else:
        return _typed(tensor, dtype, raw_type, field, dims, stored, what)
    if len(data) != size:
        raise ModelFormatError(f"{what} holds {len(data)} bytes; its shape {list(dims)} needs {size}")
    raw = np.frombuffer(data, np.dtype(raw_type).newbyteorder("<"))
    return _decode(raw.astype(raw_type, copy=False), tensor.data_type, dtype, dims)


def _dims(dims: object, what: str) -> tuple[int, ...]:
    found = tuple(int(d) for d in dims)  # type: ignore[attr-defined]
    if any(d < 0 for d in found) or len(found) > _MAX_RANK:
        raise ModelFormatError(f"{what} has shape {list(found[:40])}; expected up to {_MAX_RANK} dimensions of 0 or more")
    return found


def _typed(tensor: onnx.TensorProto, dtype: np.dtype, raw_type: type, field: str, dims: tuple[int, ...], stored: int,
           what: str) -> np.ndarray:
    values = getattr(tensor, field)
    if len(values) != stored:
        raise ModelFormatError(f"{what} holds {len(values)} values; its shape {list(dims)} needs {stored}")
    wide = np.array(values, np.float64 if field in ("float_data", "double_data") else
                    np.uint64 if field == "uint64_data" else np.int64)
    with np.errstate(all="ignore"):
        return _decode(wide.astype(raw_type), tensor.data_type, dtype, dims)


def _decode(raw: np.ndarray, elem_type: int, dtype: np.dtype, dims: tuple[int, ...]) -> np.ndarray:
    """Bit patterns to values."""
    if elem_type == T.FLOAT16:
        raw = raw.view(np.float16)
    elif elem_type == T.BFLOAT16:
        raw = (raw.astype(np.uint32) << 16).view(np.float32)
    elif elem_type == T.BOOL:
        raw = raw != 0
    elif elem_type in _FOUR_BITS:
        raw = np.stack([raw & 15, raw >> 4], axis=-1).reshape(-1)[:math.prod(dims)]
        if elem_type == T.INT4:
            raw = np.where(raw > 7, raw.astype(np.int8) - 16, raw.astype(np.int8)).astype(np.int8)
    return np.ascontiguousarray(raw.astype(dtype, copy=False)).reshape(dims)


def _external(tensor: onnx.TensorProto, folder: Path | None, size: int, what: str) -> bytes:
    """Bytes of a tensor in another file, which must lie in the model's folder."""
    entries = {e.key: e.value for e in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise ModelFormatError(f"{what} lies in the file {location!r}, but the model was given as bytes; give its path")
    if not location or Path(location).is_absolute() or set(location) & {"\0", "\\"} or ".." in Path(location).parts:
        raise ModelFormatError(f"{what} lies in the file {location!r}, not a relative path inside the model's folder")
    try:
        offset, length = int(entries.get("offset", "0")), int(entries.get("length", size))
        path = (folder / location).resolve(strict=True)
        inside = path.is_relative_to(folder.resolve()) and path.is_file()
        available = path.stat().st_size
    except (ValueError, OSError) as error:
        raise ModelFormatError(f"{what} lies in the file {location!r}, which cannot be read: {error}") from error
    if not inside:
        raise ModelFormatError(f"{what} lies in the file {location!r}, which is not a plain file inside the model's folder")
    if offset < 0 or length != size or offset + length > available:
        raise ModelFormatError(f"{what} is bytes {offset} to {offset + length} of {location!r}, which has {available}; the "
                               f"shape needs {size}")
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)


def sparse_to_array(sparse: onnx.SparseTensorProto, folder: Path | None, what: str) -> np.ndarray:
    """A sparse tensor as a dense array. Raises ModelFormatError if its indices leave its shape."""
    values = to_array(sparse.values, folder, what).reshape(-1)
    indices = to_array(sparse.indices, folder, f"{what} (indices)")
    dims = _dims(sparse.dims, what)
    count = math.prod(dims)
    if count * values.itemsize > max(_MAX_DENSE, 1000 * values.nbytes):
        raise ModelFormatError(f"{what} is sparse with {values.size} values, but its shape {list(dims)} has {count}")
    if indices.dtype != np.int64 or len(indices) != values.size or indices.ndim not in (1, 2) or \
            (indices.ndim == 2 and indices.shape[1] != len(dims)):
        raise ModelFormatError(f"{what} has {values.size} values and indices of shape {list(indices.shape)}")
    flat = indices
    if indices.ndim == 2:
        if ((indices < 0) | (indices >= np.array(dims))).any():
            raise ModelFormatError(f"{what} has an index outside its shape {list(dims)}")
        flat = np.ravel_multi_index(tuple(indices.T), dims) if dims else np.zeros(len(indices), np.int64)
    if ((flat < 0) | (flat >= count)).any():
        raise ModelFormatError(f"{what} has an index outside its shape {list(dims)}")
    dense = np.zeros(count, values.dtype)
    dense[flat] = values
    return dense.reshape(dims)


def as_stored(array: np.ndarray) -> np.ndarray:
    """A value in the dtype that MNN computes in: wide integers saturate at int32, floats become float32."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "b" or (kind in "iu" and size == 2):
        return array.astype(np.int32)
    if kind in "iu" and (size == 8 or array.dtype == np.uint32):
        info = np.iinfo(np.int32)
        low = info.min if kind == "i" else 0
        return np.clip(array, low, info.max).astype(np.int32)
    if kind == "f" and array.dtype != np.float32:
        with np.errstate(over="ignore"):
            return array.astype(np.float32)
    return array
