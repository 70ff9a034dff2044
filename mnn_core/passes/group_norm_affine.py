"""A norm in groups of channels, its factor and bias for each channel, and SILU behind it, become one GroupNorm.

The norms of diffusion networks. MNN has the op on few of its backends, not on CPUs: the pass is off unless asked for.
"""

from __future__ import annotations

import numpy as np

from ..ir import Graph, Op
from . import Pass
from ._shapes import Shapes
from ._view import View, is_binary


def _per_channel(view: View, name: str, channels: int, rank: int) -> np.ndarray | None:
    """The numbers of a constant that broadcasts along dimension 1 only, one for each channel."""
    array = view.array(name)
    if array is None or array.dtype != np.float32 or array.ndim > rank:
        return None
    full = (1,) * (rank - array.ndim) + array.shape
    return array.reshape(-1) if full == (1, channels, *[1] * (rank - 2)) else None


def _affine(view: View, op: Op, channels: int, rank: int) -> tuple[str, str, str] | None:
    """(normalised tensor, factors, biases) of Scale, or of a product and a sum."""
    if op.type == "Scale" and len(op.inputs) == 3:
        return op.inputs[0], op.inputs[1], op.inputs[2]
    for scaled, bias in (op.inputs, op.inputs[::-1]) if is_binary(op, "ADD") else ():
        product, shift = view.producer(scaled), _per_channel(view, bias, channels, rank)
        if product is None or shift is None or not is_binary(product, "MUL") or not view.only_here(scaled):
            continue
        for x, by in (product.inputs, product.inputs[::-1]):
            factor = _per_channel(view, by, channels, rank)
            if factor is not None:
                return x, view.constant(f"{op.outputs[0]}/gamma", factor), view.constant(f"{op.outputs[0]}/beta", shift)
    return None


def run(graph: Graph) -> int:
    """First the factors, then SILU, if nothing else reads what is between."""
    view, shapes = View(graph), Shapes(graph)
    for op in graph.ops:
        if op.type == "UnaryOp" and op["opType"] == "SILU":
            norm = view.producer(op.inputs[0], "GroupNorm")
            if norm is not None and not norm["bSwish"] and view.only_here(op.inputs[0]):
                view.change(op, "GroupNorm", norm.inputs, {**norm.attrs, "bSwish": 1})
            continue
        x = shapes.shapes.get(op.outputs[0]) if op.type == "Scale" or is_binary(op, "ADD") else None
        if x is None or len(x) < 3 or not isinstance(x[1], int):
            continue
        found = _affine(view, op, x[1], len(x))
        norm = view.producer(found[0], "LayerNorm") if found is not None else None
        if found is not None and norm is not None and norm["group"] > 1 and len(norm.inputs) == 1 and \
                not norm["useRMSNorm"] and len(norm.outputs) == 1 and view.only_here(found[0]):
            view.change(op, "GroupNorm", [norm.inputs[0], *found[1:]], {"group": norm["group"], "epsilon": norm["epsilon"]})
    return view.finish()


group_norm_affine = Pass("group-norm-affine", run, "group norms take in factors and SILU (with --transformer-fuse)",
                         main_only=True)
