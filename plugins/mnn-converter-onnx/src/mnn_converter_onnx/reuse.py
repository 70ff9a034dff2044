"""Conversion rules that go through those of standard operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import rules
from .builder import Builder
from .node import Node
from .rules import Unsupported

#: Domain of onnxruntime's own operators.
MICROSOFT = "com.microsoft"


def standard(b: Builder, op_type: str, inputs: Sequence[str], outputs: Sequence[str] | int = 1, version: int = 22,
             **attrs: Any) -> str:
    """Adds what a standard operator of some operator-set version converts to; returns its first output.

    outputs: names, or how many new tensors. Raises Unsupported as the operator's rule does.
    """
    found = rules.find("", op_type, version)
    if found is None:
        raise Unsupported(f"it needs the conversion of {op_type}, which there is none of")
    stem = b.node_name or op_type
    names = [b.context.fresh(f"{stem}/{op_type}") for _ in range(outputs)] if isinstance(outputs, int) else list(outputs)
    found.convert(Node(op_type, "", version, stem, list(inputs), names, attrs), b)
    return names[0]


def activation(b: Builder, kind: str, x: str, outputs: Sequence[str] | int = 1, **attrs: Any) -> str:
    """Adds an activation that onnxruntime fuses into other operators, by the name and attributes of the standard operator."""
    if kind in ("", "Identity"):
        return b.op("Identity", [x], outputs)
    if kind not in _ACTIVATIONS:
        raise Unsupported(f"activation {kind!r} is not supported; expected one of {', '.join(sorted(_ACTIVATIONS))}")
    known = {name: value for name, value in attrs.items() if name in _ACTIVATIONS[kind]}
    return standard(b, kind, [x], outputs, 9 if kind in ("Clip", "Softmax") else 22, **known)


#: Activations, with those attributes of the standard operators that they use.
_ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "Relu": (), "Sigmoid": (), "Tanh": (), "Softplus": (), "Softsign": (), "HardSwish": (), "LeakyRelu": ("alpha",),
    "Elu": ("alpha",), "Selu": ("alpha", "gamma"), "ThresholdedRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"),
    "Clip": ("min", "max"), "Gelu": ("approximate",), "Softmax": ("axis",),
}
