"""onnxruntime's convolutions and poolings: fused with sums and activations, and of channels-last images."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..builder import Builder
from ..node import Node
from ..reuse import MICROSOFT, activation, standard
from ..rules import Unsupported, rule

_OWN = ("activation", "activation_params")


@rule("FusedConv", domain=MICROSOFT)
def fused_conv(node: Node, b: Builder) -> None:
    """activation(Conv(X, W, B) + Z)."""
    attrs = {name: value for name, value in node.attrs.items() if name not in _OWN}
    kind, z = node.get("activation", ""), node.input(3)
    plain = not z and not kind
    y = standard(b, "Conv", [n for n in node.inputs[:3] if n], node.outputs if plain else 1, 11, **attrs)
    if z:
        y = b.binary("ADD", y, z, 1 if kind else node.outputs)
    if kind:
        activation(b, kind, y, node.outputs, **_parameters(node, kind))


def _parameters(node: Node, kind: str) -> dict[str, Any]:
    """activation_params under the names of the standard operator's attributes."""
    names = {"LeakyRelu": ("alpha",), "Clip": ("min", "max"), "HardSigmoid": ("alpha", "beta")}.get(kind, ())
    return dict(zip(names, (float(v) for v in node.get("activation_params", ()))))


def _permuted(b: Builder, x: str, to_planes: bool, rank: int, outputs: list[str] | int = 1) -> str:
    """Channels from the end to dimension 1, or back."""
    order = (0, rank - 1, *range(1, rank - 1)) if to_planes else (0, *range(2, rank), 1)
    return b.op("Permute", [x], outputs, dims=order)


@rule("NhwcConv", "NhwcFusedConv", domain=MICROSOFT)
def nhwc_conv(node: Node, b: Builder) -> None:
    """FusedConv of channels-last images; weights are as everywhere."""
    rank = b.rank(node.inputs[1])
    if rank is None:
        raise Unsupported("a weight of unknown rank")
    inputs = [_permuted(b, node.inputs[0], True, rank), *node.inputs[1:3]]
    if node.input(3):
        inputs = [*inputs, *[""] * (3 - len(inputs)), _permuted(b, node.input(3), True, rank)]
    made = b.context.fresh(f"{b.node_name}/planes")
    fused_conv(Node("FusedConv", MICROSOFT, 1, node.name, inputs, [made], node.attrs), b)
    _permuted(b, made, False, rank, node.outputs)


@rule("NhwcMaxPool", domain=MICROSOFT)
def nhwc_max_pool(node: Node, b: Builder) -> None:
    """MaxPool of channels-last images, of 8-bit numbers as a rule, which floats hold exactly."""
    rank, dtype = len(node["kernel_shape"]) + 2, b.dtype(node.inputs[0])
    x = _permuted(b, b.cast(node.inputs[0], np.float32), True, rank)
    y = standard(b, "MaxPool", [x], 1, 12, **node.attrs)
    if dtype.kind == "f":
        _permuted(b, y, False, rank, node.outputs)
    else:
        b.cast(_permuted(b, y, False, rank), dtype, node.outputs)


@rule("ConvTransposeWithDynamicPads", domain=MICROSOFT)
def conv_transpose_with_dynamic_pads(node: Node, b: Builder) -> None:
    """ConvTranspose whose pads are an input, which must be constant here."""
    attrs = dict(node.attrs)
    if node.input(2):
        pads = b.vector(node.input(2), f"{node}: Pads")
        if pads is None:
            raise Unsupported("pads that are calculated when the model runs; make them constant")
        attrs["pads"] = pads
    inputs = [*node.inputs[:2], *([node.input(3)] if node.input(3) else [])]
    standard(b, "ConvTranspose", inputs, node.outputs, 11, **attrs)
