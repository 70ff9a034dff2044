"""Zero padding before a convolution becomes the convolution's own."""

from __future__ import annotations

from ..ir import Graph
from . import Pass
from ._view import View

_2D, _3D = ("Convolution", "ConvolutionDepthwise"), ("Convolution3D",)


def run(graph: Graph) -> int:
    """Folds Padding with zeros, of spatial dimensions only, into the convolution after it."""
    view = View(graph)
    for op in graph.ops:
        if op.type not in (*_2D, *_3D) or op["padMode"] == "SAME":
            continue
        pad = view.producer(op.inputs[0], "Padding")
        if pad is None or pad["mode"] != "CONSTANT":
            continue
        value = view.number(pad.inputs[2]) if len(pad.inputs) > 2 and pad.inputs[2] else 0.0
        pairs = view.array(pad.inputs[1])
        space = 2 if op.type in _2D else 3
        if value != 0 or pairs is None or pairs.size != 2 * (space + 2) or pairs.reshape(-1)[:4].any() or (pairs < 0).any():
            continue
        added = [int(v) for v in pairs.reshape(-1)[4:]]
        old = list(op["pads"])
        if op["padMode"] == "VALID":
            old = [0] * (2 * space)
        elif not old and space == 2:
            old = [op["padY"], op["padX"]] * 2
        elif len(old) == space:
            old = old * 2
        if len(old) != 2 * space:
            continue
        pads = tuple(o + a for o, a in zip(old, added[0::2] + added[1::2]))
        attrs = {**op.attrs, "pads": pads, "padMode": "CAFFE"}
        if space == 2:
            attrs.update(padY=pads[0], padX=pads[1])
        view.change(op, op.type, [pad.inputs[0], *op.inputs[1:]], attrs)
    return view.finish()


convolution_pad = Pass("convolution-pad", run, "zero padding goes into the convolution after it")
