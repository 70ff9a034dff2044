"""Operators that work element by element: arithmetic, comparisons, logic, bits, casts."""

from __future__ import annotations

import numpy as np

from mnn_core.ir.dtypes import LOW_PRECISION, OBJECT, dtype_name, stored_dtype

from ..builder import Builder
from ..node import Node
from ..rules import Unsupported, rule, wrong
from ..tensors import declared_dtype, element

_UNARY = {
    "Abs": "ABS", "Acos": "ACOS", "Acosh": "ACOSH", "Asin": "ASIN", "Asinh": "ASINH", "Atan": "ATAN", "ATan": "ATAN",
    "Atanh": "ATANH", "Ceil": "CEIL", "Cos": "COS", "Cosh": "COSH", "Erf": "ERF", "Erfc": "ERFC", "Erfinv": "ERFINV",
    "Exp": "EXP", "Expm1": "EXPM1", "Floor": "FLOOR", "Log": "LOG", "Log1p": "LOG1P", "Neg": "NEG",
    "Reciprocal": "RECIPROCAL", "Round": "ROUND",
    "Sigmoid": "SIGMOID", "Sign": "SIGN", "Sin": "SIN", "Sinh": "SINH", "Sqrt": "SQRT", "Tan": "TAN", "Tanh": "TANH",
    "HardSwish": "HARDSWISH",
}
_BINARY = {"Add": "ADD", "Sub": "SUB", "Mul": "MUL", "Div": "REALDIV", "And": "MUL"}
_COMPARE = {"Equal": "EQUAL", "Greater": "GREATER", "GreaterOrEqual": "GREATER_EQUAL", "Less": "LESS",
            "LessOrEqual": "LESS_EQUAL", "Or": "LOGICALOR", "Xor": "LOGICALXOR"}
_BITS = {"BitwiseAnd": "BITWISE_AND", "BitwiseOr": "BITWISE_OR", "BitwiseXor": "BITWISE_XOR"}


@rule(*_UNARY)
def unary(node: Node, b: Builder) -> None:
    b.unary(_UNARY[node.op_type], node.inputs[0], node.outputs)


@rule("Gelu")
def gelu(node: Node, b: Builder) -> None:
    kinds = {"none": "GELU_STANDARD", "tanh": "GELU"}
    kind = node.get("approximate", "none")
    if kind not in kinds:
        raise wrong("approximate", kind, "'none' or 'tanh'")
    b.unary(kinds[kind], node.inputs[0], node.outputs)


@rule("Swish")
def swish(node: Node, b: Builder) -> None:
    x, alpha = node.inputs[0], node.get("alpha", 1.0)
    if alpha == 1:
        b.unary("SILU", x, node.outputs)
    else:
        b.binary("MUL", x, b.unary("SIGMOID", b.binary("MUL", x, b.number(alpha, x))), node.outputs)


@rule(*_BINARY)
def arithmetic(node: Node, b: Builder) -> None:
    b.binary(_BINARY[node.op_type], *_pair(node, b), node.outputs)


@rule(*_COMPARE)
def compare(node: Node, b: Builder) -> None:
    b.binary(_COMPARE[node.op_type], *_pair(node, b), node.outputs, dtype=np.bool_)


@rule(*_BITS)
def bitwise(node: Node, b: Builder) -> None:
    b.binary(_BITS[node.op_type], *_pair(node, b), node.outputs)


@rule("BitwiseNot")
def bitwise_not(node: Node, b: Builder) -> None:
    x = node.inputs[0]
    kind = b.dtype(x)
    ones = np.iinfo(kind).max if kind.kind == "u" and kind.itemsize < 4 else -1  # wider ones are computed as int32
    b.binary("BITWISE_XOR", x, b.number(ones, x), node.outputs)


@rule("BitShift")
def bit_shift(node: Node, b: Builder) -> None:
    kinds = {"LEFT": "LEFTSHIFT", "RIGHT": "RIGHTSHIFT"}
    if node["direction"] not in kinds:
        raise wrong("direction", node["direction"], "'LEFT' or 'RIGHT'")
    b.binary(kinds[node["direction"]], node.inputs[0], node.inputs[1], node.outputs)


def _pair(node: Node, b: Builder) -> tuple[str, str]:
    """Both operands; before opset 7 the second could be aligned to an axis of the first."""
    x, y = node.inputs[0], node.inputs[1]
    if node.get("broadcast", 0) and "axis" in node.attrs and node.version < 7:
        rank_x, rank_y = b.rank(x), b.rank(y)
        if rank_x is None or rank_y is None:
            raise Unsupported("broadcasting along an axis needs known ranks")
        missing = rank_x - node["axis"] % rank_x - rank_y
        if missing:
            y = b.op("Unsqueeze", [y], squeezeDims=tuple(range(rank_y, rank_y + missing)))
    return x, y


@rule("Not")
def logical_not(node: Node, b: Builder) -> None:
    b.binary("EQUAL", node.inputs[0], b.const(np.int32(0)), node.outputs, dtype=np.bool_)


@rule("Mod")
def mod(node: Node, b: Builder) -> None:
    x, y = node.inputs[0], node.inputs[1]
    if not node.get("fmod", 0):
        b.binary("FLOORMOD" if b.is_float(x) else "MOD", x, y, node.outputs)
    elif b.is_float(x):
        b.binary("MOD", x, y, node.outputs)
    else:  # the sign of the dividend: x - trunc(x / y) * y
        b.binary("SUB", x, b.binary("MUL", b.binary("REALDIV", x, y), y), node.outputs)


@rule("Pow")
def power(node: Node, b: Builder) -> None:
    x, y = node.inputs[0], node.inputs[1]
    if b.is_float(x) == b.is_float(y):
        b.binary("POW", x, b.cast(y, b.dtype(x)), node.outputs)
    elif b.is_float(x):
        b.binary("POW", x, b.cast(y, np.float32), node.outputs)
    else:
        b.cast(b.binary("POW", b.cast(x, np.float32), y), b.dtype(x), node.outputs)


@rule("Max", "Min")
def extremum(node: Node, b: Builder) -> None:
    _chain(node, b, "MAXIMUM" if node.op_type == "Max" else "MINIMUM", node.outputs)


@rule("Sum")
def total(node: Node, b: Builder) -> None:
    _chain(node, b, "ADD", node.outputs)


@rule("Mean")
def mean(node: Node, b: Builder) -> None:
    x = node.inputs[0]
    b.binary("MUL", _chain(node, b, "ADD", 1), b.number(1 / len(node.inputs), x), node.outputs)


def _chain(node: Node, b: Builder, kind: str, outputs: list[str] | int) -> str:
    """All inputs, joined from left to right."""
    if len(node.inputs) == 1:
        return b.op("Identity", node.inputs, outputs)
    value = node.inputs[0]
    for y in node.inputs[1:-1]:
        value = b.binary(kind, value, y)
    return b.binary(kind, value, node.inputs[-1], outputs)


@rule("Where")
def where(node: Node, b: Builder) -> None:
    """MNN does not repeat the last operand alone: one that must be comes first, with the condition undone."""
    condition, x, y = node.inputs[:3]
    shapes = [b.shape(n) for n in (condition, x, y)]
    known = [s for s in shapes if s is not None and None not in s]
    if len(known) == 3 and shapes[0] == shapes[1] != shapes[2]:
        condition, x, y = b.binary("EQUAL", condition, b.const(np.int32(0)), dtype=np.bool_), y, x
    b.op("Select", [condition, x, y], node.outputs, dtype=b.dtype(node.inputs[1]))


@rule("Cast")
def cast(node: Node, b: Builder) -> None:
    to = node["to"]
    _cast(node, b, declared_dtype(to if isinstance(to, int) else -1, "the target of the cast"))


@rule("CastLike")
def cast_like(node: Node, b: Builder) -> None:
    _cast(node, b, element(b.type(node.inputs[1])))


def _cast(node: Node, b: Builder, dtype: np.dtype) -> None:
    x = node.inputs[0]
    source = b.dtype(x)
    if source == OBJECT or dtype == OBJECT:
        _cast_text(node, b, dtype)
    elif dtype.name in LOW_PRECISION and dtype.name != "bfloat16":
        b.op("onnx.Cast", [x], node.outputs, dtype=dtype, to=dtype.name, saturate=bool(node.get("saturate", 1)),
             round_mode=node.get("round_mode", "up"))
    elif dtype.kind == "b" and source.kind != "b":
        b.binary("NOTEQUAL", x, b.number(0, x), node.outputs, dtype=np.bool_)
    elif dtype.kind in "iu" and dtype.itemsize == 2 and source != dtype:
        b.op("Cast", [x], node.outputs, dtype=dtype, dstT="DT_INT16" if dtype.kind == "i" else "DT_UINT16")
    elif stored_dtype(source) == stored_dtype(dtype):
        b.op("Identity", [x], node.outputs, dtype=dtype)
    else:
        b.cast(x, dtype, node.outputs)


def _cast_text(node: Node, b: Builder, dtype: np.dtype) -> None:
    """Between text and numbers. Truth values are written as numbers are."""
    x = node.inputs[0]
    if dtype == OBJECT:
        b.op("AsString", [x], node.outputs, dtype=dtype)
        return
    number = stored_dtype(dtype)
    whole = number.kind in "iu" and dtype.kind != "b"
    found = b.op("StringToNumber", [x], dtype=np.int32 if whole else np.float32, to="int32" if whole else "float32")
    if dtype.kind == "b":
        b.binary("NOTEQUAL", found, b.number(0, found), node.outputs, dtype=np.bool_)
    else:
        b.op("Cast", [found], node.outputs, dtype=dtype, dstT=dtype_name(number))


@rule("IsNaN")
def is_nan(node: Node, b: Builder) -> None:
    b.binary("NOTEQUAL", node.inputs[0], node.inputs[0], node.outputs, dtype=np.bool_)


@rule("IsInf")
def is_inf(node: Node, b: Builder) -> None:
    x = node.inputs[0]
    positive, negative = node.get("detect_positive", 1), node.get("detect_negative", 1)
    if positive and negative:
        x = b.unary("ABS", x)
    elif not positive and not negative:
        b.binary("LESS", b.unary("ABS", x), b.number(-1, x), node.outputs, dtype=np.bool_)
        return
    b.binary("EQUAL", x, b.number(np.inf if positive else -np.inf, x), node.outputs, dtype=np.bool_)
