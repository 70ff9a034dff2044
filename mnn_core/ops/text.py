"""Text: arrays of str (dtype object). Run by definition only."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from ..errors import ShapeError
from ..ir import Op
from ..ir.dtypes import OBJECT
from ._rules import FLOAT32, INT32, as_array
from .registry import register

#: Python's own case folding knows no locales; it follows Unicode, as "en_US" does.
_CASES: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}


def text_array(values: list[str], shape: tuple[int, ...]) -> np.ndarray:
    """Strings as an array of dtype object."""
    found = np.empty(len(values), object)
    found[:] = values
    return found.reshape(shape)


def _text(op: Op, x: np.ndarray) -> list[str]:
    if x.dtype != OBJECT:
        raise ShapeError(f"{op}: its input is {x.dtype}{list(x.shape)}; expected text")
    return x.reshape(-1).tolist()


def _written(value: object) -> str:
    """A number as ONNX's Cast writes it: shortest digits that tell it, NaN and INF."""
    if isinstance(value, (float, np.floating)):
        if np.isnan(value):
            return "NaN"
        if np.isinf(value):
            return "INF" if value > 0 else "-INF"
    return str(value)


@register("AsString", dynamic=True)
def as_string(op: Op, x: np.ndarray) -> np.ndarray:
    """Numbers as text, float32 with the fewest digits that tell them apart."""
    if x.dtype == OBJECT:
        return x
    return text_array([_written(v) for v in x.reshape(-1)], x.shape)


@register("StringToNumber", attrs={"to": "float32"}, dynamic=True)
def string_to_number(op: Op, x: np.ndarray) -> np.ndarray:
    """Text as numbers, `to` float32 or int32; "NaN", "INF" and exponents are understood. Raises ShapeError for other text."""
    values = _text(op, x)
    try:
        numbers = [float(v) for v in values] if op["to"] == "float32" else [int(v) for v in values]
    except ValueError as error:
        raise ShapeError(f"{op}: {error}") from error
    with np.errstate(over="ignore"):
        if op["to"] == "float32":
            return as_array(np.array(numbers, np.float64), FLOAT32).reshape(x.shape)
    limits = np.iinfo(np.int32)
    wrong = next((v for v in numbers if not limits.min <= v <= limits.max), None)
    if wrong is not None:
        raise ShapeError(f"{op}: {wrong} is outside of int32")
    return np.array(numbers, INT32).reshape(x.shape)


@register("onnx.StringConcat", dynamic=True)
def string_concat(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a followed by b, element by element, broadcast."""
    _text(op, a), _text(op, b)
    joined = np.array(np.add(a, b), object)
    return joined


@register("onnx.StringSplit", attrs={"delimiter": "", "maxsplit": -1}, dynamic=True)
def string_split(op: Op, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each string split at the delimiter (at runs of white space if it is empty), `maxsplit` times at most if that is not -1.

    Returns the parts along a new last axis, filled up with "", and how many each string has, int32.
    """
    separator, limit = op["delimiter"] or None, op["maxsplit"]
    parts = [v.split(separator, limit) if v or separator is None else [] for v in _text(op, x)]
    width = max(map(len, parts), default=0)
    flat = [p for row in parts for p in (*row, *[""] * (width - len(row)))]
    return text_array(flat, (*x.shape, width)), np.array([len(row) for row in parts], INT32).reshape(x.shape)


@register("onnx.StringNormalizer", dynamic=True,
          attrs={"case_change_action": "NONE", "is_case_sensitive": False, "locale": "", "stopwords": ()})
def string_normalizer(op: Op, x: np.ndarray) -> np.ndarray:
    """The strings of a [C] or [1, C] tensor without the stop words, in another case; one empty string if none is left."""
    if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
        raise ShapeError(f"{op}: its input has shape {list(x.shape)}; expected [C] or [1, C]")
    action = op["case_change_action"]
    if action not in _CASES:
        raise ShapeError(f"{op}: case_change_action is {action!r}; expected one of {', '.join(_CASES)}")
    key = str if op["is_case_sensitive"] else str.lower
    stop = {key(w) for w in op["stopwords"]}
    kept = [_CASES[action](v) for v in _text(op, x) if key(v) not in stop] or [""]
    return text_array(kept, (len(kept),) if x.ndim == 1 else (1, len(kept)))


@register("onnx.RegexFullMatch", attrs={"pattern": ""}, dynamic=True)
def regex_full_match(op: Op, x: np.ndarray) -> np.ndarray:
    """1 where the whole string matches the pattern (of Python's `re`), else 0, as int32."""
    try:
        pattern = re.compile(op["pattern"])
    except re.error as error:
        raise ShapeError(f"{op}: the pattern {op['pattern']!r} is wrong: {error}") from error
    return np.array([pattern.fullmatch(v) is not None for v in _text(op, x)], INT32).reshape(x.shape)
