"""Element types: NumPy dtypes and their numbers in MNN files (schema enum DataType)."""

import numpy as np

from ..errors import MNNError
from ._schema import ENUMS

#: dtype of arrays of text (each element a str), and of values that are no tensors, which are arrays of rank 0: a sequence is
#: a tuple of arrays in it, an optional without a value is None. Only NumPy definitions run on these.
OBJECT = np.dtype(object)

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
    "DT_STRING": OBJECT,
}

_NAME_OF = {dtype: name for name, dtype in NUMPY_OF.items()}
_NAME_OF[np.dtype(np.uint32)] = "DT_INT32"
_NAME_OF[np.dtype(np.uint64)] = "DT_INT64"


def numpy_dtype(name: str) -> np.dtype:
    """NumPy dtype of a DataType name such as "DT_FLOAT". Raises KeyError for types without one (resources)."""
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


#: Types that models only store numbers in and NumPy does not have (the package ml_dtypes does) -> what they are computed in.
LOW_PRECISION: dict[str, np.dtype] = {
    **dict.fromkeys(("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
                     "float4_e2m1fn"), np.dtype(np.float32)),
    "int4": np.dtype(np.int8), "int2": np.dtype(np.int8), "uint4": np.dtype(np.uint8), "uint2": np.dtype(np.uint8),
}


def stored_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype in which MNN computes values of a dtype: int32 for all wide integers and bool, float32 for all floats."""
    dtype = np.dtype(dtype)
    return _STORED.get(dtype) or LOW_PRECISION.get(dtype.name, dtype)


def named_dtype(name: str) -> np.dtype:
    """dtype of a name such as "int64", "bfloat16" or "object".

    Raises ValueError for other names, and MNNError where ml_dtypes is needed and not installed.
    """
    if name in LOW_PRECISION:
        try:
            import ml_dtypes
        except ImportError as error:
            raise MNNError(f"tensors of type {name} need the package ml_dtypes: "
                           "pip install 'mnn-core[low-precision]'") from error
        return np.dtype(getattr(ml_dtypes, name))
    found = next((d for d in (*_NAME_OF, *_STORED) if d.name == name), None)
    if found is None:
        raise ValueError(f"unknown type {name!r}")
    return found
