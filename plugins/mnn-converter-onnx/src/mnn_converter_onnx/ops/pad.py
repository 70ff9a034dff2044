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
    values = b.vector(pads, f"{node}: the pads")
    rank = b.rank(x)
    if axes_name:
        if values is not None and axes is not None and rank is not None:
            values = _spread(node, values, axes, rank)
        else:
            values, pads = None, _scattered(b, x, pads, axes_name)
    if values is None:
        if mode == "wrap":
            if rank is None:
                raise Unsupported("mode 'wrap' of a tensor of unknown rank")
            ends = [[b.op("GatherV2", [pads, b.const(np.int32(i)), b.const(np.int32(0))]) for i in half]
                    for half in (range(rank), range(rank, 2 * rank))]
            _wrap(node, b, x, dict(enumerate(zip(*ends))))
            return
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


def _scattered(b: Builder, x: str, pads: str, axes: str) -> str:
    """Pads of some axes as pads of all, where they are not known yet."""
    zero = b.const(np.int32(0))
    rank = b.op("Rank", [x], dtype=np.int64)
    negative = b.binary("LESS", axes, zero, dtype=np.int64)
    begins = b.binary("ADD", axes, b.binary("MUL", negative, rank))
    places = b.op("Concat", [begins, b.binary("ADD", begins, rank)], axis=0)
    empty = b.op("Fill", [b.reshape(b.binary("MUL", rank, b.const(np.int32(2))), (1,)), zero], dtype=np.int64)
    return b.op("ScatterElements", [empty, places, pads, zero], opType=-1)


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
        amounts = {i: (b.const(np.int32(p)), b.const(np.int32(q))) for i, (p, q) in enumerate(zip(begins, ends)) if p or q}
        _wrap(node, b, x, amounts)
    else:
        pairs = b.ints(*(p for both in zip(begins, ends) for p in both))
        b.op("Padding", [x, pairs, *_fill(b, x, fill, mode)], node.outputs, mode=_MODES[mode])


def _wrap(node: Node, b: Builder, x: str, amounts: dict[int, tuple[str, str]]) -> None:
    """Takes elements by index modulo the size, axis by axis. amounts: axis -> what is added before and behind."""
    shape = b.shape_of(x)
    for i, (before, behind) in amounts.items():
        size = b.op("GatherV2", [shape, b.const(np.int32(i)), b.const(np.int32(0))], dtype=np.int64)
        stop = b.binary("ADD", size, behind)
        index = b.op("Range", [b.unary("NEG", before), stop, b.const(np.int32(1))], dtype=np.int64)
        last = i == max(amounts)
        x = b.op("GatherV2", [x, b.binary("FLOORMOD", index, size), b.const(np.int32(i))], node.outputs if last else 1)
