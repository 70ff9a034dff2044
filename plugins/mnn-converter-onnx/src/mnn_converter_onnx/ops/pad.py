"""Pad."""

from __future__ import annotations

import numpy as np

from mnn_core import ModelFormatError

from ..builder import Builder
from ..node import Node
from ..rules import Unsupported, rule, wrong

_MODES = {"constant": "CONSTANT", "reflect": "REFLECT", "edge": "EDGE"}


@rule("Pad", until=10)
def pad_attributes(node: Node, b: Builder) -> None:
    pads = node.attrs.get("pads", node.attrs.get("paddings"))
    if pads is None:
        raise ModelFormatError(f"{node}: its attribute 'pads' is missing")
    x = node.inputs[0]
    _pad(node, b, x, b.ints(*pads), b.number(node.get("value", 0.0), x), "")


@rule("Pad", since=11)
def pad(node: Node, b: Builder) -> None:
    x = node.inputs[0]
    _pad(node, b, x, node.inputs[1], node.input(2), node.input(3))


def _pad(node: Node, b: Builder, x: str, pads: str, fill: str, axes_name: str) -> None:
    mode = node.get("mode", "constant")
    modes = [*_MODES, "wrap"] if node.version >= 19 else [*_MODES]
    if mode not in modes:
        raise wrong("mode", mode, f"one of {', '.join(modes)} (in opset {node.version})")
    axes = b.vector(axes_name, f"{node}: the axes") if axes_name else None
    if axes_name and axes is None:
        raise Unsupported("axes that are not constant")
    values = b.vector(pads, f"{node}: the pads")
    if values is not None and axes is not None:
        rank = b.rank(x)
        if rank is None:
            raise Unsupported("axes of a tensor of unknown rank")
        values = _spread(node, values, axes, rank)
    elif axes is not None:
        rank = b.rank(x)
        if rank is None or tuple(a % rank for a in axes) != tuple(range(rank)):
            raise Unsupported("axes with pads that are not constant")
    if values is None:
        if mode == "wrap":
            raise Unsupported("mode 'wrap' with pads that are not constant")
        pairs = b.reshape(b.op("Permute", [b.reshape(pads, (2, -1))], dims=(1, 0)), (-1,))
        b.op("Padding", [x, pairs, *_fill(b, x, fill, mode)], node.outputs, dtype=b.dtype(x), mode=_MODES[mode])
        return
    if len(values) % 2:
        raise ModelFormatError(f"{node}: an odd number of pads, {list(values)}")
    _pad_known(node, b, x, values, fill, mode)


def _fill(b: Builder, x: str, fill: str, mode: str) -> list[str]:
    """The value to pad with, as a rank-0 tensor; left out where it is not asked for."""
    if mode != "constant" or not fill:
        return []
    value = b.value(fill)
    if value is not None and value.size == 1:
        return [] if value.reshape(-1)[0] == 0 else [b.const(value.reshape(()), dtype=b.dtype(fill))]
    return [b.reshape(fill, ())]


def _spread(node: Node, values: tuple[int, ...], axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Pads of some axes as pads of all."""
    if len(values) != 2 * len(axes) or any(not -rank <= a < rank for a in axes):
        raise ModelFormatError(f"{node}: pads {list(values)} of axes {list(axes)} for a tensor of rank {rank}")
    full = [0] * (2 * rank)
    for i, axis in enumerate(axes):
        full[axis % rank], full[axis % rank + rank] = values[i], values[i + len(axes)]
    return tuple(full)


def _pad_known(node: Node, b: Builder, x: str, values: tuple[int, ...], fill: str, mode: str) -> None:
    """Negative pads cut first; then the positive ones are added."""
    rank = len(values) // 2
    begins, ends = values[:rank], values[rank:]
    if any(v < 0 for v in values):
        last = 2**31 - 1
        positive = any(v > 0 for v in values)
        x = b.op("StridedSlice", [x, b.ints(*(max(-p, 0) for p in begins)), b.ints(*(p if p < 0 else last for p in ends))],
                 1 if positive else node.outputs, fromType=1)
        if not positive:
            return
        begins, ends = tuple(max(p, 0) for p in begins), tuple(max(p, 0) for p in ends)
    if not any((*begins, *ends)):
        b.op("Identity", [x], node.outputs)
    elif mode == "wrap":
        _wrap(node, b, x, begins, ends)
    else:
        pairs = b.ints(*(p for both in zip(begins, ends) for p in both))
        b.op("Padding", [x, pairs, *_fill(b, x, fill, mode)], node.outputs, mode=_MODES[mode])


def _wrap(node: Node, b: Builder, x: str, begins: tuple[int, ...], ends: tuple[int, ...]) -> None:
    """Takes elements by index modulo the size, axis by axis."""
    shape = b.shape_of(x)
    todo = [i for i, (p, q) in enumerate(zip(begins, ends)) if p or q]
    for i in todo:
        size = b.op("GatherV2", [shape, b.const(np.int32(i)), b.const(np.int32(0))], dtype=np.int64)
        stop = b.binary("ADD", size, b.const(np.int32(ends[i])))
        index = b.op("Range", [b.const(np.int32(-begins[i])), stop, b.const(np.int32(1))], dtype=np.int64)
        x = b.op("GatherV2", [x, b.binary("FLOORMOD", index, size), b.const(np.int32(i))], node.outputs if i == todo[-1] else 1)
