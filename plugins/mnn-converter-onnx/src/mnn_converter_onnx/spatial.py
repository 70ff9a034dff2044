"""What convolutions and poolings share: attributes for 1, 2 and 3 dimensions, and padding rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mnn_core import ModelFormatError

from .builder import Builder
from .node import Node
from .rules import Unsupported, wrong


@dataclass
class Window:
    """kernel, strides, dilations: one number a dimension; pads: begins, then ends.

    mode: "CAFFE" (pads), "SAME" (the odd one at the end) or "SAME_LOWER".
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    mode: str = "CAFFE"

    @property
    def rank(self) -> int:
        return len(self.kernel)

    def extents(self) -> tuple[int, ...]:
        """Input elements that a window spans."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations))

    def widened(self) -> Window:
        """A 1-D window as a 2-D one of height 1."""
        if self.rank != 1:
            return self
        pads = (0, self.pads[0], 0, self.pads[1])
        return Window((1, *self.kernel), (1, *self.strides), (1, *self.dilations), pads, self.mode)

    def plane(self) -> dict[str, Any]:
        """MNN's attributes of a 2-D window, without dilation: pads are top, left, bottom, right."""
        return {"kernelY": self.kernel[0], "kernelX": self.kernel[1], "strideY": self.strides[0],
                "strideX": self.strides[1], "pads": tuple(self.pads), "padY": self.pads[0], "padX": self.pads[1]}


def window(node: Node, kernel: tuple[int, ...]) -> Window:
    """The window of a node. Raises ModelFormatError for attributes of wrong lengths or signs."""
    n = len(kernel)
    strides, dilations = tuple(node.get("strides", (1,) * n)), tuple(node.get("dilations", (1,) * n))
    pads = tuple(node.get("pads", (0,) * (2 * n)))
    if not 1 <= n <= 3:
        raise Unsupported(f"{n} spatial dimensions; expected 1, 2 or 3")
    if (len(strides), len(dilations), len(pads)) != (n, n, 2 * n) or min((*kernel, *strides, *dilations)) < 1:
        raise ModelFormatError(f"{node}: kernel {list(kernel)}, strides {list(strides)}, dilations {list(dilations)} and pads "
                               f"{list(pads)} do not fit together")
    modes = {"NOTSET": "CAFFE", "": "CAFFE", "VALID": "CAFFE", "SAME_UPPER": "SAME", "SAME_LOWER": "SAME_LOWER"}
    mode = node.get("auto_pad", "NOTSET")
    if mode not in modes:
        raise wrong("auto_pad", mode, "'NOTSET', 'VALID', 'SAME_UPPER' or 'SAME_LOWER'")
    if mode not in ("NOTSET", ""):
        pads = (0,) * (2 * n)
    return Window(kernel, strides, dilations, pads, modes[mode])


def settle_same(b: Builder, x: str, w: Window, fill: float | None) -> tuple[str, Window]:
    """Turns SAME_LOWER, which MNN lacks, and SAME in 3-D or with dilation, into explicit padding.

    Returns the input to use, padded by an op of its own with `fill` where the amount depends on the input's size; fill None:
    nothing is added, and of such an input the name is "".
    """
    if w.mode not in ("SAME", "SAME_LOWER") or (w.mode == "SAME" and w.rank < 3):
        return x, w
    lower = w.mode == "SAME_LOWER"
    shape = b.shape(x)
    sizes = shape[2:] if shape is not None and len(shape) == w.rank + 2 else (None,) * w.rank
    if all(s == 1 for s in w.strides):
        totals: list[int | None] = [e - 1 for e in w.extents()]
    else:
        totals = [None if s is None else max((-(-s // t) - 1) * t + e - s, 0) for s, t, e in zip(sizes, w.strides, w.extents())]
    if all(t is not None for t in totals):
        known = [t for t in totals if t is not None]
        begins = tuple(-(-t // 2) if lower else t // 2 for t in known)
        return x, Window(w.kernel, w.strides, w.dilations, (*begins, *(t - g for t, g in zip(known, begins))))
    if fill is None:
        return "", w
    size = b.op("StridedSlice", [b.shape_of(x), b.ints(2), b.ints(2**31 - 1)], dtype=np.int64, fromType=1)
    strides, extents = b.ints(*w.strides), b.ints(*w.extents())
    steps = b.binary("REALDIV", b.binary("SUB", size, b.ints(1)), strides)
    total = b.binary("MAXIMUM", b.binary("SUB", b.binary("ADD", b.binary("MUL", steps, strides), extents), size), b.ints(0))
    half = b.binary("REALDIV", total, b.ints(2))
    begin = b.binary("SUB", total, half) if lower else half
    pairs = b.op("Pack", [begin, b.binary("SUB", total, begin)], dtype=np.int64, axis=1)
    pads = b.op("Concat", [b.ints(0, 0, 0, 0), b.reshape(pairs, (-1,))], axis=0)
    padded = b.op("Padding", [x, pads, b.number(fill, x)], mode="CONSTANT")
    return padded, Window(w.kernel, w.strides, w.dilations, (0,) * (2 * w.rank))


def widen(b: Builder, x: str) -> str:
    """(N, C, L) as (N, C, 1, L)."""
    return b.op("Unsqueeze", [x], squeezeDims=(2,))


def narrow(b: Builder, x: str, outputs: list[str] | int) -> str:
    """(N, C, 1, L) as (N, C, L)."""
    return b.op("Squeeze", [x], outputs, squeezeDims=(2,))
