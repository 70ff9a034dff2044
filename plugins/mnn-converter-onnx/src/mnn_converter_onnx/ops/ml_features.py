"""ai.onnx.ml: features, labels and dictionaries."""

from __future__ import annotations

import numpy as np

from mnn_core.ir.dtypes import OBJECT

from ..builder import Builder
from ..node import Node
from ..rules import Unsupported, rule, wrong

ML = "ai.onnx.ml"


def vocabulary(node: Node, b: Builder, *names: str) -> str:
    """The one attribute of several that is given, as a constant."""
    for name in names:
        values = node.attrs.get(name)
        if values is not None and len(values):
            return text_or_numbers(b, values)
    raise Unsupported(f"none of {', '.join(names)} is given")


def text_or_numbers(b: Builder, values: object) -> str:
    """A vector of strings, or of numbers, as a constant."""
    array = np.asarray(values)
    return b.const(array.astype(object) if array.dtype.kind == "U" else array)



@rule("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(node: Node, b: Builder) -> None:
    """Columns of x; a vector counts as one row."""
    x, index = node.inputs
    if b.rank(x) == 1:
        x = b.reshape(x, (1, -1))
    flat = b.reshape(index, (-1,))
    rank = b.rank(x)
    axis = -1 if rank is None else rank - 1
    b.op("GatherV2", [x, flat, b.const(np.int32(axis))], node.outputs, dtype=b.type(x))


@rule("Binarizer", domain=ML)
def binarizer(node: Node, b: Builder) -> None:
    x = node.inputs[0]
    above = b.binary("GREATER", x, b.number(node.get("threshold", 0.0), x), dtype=np.bool_)
    b.cast(above, b.dtype(x), node.outputs)


@rule("Scaler", domain=ML)
def scaler(node: Node, b: Builder) -> None:
    """(x - offset) * scale, as floats."""
    x = b.cast(node.inputs[0], np.float32)
    offset, scale = (np.asarray(node.get(name, (default,)), np.float32) for name, default in (("offset", 0.0), ("scale", 1.0)))
    b.binary("MUL", b.binary("SUB", x, b.const(offset)), b.const(scale), node.outputs, dtype=np.float32)


@rule("Normalizer", domain=ML)
def normalizer(node: Node, b: Builder) -> None:
    """Each row divided by its greatest number, sum of magnitudes or length; rows of zeros stay."""
    kinds = {"MAX": "MAX", "L1": "L1", "L2": "L2"}
    norm = node.get("norm", "MAX")
    if norm not in kinds:
        raise wrong("norm", norm, "'MAX', 'L1' or 'L2'")
    x = b.cast(node.inputs[0], np.float32)
    rank = b.rank(node.inputs[0])
    axis = (1 if rank != 1 else 0,)
    if norm == "MAX":
        size = b.op("Reduction", [x], operation="MAXIMUM", dim=axis, keepDims=True)
    elif norm == "L1":
        size = b.op("Reduction", [b.unary("ABS", x)], operation="SUM", dim=axis, keepDims=True)
    else:
        size = b.unary("SQRT", b.op("Reduction", [b.binary("MUL", x, x)], operation="SUM", dim=axis, keepDims=True))
    zero = b.binary("EQUAL", size, b.const(np.float32(0)), dtype=np.int32)
    divisor = b.op("Select", [zero, b.const(np.float32(1)), size], dtype=np.float32)
    b.binary("REALDIV", x, divisor, node.outputs, dtype=np.float32)


@rule("Imputer", domain=ML)
def imputer(node: Node, b: Builder) -> None:
    """What is NaN, or a given number, becomes a number that is given for all columns or for each."""
    x = node.inputs[0]
    floats = b.is_float(x)
    values = node.attrs.get("imputed_value_floats" if floats else "imputed_value_int64s")
    if values is None or not len(values):
        raise Unsupported("no imputed values of the type of x")
    old = node.get("replaced_value_float", 0.0) if floats else node.get("replaced_value_int64", 0)
    found = b.binary("NOTEQUAL", x, x, dtype=np.int32) if old != old else b.binary("EQUAL", x, b.number(old, x), dtype=np.int32)
    new = b.const(np.asarray(values, np.float32 if floats else np.int64), dtype=b.dtype(x))
    b.op("Select", [found, new, x], node.outputs, dtype=b.dtype(x))


@rule("FeatureVectorizer", domain=ML)
def feature_vectorizer(node: Node, b: Builder) -> None:
    """Rows of all inputs side by side, as floats; each input cut, or filled with zeros, to its number of columns."""
    parts = []
    sizes = node.get("inputdimensions", ())
    for i, name in enumerate(node.inputs):
        part = b.cast(name, np.float32)
        shape = b.shape(name)
        if b.rank(name) == 1:
            part, shape = b.reshape(part, (1, -1)), (1, None if shape is None else shape[0])
        if i < len(sizes) and (shape is None or len(shape) != 2 or shape[1] != sizes[i]):
            filled = b.op("Padding", [part, b.const(np.array([[0, 0], [0, sizes[i]]], np.int32))])
            part = b.op("StridedSlice", [filled, b.ints(0), b.ints(sizes[i]), b.ints(1)], fromType=1)
        parts.append(part)
    b.op("Concat", parts, node.outputs, dtype=np.float32, axis=1)


@rule("OneHotEncoder", domain=ML)
def one_hot_encoder(node: Node, b: Builder) -> None:
    table = vocabulary(node, b, "cats_strings", "cats_int64s")
    b.op("ai.onnx.ml.OneHotEncoder", [node.inputs[0], table], node.outputs, dtype=np.float32, zeros=bool(node.get("zeros", 1)))


@rule("CategoryMapper", domain=ML)
def category_mapper(node: Node, b: Builder) -> None:
    """Between the strings and the integers of a table, in the direction that the type of x asks for."""
    words, numbers = np.asarray(node["cats_strings"]).astype(object), np.asarray(node["cats_int64s"], np.int64)
    if b.dtype(node.inputs[0]) == OBJECT:
        _encode(b, node, words, numbers, node.get("default_int64", -1))
    else:
        _encode(b, node, numbers, words, node.get("default_string", "_Unused"))


def _encode(b: Builder, node: Node, keys: np.ndarray, values: np.ndarray, default: object) -> None:
    inputs = [node.inputs[0], b.const(keys), b.const(values)]
    b.op("ai.onnx.ml.LabelEncoder", inputs, node.outputs, dtype=values.dtype, default=default)


@rule("LabelEncoder", domain=ML, until=1)
def label_encoder_1(node: Node, b: Builder) -> None:
    """Strings to their places in a list, or places to strings."""
    words = np.asarray(node["classes_strings"]).astype(object)
    places = np.arange(len(words))
    if b.dtype(node.inputs[0]) == OBJECT:
        _encode(b, node, words, places, node.get("default_int64", -1))
    else:
        _encode(b, node, places, words, node.get("default_string", "_Unused"))


_KINDS = {"strings": ("default_string", "_Unused"), "int64s": ("default_int64", -1), "floats": ("default_float", -0.0)}


@rule("LabelEncoder", domain=ML, since=2)
def label_encoder(node: Node, b: Builder) -> None:
    """Tables of keys and values, as lists of one type each or as tensors."""
    keys, _ = _table(node, "keys")
    values, kind = _table(node, "values")
    if kind is None:
        given = node.attrs.get("default_tensor")
        fallback: object = {"O": "_Unused", "i": -1, "u": -1}.get(values.dtype.kind, -0.0)
        default = fallback if given is None else np.asarray(given).reshape(-1)[0]
        default = default.item() if isinstance(default, np.generic) else default
    else:
        default = node.get(*_KINDS[kind])
    _encode(b, node, keys, values, default)


def _table(node: Node, what: str) -> tuple[np.ndarray, str | None]:
    if f"{what}_tensor" in node.attrs:
        return np.asarray(node.attrs[f"{what}_tensor"]).reshape(-1), None
    for kind in _KINDS:
        found = node.attrs.get(f"{what}_{kind}")
        if found is not None and len(found):
            array = np.asarray(found)
            return array.astype({"strings": object, "int64s": np.int64, "floats": np.float32}[kind]), kind
    raise Unsupported(f"it has no {what}")


@rule("ZipMap", domain=ML)
def zip_map(node: Node, b: Builder) -> None:
    labels = vocabulary(node, b, "classlabels_strings", "classlabels_int64s")
    b.op("ai.onnx.ml.ZipMap", [node.inputs[0], labels], node.outputs, dtype=("sequence", ("map", np.dtype(np.float32))))


@rule("DictVectorizer", domain=ML)
def dict_vectorizer(node: Node, b: Builder) -> None:
    kind = b.type(node.inputs[0])
    inner = kind[1] if isinstance(kind, tuple) and kind[0] == "map" else np.dtype(np.float32)
    to = "string" if inner == OBJECT else "int32" if inner.kind in "iu" else "float32"
    b.op("ai.onnx.ml.DictVectorizer", [node.inputs[0], vocabulary(node, b, "string_vocabulary", "int64_vocabulary")],
         node.outputs, dtype=inner, to=to)


@rule("CastMap", domain=ML)
def cast_map(node: Node, b: Builder) -> None:
    to = node.get("cast_to", "TO_FLOAT")
    dtypes = {"TO_FLOAT": np.dtype(np.float32), "TO_INT64": np.dtype(np.int64), "TO_STRING": np.dtype(object)}
    if to not in dtypes:
        raise wrong("cast_to", to, f"one of {', '.join(dtypes)}")
    b.op("ai.onnx.ml.CastMap", node.inputs, node.outputs, dtype=dtypes[to], cast_to=to, map_form=node.get("map_form", "DENSE"),
         max_map=node.get("max_map", 1))


@rule("TfIdfVectorizer")
def tf_idf(node: Node, b: Builder) -> None:
    pool = vocabulary(node, b, "pool_strings", "pool_int64s")
    b.op("onnx.TfIdfVectorizer", [node.inputs[0], pool], node.outputs, dtype=np.float32, mode=node["mode"],
         min_gram_length=node["min_gram_length"], max_gram_length=node["max_gram_length"],
         max_skip_count=node["max_skip_count"], ngram_counts=node["ngram_counts"], ngram_indexes=node["ngram_indexes"],
         weights=tuple(node.get("weights", ())))
