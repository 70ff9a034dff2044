"""Maps: Python dicts, or lists of them, in arrays of rank 0. Run by definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from mnn_core import Op, ShapeError, register_op

from .encoders import text

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)


def boxed(value: Any) -> np.ndarray:
    """A Python value as an array of rank 0."""
    box = np.empty((), object)
    box[()] = value
    return box


def _map(op: Op, x: np.ndarray) -> dict[Any, Any]:
    if x.dtype != object or x.ndim or not isinstance(x[()], dict):
        raise ShapeError(f"{op}: its input is {x.dtype}{list(x.shape)}; expected a map")
    return x[()]


@register_op("ai.onnx.ml.ZipMap", dynamic=True)
def zip_map(op: Op, x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """A dict for each row of x [N, C] or [C], label -> number."""
    if x.ndim not in (1, 2) or x.shape[-1] != labels.size:
        raise ShapeError(f"{op}: x has shape {list(x.shape)}; expected {labels.size} columns, one for each label")
    keys = labels.reshape(-1).tolist()
    return boxed([dict(zip(keys, row)) for row in x.reshape(-1, labels.size).tolist()])


@register_op("ai.onnx.ml.DictVectorizer", attrs={"to": "float32"}, dynamic=True)
def dict_vectorizer(op: Op, x: np.ndarray, vocabulary: np.ndarray) -> np.ndarray:
    """The values of a map at the keys of a vocabulary, [1, C]; 0 or "" for keys that it lacks. `to`: float32, int32, string."""
    given = _map(op, x)
    values = [given.get(key) for key in vocabulary.reshape(-1).tolist()]
    if op["to"] == "string":
        return text(["" if v is None else v for v in values], (1, len(values)))
    return np.array([0 if v is None else v for v in values], np.dtype(op["to"])).reshape(1, -1)


@register_op("ai.onnx.ml.CastMap", attrs={"cast_to": "TO_FLOAT", "map_form": "DENSE", "max_map": 1}, dynamic=True)
def cast_map(op: Op, x: np.ndarray) -> np.ndarray:
    """The values of a map in the order of its keys, [1, C]; SPARSE: each at the column that its key is, of `max_map`."""
    given = dict(sorted(_map(op, x).items()))
    if op["map_form"] == "SPARSE":
        columns = [given.get(i, 0) for i in range(op["max_map"])]
        if any(not 0 <= k < op["max_map"] for k in given):
            raise ShapeError(f"{op}: keys {sorted(given)} do not fit {op['max_map']} columns")
    else:
        columns = list(given.values())
    if op["cast_to"] == "TO_STRING":
        return text([str(v) for v in columns], (1, len(columns)))
    kind = F32 if op["cast_to"] == "TO_FLOAT" else I32
    return np.array([float(v) for v in columns], np.float64).astype(kind).reshape(1, -1)
