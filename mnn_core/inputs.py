"""The boundary of a model: what users give becomes the arrays that plans run on, without ever changing a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .errors import InputError, InputTypeError
from .ir import TensorInfo
from .ir.dtypes import LOW_PRECISION, OBJECT, stored_dtype


def computed_dtype(info: TensorInfo) -> np.dtype:
    """The dtype in which MNN computes an input."""
    if info.kind != "tensor":
        return OBJECT
    return stored_dtype(info.dtype) if info.dtype is not None else np.dtype(np.float32)


def is_narrow(info: TensorInfo) -> bool:
    """Whether values of an input must be looked at, as the dtype that MNN computes it in holds others too: bool, int16, fp8."""
    if info.dtype is None or info.dtype.kind == "O" or info.kind != "tensor":
        return info.dtype is not None
    if info.dtype.name in LOW_PRECISION:
        return info.dtype.name != "bfloat16"  # computed with more digits than it has, as float16 is
    return info.dtype.kind in "biu" and info.dtype.itemsize < computed_dtype(info).itemsize


def as_stored(info: TensorInfo, value: Any) -> np.ndarray:
    """An input as a C-contiguous, aligned array in the dtype that MNN computes in.

    Any array-like is taken. Arrays keep their values exactly or InputTypeError is raised; Python numbers and lists of
    them, which have no dtype, are rounded to that of the input. Text, sequences and optionals: see `_as_object`.
    """
    wanted = computed_dtype(info)
    if wanted == OBJECT:
        return _as_object(info, value)
    weak = isinstance(value, (bool, int, float, list, tuple))
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InputError(f"input {info.name!r}: cannot be made an array: {error}; expected {info}") from error
    if array.dtype != wanted or not array.dtype.isnative or is_narrow(info):
        array = _converted(info, array, wanted, weak)
    if not (array.flags.c_contiguous and array.flags.aligned):
        array = np.require(array, requirements=["C", "A"]).reshape(array.shape)
    return array


def _as_object(info: TensorInfo, value: Any) -> np.ndarray:
    """Text as an array of str; a sequence (list or tuple), an optional (None or a tensor) or a map in an array of rank 0."""
    if info.kind == "tensor":
        text = np.array(value, dtype=object)
        if text.dtype.kind != "O" or not all(isinstance(v, str) for v in text.reshape(-1)):
            found = next((type(v).__name__ for v in text.reshape(-1) if not isinstance(v, str)), text.dtype.name)
            raise InputTypeError(f"input {info.name!r} got {found}; expected {info}: text (str)")
        return text
    element = replace(info, kind="tensor", shape=None)
    if isinstance(value, (list, tuple)) and info.kind != "map":
        if info.kind == "optional" and not all(isinstance(v, np.ndarray) for v in value):
            return as_stored(element, value)
        value = tuple(as_stored(element, v) for v in value)
    elif info.kind == "optional" and value is not None:
        return as_stored(element, value)
    elif info.kind == "sequence":
        raise InputTypeError(f"input {info.name!r} got {type(value).__name__}; expected {info}: a list of arrays")
    return boxed(value)


def boxed(value: Any) -> np.ndarray:
    """Any Python value as an array of rank 0."""
    box = np.empty((), object)
    box[()] = value
    return box


def as_declared(info: TensorInfo, value: np.ndarray) -> Any:
    """A computed value as it is given out: in the declared dtype; a sequence as a list, an absent optional as None."""
    if value.dtype == OBJECT and value.ndim == 0 and not isinstance(value[()], str):
        inner = value[()]
        if isinstance(inner, tuple):
            return [np.array(as_declared(info, v)) if isinstance(v, np.ndarray) else v for v in inner]
        return inner
    return value if info.dtype is None or info.dtype == value.dtype else value.astype(info.dtype)


def _converted(info: TensorInfo, array: np.ndarray, wanted: np.dtype, weak: bool) -> np.ndarray:
    declared, got = info.dtype or wanted, array.dtype
    if got.name in LOW_PRECISION:  # each of its values is one of the dtype it is computed in
        array = array.astype(LOW_PRECISION[got.name])
        if got == declared:
            return array
        got = array.dtype
    if weak and declared.name in LOW_PRECISION:
        with np.errstate(all="ignore"):
            return array.astype(declared).astype(wanted)
    if got.kind not in "biuf":
        raise InputTypeError(f"input {info.name!r} got {got}; expected {declared}")
    meant = got.newbyteorder("=") == declared or (weak and (got.kind != "f" or wanted.kind == "f"))
    if wanted.kind == "f" and (meant or declared.name == "bfloat16"):
        with np.errstate(over="ignore"):  # a float64 beyond float32 is infinite
            return array.astype(wanted)
    kept = _keeps(array, wanted)
    if (declared.kind in "biu" or declared.name in LOW_PRECISION) and not meant:
        kept = kept & _keeps(array, declared)
    if not np.all(kept):
        first = array[~np.broadcast_to(kept, array.shape)].reshape(-1)[0]
        computed = "" if declared == wanted else f" (computed as {wanted})"
        raise InputTypeError(f"input {info.name!r} got {got}; expected {declared}{computed}: {first!s} would change its value. "
                             f"Convert it yourself if that is meant: array.astype({declared.name!r})")
    return array.astype(wanted)


def _keeps(array: np.ndarray, target: np.dtype) -> np.ndarray | np.bool_:
    """Which elements have the same value in another dtype."""
    if np.can_cast(array.dtype, target, "safe"):
        return np.True_
    with np.errstate(all="ignore"):
        back = array.astype(target).astype(array.dtype)
    same = (back == array) | ((array != array) & (back != back))
    if target.kind in "iu" and array.dtype.kind in "iu":  # a wrapped value comes back equal: 255 is -1 in int8 is 255
        limits = np.iinfo(target)
        same &= (array >= limits.min) & (array <= limits.max)
    return same


def check_names(infos: Sequence[TensorInfo], given: Mapping[str, Any]) -> None:
    """Raises InputError for missing and unknown inputs."""
    names = [i.name for i in infos]
    missing = [n for n in names if n not in given]
    unknown = [str(n) for n in given if n not in names]
    if missing or unknown:
        parts = [f"missing: {', '.join(missing)}"] * bool(missing) + [f"unknown: {', '.join(unknown)}"] * bool(unknown)
        raise InputError(f"inputs do not fit the model; {'; '.join(parts)}. It takes: {'; '.join(map(str, infos)) or 'none'}")


def check_shapes(infos: Sequence[TensorInfo], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Checks ranks, fixed dimensions, and that dimensions of one name are equal everywhere. Raises InputError."""
    named: dict[str, tuple[int, str]] = {}
    for info in infos:
        shape = shapes[info.name]
        if any(d < 0 for d in shape):
            raise InputError(f"input {info.name!r} got shape {list(shape)}; dimensions cannot be negative")
        if info.shape is None or info.kind != "tensor":
            continue
        if len(shape) != len(info.shape):
            raise InputError(f"input {info.name!r} got shape {list(shape)}, {len(shape)} dimensions; "
                             f"expected {len(info.shape)}: {info}")
        for axis, (got, want) in enumerate(zip(shape, info.shape)):
            if want is not None and got != want:
                raise InputError(f"input {info.name!r} got shape {list(shape)}; expected {info}: "
                                 f"dimension {axis} is {got} instead of {want}")
            name = info.dim_names[axis] if axis < len(info.dim_names) else None
            if name is None or want is not None:
                continue
            size, first = named.setdefault(name, (got, info.name))
            if size != got:
                where = f"input {first!r} has {size}, input {info.name!r} has {got}" if first != info.name else \
                    f"input {first!r} has {size} and {got}"
                raise InputError(f"dimension {name!r} must have one size in all inputs; {where}")
