"""Element types: NumPy dtypes and their numbers in MNN files (schema enum DataType)."""

import numpy as np

from ._schema import ENUMS

#: NumPy dtype of each MNN DataType name that a tensor can have.
NUMPY_OF: dict[str, np.dtype] = {
    "DT_FLOAT": np.dtype(np.float32),
    "DT_DOUBLE": np.dtype(np.float64),
    "DT_INT32": np.dtype(np.int32),
    "DT_UINT8": np.dtype(np.uint8),
    "DT_INT16": np.dtype(np.int16),
    "DT_INT8": np.dtype(np.int8),
    "DT_INT64": np.dtype(np.int64),
    "DT_BOOL": np.dtype(np.bool_),
    "DT_UINT16": np.dtype(np.uint16),
    "DT_HALF": np.dtype(np.float16),
}

_NAME_OF = {dtype: name for name, dtype in NUMPY_OF.items()}
_NAME_OF[np.dtype(np.uint32)] = "DT_INT32"
_NAME_OF[np.dtype(np.uint64)] = "DT_INT64"


def numpy_dtype(name: str) -> np.dtype:
    """NumPy dtype of a DataType name such as "DT_FLOAT". Raises KeyError for types without one (strings, resources)."""
    return NUMPY_OF[name]


def dtype_name(dtype: np.dtype) -> str:
    """DataType name of a NumPy dtype. Raises KeyError if MNN has none."""
    return _NAME_OF[np.dtype(dtype)]


def dtype_number(dtype: np.dtype) -> int:
    """Number of a NumPy dtype in the DataType enum."""
    return ENUMS["DataType"][dtype_name(dtype)]

_STORED: dict[np.dtype, np.dtype] = {
    np.dtype(np.int64): np.dtype(np.int32), np.dtype(np.uint64): np.dtype(np.int32), np.dtype(np.uint32): np.dtype(np.int32),
    np.dtype(np.int16): np.dtype(np.int32), np.dtype(np.uint16): np.dtype(np.int32), np.dtype(np.bool_): np.dtype(np.int32),
    np.dtype(np.float64): np.dtype(np.float32), np.dtype(np.float16): np.dtype(np.float32),
}


def stored_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype in which MNN computes values of a dtype: int32 for all wide integers and bool, float32 for all floats."""
    return _STORED.get(np.dtype(dtype), np.dtype(dtype))
