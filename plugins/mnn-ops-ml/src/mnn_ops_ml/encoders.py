"""Encoders of labels and categories, between text and numbers. Run by definition, as text lies in no arena."""

from __future__ import annotations

from typing import Any

import numpy as np

from mnn_core import Op, ShapeError, register_op

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)


def text(values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Strings as an array of dtype object."""
    found = np.empty(len(values), object)
    found[:] = list(values)
    return found.reshape(shape)


def _as_array(values: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    if values and isinstance(values[0], str):
        return text(values, shape)
    kind = F32 if any(isinstance(v, float) for v in values) else I32
    return np.array(values, kind).reshape(shape)


@register_op("ai.onnx.ml.LabelEncoder", attrs={"default": 0}, dynamic=True)
def label_encoder(op: Op, x: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """values[i] where x is keys[i], `default` elsewhere; both may be text or numbers. NaN is equal to NaN here."""
    if keys.size != values.size:
        raise ShapeError(f"{op}: {keys.size} keys and {values.size} values")
    table: dict[Any, Any] = {}
    for key, value in zip(keys.reshape(-1).tolist(), values.reshape(-1).tolist()):
        table.setdefault("nan" if key != key else key, value)
    found = [table.get("nan" if v != v else v, op["default"]) for v in x.reshape(-1).tolist()]
    if values.dtype == object:
        return text(found, x.shape)
    return np.array(found, values.dtype).reshape(x.shape)


@register_op("ai.onnx.ml.OneHotEncoder", attrs={"zeros": True}, dynamic=True)
def one_hot_encoder(op: Op, x: np.ndarray, categories: np.ndarray) -> np.ndarray:
    """1 at the place of x's category along a new last axis, float32; other values are all 0, or an error without `zeros`."""
    place = {v: i for i, v in enumerate(categories.reshape(-1).tolist())}
    flat = x.reshape(-1).tolist() if x.dtype == object else x.astype(np.int64).reshape(-1).tolist()
    out = np.zeros((len(flat), len(place)), F32)
    for row, value in enumerate(flat):
        if value in place:
            out[row, place[value]] = 1
        elif not op["zeros"]:
            raise ShapeError(f"{op}: {value!r} is none of its categories, and zeros is 0")
    return out.reshape(*x.shape, len(place))
