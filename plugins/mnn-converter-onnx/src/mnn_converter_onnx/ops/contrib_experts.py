"""onnxruntime's mixtures of experts, with weights as floats or of few bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from mnn_core import ModelFormatError

from ..builder import Builder
from ..node import Node
from ..packed import constant, unpack, zero_points
from ..reuse import MICROSOFT
from ..rules import Unsupported, rule, wrong

_KINDS = ("relu", "gelu", "silu", "swiglu", "identity")


def _attributes(node: Node) -> dict[str, Any]:
    kind = node.get("activation_type", "relu")
    if kind not in _KINDS:
        raise wrong("activation_type", kind, f"one of {', '.join(_KINDS)}")
    for name in ("use_sparse_mixer", "swiglu_limit_after_activation"):
        if node.get(name, 0):
            raise Unsupported(f"{name}, which no CPU kernel of onnxruntime has")
    attrs = {"k": node.get("k", 1), "activation_type": kind,
             "normalize_routing_weights": node.get("normalize_routing_weights", 0),
             "activation_alpha": float(node.get("activation_alpha", 1.0)),
             "activation_beta": float(node.get("activation_beta", 0.0)), "swiglu_fusion": node.get("swiglu_fusion", 0)}
    if "swiglu_limit" in node.attrs:
        attrs["swiglu_limit"] = float(node["swiglu_limit"])
    return attrs


@rule("MoE", domain=MICROSOFT)
def moe(node: Node, b: Builder) -> None:
    """Each token goes to the k experts that the router scores highest."""
    y = b.op("com.microsoft.MoE", node.inputs[:8], node.outputs, **_attributes(node))
    b.declare(y, b.dtype(node.inputs[0]), b.rank(node.inputs[0]))


@rule("QMoE", domain=MICROSOFT)
def quantized_moe(node: Node, b: Builder) -> None:
    """MoE whose weights are decoded when the model is converted."""
    if node.get("quant_type", "int") != "int" or node.get("weights_prepacked", -1) > 0:
        raise Unsupported("weights of floats of few bits, or in a layout of one processor; export with quant_type 'int'")
    x, router = node.inputs[:2]
    inputs = [x, router]
    for layer in range(3):
        codes, scales, bias, zeros = (node.input(i) for i in (2 + 3 * layer, 3 + 3 * layer, 4 + 3 * layer, 11 + layer))
        weight = ""
        if codes:
            bits = node.get(f"fc{layer + 1}_expert_weight_bits", node.get("expert_weight_bits", 4))
            weight = _weight(node, b, codes, scales, zeros, bits)
        inputs += [weight, bias]
    y = b.op("com.microsoft.MoE", [*inputs, node.input(14)], node.outputs, **_attributes(node))
    b.declare(y, b.dtype(x), b.rank(x))


def _weight(node: Node, b: Builder, codes: str, scales: str, zeros: str, bits: int) -> str:
    """(experts, outputs, inputs) as floats; scales (experts, outputs), or one for each block of inputs besides."""
    data = constant(b, codes, "weights of experts")
    factors = constant(b, scales, "scales of experts").astype(np.float32)
    given = constant(b, zeros, "zero points of experts") if zeros else None
    if data.ndim != 3 or factors.ndim not in (2, 3):
        raise ModelFormatError(f"{node}: weights {list(data.shape)} with scales {list(factors.shape)}")
    values = unpack(data, bits, data.shape[-1] * 8 // bits).astype(np.float32)
    points = zero_points(given, bits, factors.shape)
    if factors.ndim == 2:
        factors, points = factors[..., None], points[..., None]
    block, odd = divmod(values.shape[-1], factors.shape[-1])
    if odd or factors.shape[:2] != values.shape[:2]:
        raise ModelFormatError(f"{node}: weights {list(values.shape)} with scales {list(factors.shape)}")
    split = values.reshape(*factors.shape, block)
    return b.const(((split - points[..., None]) * factors[..., None]).reshape(values.shape))
