"""onnxruntime's matrix products: with transposed operands, factors, biases and activations."""

from __future__ import annotations

from ..builder import Builder
from ..node import Node
from ..reuse import MICROSOFT, activation, standard
from ..rules import Unsupported, rule
from .contrib_activation import biased


@rule("FusedMatMul", "TransposeMatMul", domain=MICROSOFT)
def fused_matmul(node: Node, b: Builder) -> None:
    """alpha * A' @ B'."""
    _product(node, b, node.outputs)


@rule("FusedMatMulActivation", domain=MICROSOFT)
def fused_matmul_activation(node: Node, b: Builder) -> None:
    """activation(alpha * A' @ B')."""
    _activated(node, b, _product(node, b, 1))


def _product(node: Node, b: Builder, outputs: list[str] | int) -> str:
    x, y = node.inputs[:2]
    flags = []
    for side, name in (("A", x), ("B", y)):
        rank = b.rank(name)
        rows = bool(node.get(f"trans{side}", 0))
        flags.append(rows and rank != 1)
        if node.get(f"transBatch{side}", 0):
            if rank is None:
                raise Unsupported(f"transBatch{side} of a tensor of unknown rank")
            if rank > 2:  # the first dimension moves behind the batches
                moved = b.op("Permute", [name], dims=(*range(1, rank - 1), 0, rank - 1))
                x, y = (moved, y) if side == "A" else (x, moved)
    alpha = node.get("alpha", 1.0)
    if alpha != 1 and b.value(y) is not None:
        y = b.binary("MUL", y, b.number(alpha, y))
    elif alpha != 1:
        x = b.binary("MUL", x, b.number(alpha, x))
    product = b.op("MatMul", [x, y], outputs, transposeA=flags[0], transposeB=flags[1])
    ranks = [b.rank(n) for n in node.inputs[:2]]
    if None not in ranks and min(r or 0 for r in ranks) >= 2:
        b.declare(product, None, max(r or 0 for r in ranks))
    return product


def _activated(node: Node, b: Builder, x: str) -> None:
    kind = node["activation"]
    names = ("alpha", "beta", "gamma", "axis")
    attrs = {name: node[f"activation_{name}"] for name in names if f"activation_{name}" in node.attrs}
    if kind == "Clip":
        attrs = {"min": attrs.get("alpha", -3.4028235e38), "max": attrs.get("beta", 3.4028235e38)}
    if kind in ("ScaledTanh", "ParametricSoftplus", "Affine"):
        raise Unsupported(f"activation {kind!r}, an operator that ONNX has withdrawn")
    activation(b, kind, x, node.outputs, **attrs)


@rule("FusedGemm", domain=MICROSOFT)
def fused_gemm(node: Node, b: Builder) -> None:
    """activation(alpha * A' @ B' + beta * C)."""
    attrs = {name: node[name] for name in ("alpha", "beta", "transA", "transB") if name in node.attrs}
    if not node.get("activation", ""):
        standard(b, "Gemm", node.inputs, node.outputs, 13, **attrs)
        return
    y = standard(b, "Gemm", node.inputs, 1, 13, **attrs)
    b.declare(y, None, 2)
    _activated(node, b, y)


@rule("GemmFastGelu", domain=MICROSOFT)
def gemm_fast_gelu(node: Node, b: Builder) -> None:
    """GELU in its form with tanh, of x @ W + bias."""
    b.unary("GELU", biased(b, b.op("MatMul", node.inputs[:2]), node.input(2)), node.outputs)
