"""onnxruntime's activations that take a bias along, as its optimiser makes them."""

from __future__ import annotations

import numpy as np

from ..builder import Builder
from ..node import Node
from ..reuse import MICROSOFT, standard
from ..rules import Unsupported, rule


def biased(b: Builder, x: str, bias: str) -> str:
    """x + bias, if there is one."""
    return b.binary("ADD", x, bias) if bias else x


@rule("Gelu", "BiasGelu", domain=MICROSOFT)
def gelu(node: Node, b: Builder) -> None:
    """The exact form, of x plus an optional bias."""
    b.unary("GELU_STANDARD", biased(b, node.inputs[0], node.input(1)), node.outputs)


@rule("FastGelu", domain=MICROSOFT)
def fast_gelu(node: Node, b: Builder) -> None:
    """The form with tanh."""
    b.unary("GELU", biased(b, node.inputs[0], node.input(1)), node.outputs)


@rule("QuickGelu", domain=MICROSOFT)
def quick_gelu(node: Node, b: Builder) -> None:
    """x * sigmoid(alpha * x)."""
    x, alpha = node.inputs[0], node.get("alpha", 1.702)
    if alpha == 1:
        b.unary("SILU", x, node.outputs)
    else:
        b.binary("MUL", x, b.unary("SIGMOID", b.binary("MUL", x, b.number(alpha, x))), node.outputs)


@rule("BiasSplitGelu", domain=MICROSOFT)
def bias_split_gelu(node: Node, b: Builder) -> None:
    """The left half times the GELU of the right half."""
    whole = biased(b, node.inputs[0], node.inputs[1])
    left, right = (b.context.fresh(f"{b.node_name}/{side}") for side in ("left", "right"))
    b.op("Slice", [whole], [left, right], axis=-1)
    b.binary("MUL", left, b.unary("GELU_STANDARD", right), node.outputs)


@rule("BiasAdd", domain=MICROSOFT)
def bias_add(node: Node, b: Builder) -> None:
    """x + bias + skip."""
    b.binary("ADD", b.binary("ADD", node.inputs[0], node.inputs[1]), node.inputs[2], node.outputs)


@rule("BiasDropout", domain=MICROSOFT)
def bias_dropout(node: Node, b: Builder) -> None:
    """x + bias + residual: nothing is dropped in inference."""
    training = b.value(node.input(4)) if node.input(4) else np.zeros(1)
    if training is None or training.any():
        raise Unsupported("BiasDropout in training mode; export the model for inference")
    x = b.binary("ADD", node.inputs[0], node.inputs[1])
    b.op("Identity", [biased(b, x, node.input(2))], node.outputs[:1])
    if node.output(1):
        b.op("Fill", [b.shape_of(x), b.const(np.array(True))], [node.output(1)], dtype=np.bool_)


@rule("BiasSoftmax", domain=MICROSOFT)
def bias_softmax(node: Node, b: Builder) -> None:
    """Softmax over all axes from `axis` on of x + bias; which dimensions of the bias repeat is told by its shape."""
    total = b.binary("ADD", node.inputs[0], node.inputs[1])
    rank = b.rank(node.inputs[0])
    if rank is not None:
        b.declare(total, None, rank)
    standard(b, "Softmax", [total], node.outputs, 11, axis=node.get("axis", 1))
