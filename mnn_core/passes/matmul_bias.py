"""A vector that is added to a matrix product becomes its bias."""

from __future__ import annotations

from ..ir import Graph
from . import Pass
from ._view import View, is_binary


def run(graph: Graph) -> int:
    """Fuses ADD of a constant vector into a MatMul whose second factor is a constant matrix."""
    view = View(graph)
    for op in graph.ops:
        if not is_binary(op, "ADD"):
            continue
        for x, other in (op.inputs, op.inputs[::-1]):
            product, bias = view.producer(x, "MatMul"), view.array(other)
            if product is None or bias is None or len(product.inputs) != 2 or not view.only_here(x):
                continue
            factor = view.array(product.inputs[1])
            if factor is None or factor.ndim != 2 or factor.dtype != bias.dtype:
                continue
            columns = factor.shape[0 if product["transposeB"] else 1]
            if bias.shape not in ((columns,), (1, columns)) or (bias.ndim == 2 and view.array(product.inputs[0]) is not None):
                continue
            if bias.ndim == 2:
                if not product["transposeA"] and len(op.outputs) == 1 and not _is_matrix(view, product.inputs[0]):
                    continue
                other = view.constant(f"{op.outputs[0]}/bias", bias.reshape(-1))
            view.change(op, "MatMul", [*product.inputs, other], product.attrs)
            break
    return view.finish()


def _is_matrix(view: View, name: str) -> bool:
    """Whether a tensor surely has two dimensions: it was flattened or reshaped so."""
    maker = view.producer(name)
    if maker is None:
        return any(i.name == name and i.shape is not None and len(i.shape) == 2 for i in view.graph.inputs)
    return (maker.type == "Flatten" and maker["endAxis"] == 0) or (maker.type == "Reshape" and len(maker["dims"]) == 2)


matmul_bias = Pass("matmul-bias", run, "a vector added to a matrix product becomes its bias")
