"""A Squeeze behind a 1-D convolution or pooling moves down, past ops that work element by element."""

from __future__ import annotations

from ..ir import Graph, Op
from . import Pass
from ._view import View

_ELEMENTWISE = frozenset({"ReLU", "ReLU6", "UnaryOp", "ELU", "Selu", "Scale", "PReLU"})
_BEFORE = ("Convolution", "ConvolutionDepthwise", "Deconvolution", "DeconvolutionDepthwise", "Pooling")


def run(graph: Graph) -> int:
    """So that what follows can go into the convolution, and the Squeeze meet the Unsqueeze of the next one."""
    view = View(graph)
    for op in graph.ops:
        if op.type not in (*_ELEMENTWISE, "BinaryOp"):
            continue
        for i, name in enumerate(op.inputs[:2] if op.type == "BinaryOp" else op.inputs[:1]):
            squeeze = view.producer(name, "Squeeze")
            if squeeze is None or len(squeeze.inputs) != 1 or tuple(squeeze["squeezeDims"]) != (2,) or not view.only_here(name):
                continue
            if view.producer(squeeze.inputs[0]) is None or not _from_convolution(view, squeeze.inputs[0]):
                continue
            inputs = list(op.inputs)
            inputs[i] = squeeze.inputs[0]
            if op.type == "BinaryOp":
                other = view.array(op.inputs[1 - i])
                if other is None or other.ndim > 3:
                    continue
                if other.size > 1:
                    full = other.reshape((1,) * (3 - other.ndim) + other.shape)
                    inputs[1 - i] = view.constant(f"{op.outputs[0]}/widened", full.reshape(*full.shape[:2], 1, full.shape[2]))
            view.change(op, op.type, inputs, op.attrs)
            inner = graph.fresh_name(f"{op.outputs[0]}/wide")
            outer = view.move_output(op, inner)
            view.insert_after(op, Op("Squeeze", [inner], [outer], {"squeezeDims": (2,)}, name=f"{op.name}/squeeze"))
            break
    return view.finish()


def _from_convolution(view: View, name: str) -> bool:
    """Whether a tensor is made by an image op, perhaps through ops that were moved before."""
    op = view.producer(name)
    while op is not None and op.type in (*_ELEMENTWISE, "BinaryOp"):
        name = op.inputs[0] if view.array(op.inputs[0]) is None else op.inputs[1]
        op = view.producer(name)
    return op is not None and op.type in _BEFORE


squeeze = Pass("squeeze", run, "the Squeeze of 1-D convolutions moves past elementwise ops")
