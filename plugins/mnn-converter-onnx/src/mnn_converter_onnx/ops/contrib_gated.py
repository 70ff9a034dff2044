"""onnxruntime's gates and the normalisations that go with them, of newer language models."""

from __future__ import annotations

import numpy as np

from ..builder import Builder
from ..heads import part
from ..node import Node
from ..reuse import MICROSOFT, standard
from ..rules import Unsupported, rule, wrong


@rule("ScaledSiLU", domain=MICROSOFT)
def scaled_silu(node: Node, b: Builder) -> None:
    """SiLU of x times a scale: an input, or else alpha."""
    x, alpha = node.inputs[0], node.get("alpha", 1.0)
    if node.input(1):
        x = b.binary("MUL", x, b.reshape(node.input(1), ()))
    elif alpha != 1:
        x = b.binary("MUL", x, b.number(alpha, x))
    b.unary("SILU", x, node.outputs, dtype=b.dtype(node.inputs[0]))


@rule("GatedAdd", domain=MICROSOFT)
def gated_add(node: Node, b: Builder) -> None:
    """X + Y * gate, a number for each row."""
    if node.input(3):
        raise Unsupported("gate_weight, which only a graphics processor has")
    x, y, gate = node.inputs[:3]
    b.binary("ADD", x, b.binary("MUL", y, gate), node.outputs)


@rule("SwiGLU", domain=MICROSOFT)
def swiglu(node: Node, b: Builder) -> None:
    """gate * sigmoid(alpha * gate) * (up + beta), both clamped if there is a limit; they may come as halves of one tensor."""
    gate, up = node.inputs[0], node.input(1)
    alpha, beta, limit = node.get("activation_alpha", 1.0), node.get("activation_beta", 0.0), node.get("limit", 0.0)
    if not up:
        whole, gate, up = gate, *(b.context.fresh(f"{b.node_name}/{name}") for name in ("gate", "up"))
        b.op("Slice", [whole], [gate, up], axis=-1, slicePoints=(2,), sourceType="TENSORFLOW")
    if limit > 0:
        gate = b.op("ReLU6", [gate], minValue=float(np.finfo(np.float32).min), maxValue=float(limit))
        up = b.op("ReLU6", [up], minValue=-float(limit), maxValue=float(limit))
    if alpha == 1:
        activated = b.unary("SILU", gate)
    else:
        activated = b.binary("MUL", gate, b.unary("SIGMOID", b.binary("MUL", gate, b.number(alpha, gate))))
    b.binary("MUL", activated, b.binary("ADD", up, b.number(beta, up)) if beta else up, node.outputs)


@rule("GatedRMSNorm", domain=MICROSOFT)
def gated_rms_norm(node: Node, b: Builder) -> None:
    """x by the root mean square of each group as long as the scale, times the scale and an activation of the gate."""
    x, scale, gate = node.inputs[:3]
    kinds = {"silu": "SILU", "swish": "SILU", "sigmoid": "SIGMOID"}
    kind = node.get("activation", "silu")
    if kind not in kinds:
        raise wrong("activation", kind, f"one of {', '.join(kinds)}")
    normal = _by_groups(b, x, scale, node.get("epsilon", 1e-5))
    b.binary("MUL", normal, b.unary(kinds[kind], gate), node.outputs)


def _by_groups(b: Builder, x: str, scale: str, epsilon: float) -> str:
    """Each row of x is cut in groups as long as the scale; each is divided by its root mean square."""
    count = b.op("Shape", [scale], dtype=np.int64)
    shape = b.op("Concat", [b.ints(-1), count], axis=0)
    rows = b.op("Reshape", [x, shape], dtype=b.dtype(x))
    normal = b.binary("MUL", b.op("LayerNorm", [rows], axis=(-1,), epsilon=epsilon, useRMSNorm=True), scale)
    back = b.op("Reshape", [normal, b.shape_of(x)], dtype=b.dtype(x))
    b.declare(back, b.dtype(x), b.rank(x))
    return back


@rule("BranchwiseRMSNorm", domain=MICROSOFT)
def branchwise_rms_norm(node: Node, b: Builder) -> None:
    """Each branch (.., C, H), or part of (.., C * H), by its root mean square; the scale is of one branch or of all."""
    x, scale, branches = node.inputs[0], node.input(1), node.get("num_branches", 0)
    rank = b.rank(x)
    if rank is None:
        raise Unsupported("a tensor of unknown rank")
    grouped = b.reshape(x, (*[0] * (rank - 1), branches, -1)) if branches else x
    y = b.op("LayerNorm", [grouped], axis=(-1,), epsilon=node.get("epsilon", 1e-5), useRMSNorm=True)
    if scale:  # as (1, H) or (C, H)
        width = b.reshape(b.size(grouped, rank if branches else rank - 1), (1,))
        rows = b.op("Reshape", [scale, b.op("Concat", [b.ints(-1), width], axis=0)], dtype=b.dtype(scale))
        y = b.binary("MUL", y, rows)
    if branches:
        b.op("Reshape", [y, b.shape_of(x)], node.outputs, dtype=b.dtype(x))
    else:
        b.op("Identity", [y], node.outputs)


@rule("CausalConvWithState", domain=MICROSOFT)
def causal_conv_with_state(node: Node, b: Builder) -> None:
    """A depthwise convolution of (B, C, L) that looks back only; the second output is what the next call must know."""
    x, weight, bias, past = (node.input(i) for i in range(4))
    shape, kind, dilation = b.shape(weight), node.get("activation", "none"), node.get("dilation", 1)
    plain = node.get("ndim", 1) == 1 and not node.get("channels_last", 0) and not node.get("state_window", 0)
    if not plain or node.output(2) or shape is None or len(shape) != 3 or None in shape:
        raise Unsupported("another form than that of one dimension, channels first, with a weight of known shape")
    if kind not in ("none", "silu", "swish"):
        raise wrong("activation", kind, "'none', 'silu' or 'swish'")
    channels, kernel = int(shape[0] or 0), int(shape[2] or 0)
    length = (kernel - 1) * dilation
    if past:
        longer = b.op("Concat", [past, x], axis=2)
    else:
        longer = b.op("Padding", [x, b.ints(0, 0, 0, 0, length, 0), b.number(0, x)], mode="CONSTANT")
    b.declare(longer, b.dtype(x), 3)
    y = standard(b, "Conv", [longer, weight, *([bias] if bias else [])], 1 if kind != "none" else node.outputs[:1], 11,
                 group=channels, kernel_shape=(kernel,), dilations=(dilation,))
    if kind != "none":
        b.unary("SILU", y, node.outputs[:1])
    if node.output(1):
        start = b.binary("SUB", b.size(longer, 2), b.const(np.int32(length)))
        b.identity(part(b, longer, 2, start, 2**31 - 1), node.output(1))
