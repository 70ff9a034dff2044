"""ReLU and ReLU6 after a convolution become attributes of it."""

from __future__ import annotations

from ..ir import Graph
from . import Pass
from ._view import View
from .convolution_affine import RANKS


def run(graph: Graph) -> int:
    """Fuses ReLU without slope, and ReLU6 from 0 to 6, into the convolution before them."""
    view = View(graph)
    for op in graph.ops:
        relu = op.type == "ReLU" and op["slope"] == 0
        relu6 = op.type == "ReLU6" and op["minValue"] == 0 and op["maxValue"] == 6
        if not (relu or relu6):
            continue
        conv = view.producer(op.inputs[0], *RANKS)
        if conv is None or not view.only_here(op.inputs[0]) or conv["relu"] or conv["relu6"]:
            continue
        view.change(op, conv.type, conv.inputs, {**conv.attrs, "relu" if relu else "relu6": True})
    return view.finish()


convolution_activation = Pass("convolution-activation", run, "ReLU and ReLU6 go into the convolution before them")
