"""What an op is: schema, shape inference, optional lowering, and its meaning in NumPy, registered in one place.

    @register("Softmax", param="Axis", infer=like_first)
    def softmax(op: Op, x: np.ndarray) -> np.ndarray:
        ...

The decorated function is the reference kernel: it receives the op and one array per input (None where an optional input
is absent) and returns one array, or a tuple of arrays for several outputs. It must return exactly the shapes and
dtypes that `infer` announced; the reference backend checks that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import GraphError, UnsupportedOpError
from ..ir import Op, Spec, schema

Compute = Callable[..., Any]
#: (op, inputs) -> output specs; an absent optional input is None. Raises ShapeError.
Infer = Callable[[Op, Sequence["Spec | None"]], Sequence[Spec]]
#: (op, inputs, outputs) -> simpler ops that make the same outputs, or None to leave the op as it is.
Lower = Callable[[Op, Sequence["Spec | None"], Sequence[Spec]], "Lowered | None"]


@dataclass
class Lowered:
    """What an op was lowered to: ops, and the constants that they read."""

    ops: list[Op]
    constants: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Example:
    """An instance of an op to test, document and benchmark with: inputs are Specs (random data) or arrays."""

    attrs: Mapping[str, Any]
    inputs: Sequence[Spec | np.ndarray | None]
    tolerance: float = 1e-5
    name: str = ""


@dataclass(frozen=True)
class OpDef:
    """Everything the core knows of an op type.

    content: indices of inputs whose *values* `infer` needs (the shape of Reshape); if such a value is unknown at plan time,
    the plan is split there. dynamic: the output shape depends on the data, so the op is run and then looked at
    (Where, Unique, NonMaxSuppression); infer is not called for it. pure: same inputs give same outputs, so that it
    may be folded. geometry: only moves data; always lowered to Raster.
    onnx: "domain.Name" of an ONNX operator that maps to this custom op with equal attribute names.
    """

    type: str
    compute: Compute
    infer: Infer
    lower: Lower | None = None
    param: str | None = None
    content: tuple[int, ...] = ()
    dynamic: bool = False
    pure: bool = True
    geometry: bool = False
    onnx: str | None = None
    examples: tuple[Example, ...] = ()


_registry: dict[str, OpDef] = {}


def like_first(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    """Shape rule: the output is as the first input."""
    first = inputs[0]
    if first is None:
        raise GraphError(f"{op}: its first input is missing")
    return [first.without_value()]


def register(
    op_type: str,
    *,
    param: str | None = None,
    attrs: Mapping[str, Any] | None = None,
    infer: Infer = like_first,
    lower: Lower | None = None,
    content: tuple[int, ...] = (),
    dynamic: bool = False,
    pure: bool = True,
    geometry: bool = False,
    onnx: str | None = None,
    examples: Sequence[Example] = (),
) -> Callable[[Compute], Compute]:
    """Registers an op; decorates its NumPy kernel. See OpDef for the arguments.

    param: MNN parameter table that holds its attributes; attrs: further attributes (custom ops), name -> default.
    Raises GraphError if the type is registered already.
    """

    def add(compute: Compute) -> Compute:
        if op_type in _registry:
            raise GraphError(f"op type {op_type!r} is registered already, by {_registry[op_type].compute.__module__}")
        schema.declare(op_type, param, attrs)
        _registry[op_type] = OpDef(op_type, compute, infer, lower, param, content, dynamic, pure, geometry, onnx,
                                   tuple(examples))
        return compute

    return add


def find(op_type: str) -> OpDef | None:
    """The definition of an op type, or None."""
    return _registry.get(op_type)


def definition(op: Op) -> OpDef:
    """The definition of an op's type. Raises UnsupportedOpError naming the op."""
    found = _registry.get(op.type)
    if found is None:
        raise UnsupportedOpError(f"{op}: no definition of op type {op.type!r} is loaded; if it is a custom op, install the "
                                 "package that registers it (`mnn plugins list` shows what is found)")
    return found


def all_ops() -> Mapping[str, OpDef]:
    """Every registered op type."""
    return _registry
