"""ONNX tensors (raw, typed, external, sparse) to NumPy arrays. Nothing in the file is trusted."""

from __future__ import annotations

import math
import mmap
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import onnx

from mnn_core import ConversionError, ModelFormatError
from mnn_core.ir.dtypes import LOW_PRECISION, named_dtype

T = onnx.TensorProto

#: Element type -> (dtype that values are computed in, or NumPy's own, how the raw bytes are read, the field of typed values).
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
    T.STRING: (np.object_, np.object_, "string_data"),
}
#: Element types that NumPy lacks -> their names in ml_dtypes.
_LOW = {T.BFLOAT16: "bfloat16", T.INT4: "int4", T.UINT4: "uint4"}
for _number, _name, _type in ((17, "float8_e4m3fn", np.float32), (18, "float8_e4m3fnuz", np.float32),
                              (19, "float8_e5m2", np.float32), (20, "float8_e5m2fnuz", np.float32),
                              (23, "float4_e2m1fn", np.float32), (24, "float8_e8m0fnu", np.float32),
                              (25, "uint2", np.uint8), (26, "int2", np.int8)):  # later than onnx 1.17, by number
    _TYPES[_number], _LOW[_number] = (_type, np.uint8, "int32_data"), _name
#: Element types of which several fit into a byte -> their bits.
_BITS = {T.INT4: 4, T.UINT4: 4, 23: 4, 25: 2, 26: 2}
#: What a value is: the dtype of a tensor, or ("sequence" or "optional" or "map", what is in it).
Type = np.dtype | tuple[str, Any]
#: A dense array made from a sparse tensor, or from 4-bit values, may be this big, or a thousand times its data.
_MAX_DENSE = 1 << 26
#: External tensors of so many bytes are memory-mapped.
_MAPPED_FROM = 1 << 18
#: Largest rank that NumPy 1.26 holds.
_MAX_RANK = 32


def declared_dtype(elem_type: int, what: str) -> np.dtype:
    """dtype of an ONNX element type: one of NumPy, or of ml_dtypes. Raises ConversionError for types without one."""
    if elem_type not in _TYPES:
        known = T.DataType.Name(elem_type) if elem_type in T.DataType.values() else str(elem_type)
        raise ConversionError(f"{what} has element type {known}; supported: "
                              f"{', '.join(T.DataType.Name(t) for t in sorted(_TYPES))}")
    return named_dtype(_LOW[elem_type]) if elem_type in _LOW else np.dtype(_TYPES[elem_type][0])


def type_of(proto: onnx.TypeProto, what: str) -> Type | None:
    """The type that a value is declared with; None if none is. Raises ConversionError for element types without a dtype."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        return declared_dtype(proto.tensor_type.elem_type, what) if proto.tensor_type.elem_type else None
    if kind in ("sequence_type", "optional_type"):
        inner = type_of(getattr(proto, kind).elem_type, what)
        return None if inner is None else (kind.removesuffix("_type"), inner)
    if kind == "map_type":
        inner = type_of(proto.map_type.value_type, what)
        return None if inner is None else ("map", inner)
    return None


def element(kind: Type) -> np.dtype:
    """The dtype of the tensors in a value of a type."""
    return kind if isinstance(kind, np.dtype) else element(kind[1])


def to_array(tensor: onnx.TensorProto, folder: Path | None, what: str) -> np.ndarray:
    """The value of a tensor, in its declared dtype (those that NumPy lacks in the one they are computed in).

    folder: where external data lies; None if the model has no folder. what: names the tensor in errors.
    Raises ModelFormatError if data and shape do not agree, and ConversionError for element types without a dtype here.
    """
    declared_dtype(tensor.data_type, what)
    dtype, raw_type, field = _TYPES[tensor.data_type]
    dims = _dims(tensor.dims, what)
    count = math.prod(dims)
    if tensor.data_type == T.STRING:
        return _text(tensor, dims, what)
    per_byte = 8 // _BITS.get(tensor.data_type, 8)
    stored = -(-count // per_byte)
    size = stored * np.dtype(raw_type).itemsize
    if tensor.data_location == T.EXTERNAL:
        data = _external(tensor, folder, size, what)
    elif tensor.HasField("raw_data"):
        data = tensor.raw_data
    else:
        return _typed(tensor, np.dtype(dtype), raw_type, field, dims, stored, what)
    if len(data) != size:
        raise ModelFormatError(f"{what} holds {len(data)} bytes; its shape {list(dims)} needs {size}")
    raw = np.frombuffer(data, np.dtype(raw_type).newbyteorder("<"))
    return _decode(raw.astype(raw_type, copy=False), tensor.data_type, np.dtype(dtype), dims)


def _text(tensor: onnx.TensorProto, dims: tuple[int, ...], what: str) -> np.ndarray:
    """A tensor of strings, as an array of str."""
    if tensor.data_location == T.EXTERNAL or len(tensor.string_data) != math.prod(dims):
        raise ModelFormatError(f"{what} holds {len(tensor.string_data)} strings; its shape {list(dims)} needs "
                               f"{math.prod(dims)}, inside the file")
    try:
        found = [s.decode() for s in tensor.string_data]
    except UnicodeDecodeError as error:
        raise ModelFormatError(f"{what} holds a string that is not UTF-8: {error}") from error
    text = np.empty(len(found), object)
    text[:] = found
    return text.reshape(dims)


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
    elif elem_type in _LOW:
        bits = _BITS.get(elem_type, 8)
        if bits < 8:
            parts = [raw >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)]
            raw = np.stack(parts, axis=-1).reshape(-1)[:math.prod(dims)]
        raw = raw.astype(np.uint8).view(named_dtype(_LOW[elem_type]))
    return np.ascontiguousarray(raw.astype(dtype, copy=False)).reshape(dims)


def _external(tensor: onnx.TensorProto, folder: Path | None, size: int, what: str) -> bytes | memoryview:
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
    if length >= _MAPPED_FROM:
        return memoryview(_mapped(path))[offset : offset + length]
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)


#: Open maps of files of external data, as long as a tensor of them is in use.
_maps: WeakValueDictionary[tuple[str, int, int], mmap.mmap] = WeakValueDictionary()


def _mapped(path: Path) -> mmap.mmap:
    """A file as memory: its tensors are read when they are used, and need not all fit."""
    stat = path.stat()
    key = (str(path), stat.st_mtime_ns, stat.st_size)
    found = _maps.get(key)
    if found is None:
        with path.open("rb") as file:
            found = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        _maps[key] = found
    return found


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


def loses(array: np.ndarray, stored: np.ndarray) -> bool:
    """Whether finite numbers are not what they were: too large for int32 or float32. Rounding does not count."""
    if array.dtype.kind in "iu":
        return bool((array != stored).any())
    return array.dtype.kind == "f" and bool((np.isinf(stored) & ~np.isinf(array)).any())


def as_stored(array: np.ndarray) -> np.ndarray:
    """A value in the dtype that MNN computes in: wide integers saturate at int32, floats become float32."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if array.dtype.name in LOW_PRECISION:
        return array.astype(LOW_PRECISION[array.dtype.name])
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
