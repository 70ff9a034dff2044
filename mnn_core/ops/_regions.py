"""Strided views, and the copy regions between them: how data-movement ops are lowered to Raster.

A lowering describes what it reads as a View of an input and what it writes as a View of the output, both of the same shape:

    src = View.of((2, 3)).permute((1, 0))
    raster(op, {"x": [(src, View.of((3, 2)))]}, (3, 2))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..ir import Op, Region
from .registry import Lowered

#: Ops whose regions depend on the values of indices are lowered only if that takes no more regions than this.
FEW_REGIONS = 64


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of a dense row-major tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


@dataclass(frozen=True)
class View:
    """A strided view of a tensor's elements: element i is at offset + sum i_k * strides_k."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @classmethod
    def of(cls, shape: Sequence[int]) -> View:
        """A whole dense tensor."""
        return cls(tuple(shape), dense_strides(shape))

    def cut(self, axis: int, start: int, count: int, step: int = 1) -> View:
        """Elements start, start + step, ... (count of them) along an axis. step may be 0 or negative."""
        stride = self.strides[axis]
        return View(_put(self.shape, axis, count), _put(self.strides, axis, stride * step), self.offset + start * stride)

    def permute(self, order: Sequence[int]) -> View:
        """Axes in another order, as numpy.transpose."""
        return View(tuple(self.shape[a] for a in order), tuple(self.strides[a] for a in order), self.offset)

    def split(self, axis: int, sizes: Sequence[int]) -> View:
        """One axis as several, row-major; the product of sizes is its length."""
        inner = tuple(s * self.strides[axis] for s in dense_strides(sizes))
        return View((*self.shape[:axis], *sizes, *self.shape[axis + 1:]),
                    (*self.strides[:axis], *inner, *self.strides[axis + 1:]), self.offset)

    def insert(self, axis: int, size: int = 1, stride: int = 0) -> View:
        """A new axis before `axis`; by default one that repeats the same elements."""
        return View((*self.shape[:axis], size, *self.shape[axis:]), (*self.strides[:axis], stride, *self.strides[axis:]),
                    self.offset)

    def expand(self, shape: Sequence[int]) -> View:
        """Broadcast to a shape, as numpy.broadcast_to."""
        lead = len(shape) - len(self.shape)
        strides = [0] * lead + [0 if a != b else s for a, b, s in zip(self.shape, shape[lead:], self.strides)]
        return View(tuple(shape), tuple(strides), self.offset)


def _put(values: tuple[int, ...], index: int, value: int) -> tuple[int, ...]:
    return (*values[:index], value, *values[index + 1:])


def region(source: int, src: View, dst: View) -> Region:
    """The copy src -> dst (views of equal shape) with as few dimensions as possible."""
    assert src.shape == dst.shape, (src, dst)
    return simplify(Region(source, src.shape, src.offset, src.strides, dst.offset, dst.strides))


def simplify(r: Region) -> Region:
    """The same copy with as few dimensions as possible, the outermost first (as the destination has them)."""
    if 0 in r.size:
        return Region(r.source, (0,), r.src_offset, (1,), r.dst_offset, (1,))
    dims = sorted(((n, s, d) for n, s, d in zip(r.size, r.src_strides, r.dst_strides) if n > 1),
                  key=lambda dim: (-abs(dim[2]), -abs(dim[1])))
    src_offset, dst_offset = r.src_offset, r.dst_offset
    kept: list[tuple[int, int, int]] = []
    for n, s, d in dims:
        if d < 0:  # written forwards, so that equal copies look equal
            src_offset, dst_offset, s, d = src_offset + s * (n - 1), dst_offset + d * (n - 1), -s, -d
        if kept and kept[-1][1] == s * n and kept[-1][2] == d * n:
            kept[-1] = (kept[-1][0] * n, s, d)
        else:
            kept.append((n, s, d))
    size, src, dst = (tuple(dim[part] for dim in kept) for part in range(3))
    return Region(r.source, size, src_offset, src, dst_offset, dst)


#: What is read of one input and where it goes.
Copies = Iterable[tuple[View, View]]


def raster_op(op: Op, copies: Mapping[str, Copies] | Sequence[tuple[str, View, View]], shape: Sequence[int],
              fill: float | None = None, output: int = 0) -> Op:
    """A Raster that makes one output of an op. copies: (input name, src, dst); or lists of (src, dst) by input name."""
    flat = [(n, s, d) for n, pairs in copies.items() for s, d in pairs] if isinstance(copies, Mapping) else copies
    names: dict[str, int] = {}
    regions = tuple(region(names.setdefault(name, len(names)), src, dst) for name, src, dst in flat if 0 not in src.shape)
    return Op("Raster", list(names) or [op.inputs[0]], [op.outputs[output]],
              {"regions": regions, "shape": tuple(shape), "fill": fill}, name=op.name)


def raster(op: Op, copies: Mapping[str, Copies] | Sequence[tuple[str, View, View]], shape: Sequence[int],
           fill: float | None = None) -> Lowered:
    """An op with one output, lowered to one Raster; see raster_op."""
    return Lowered([raster_op(op, copies, shape, fill)])


def alias(op: Op, shape: Sequence[int]) -> Lowered:
    """An op whose output is its first input in another shape."""
    whole = View.of(shape)
    return raster(op, {op.inputs[0]: [(whole, whole)]}, shape)


@dataclass(frozen=True)
class Run:
    """Part of an index list: positions at, at+1, ... hold first, first + step, ... (count of them)."""

    at: int
    first: int
    count: int
    step: int


def runs(indices: Sequence[int] | np.ndarray) -> list[Run]:
    """Splits a list of indices into runs of constant step, greedily."""
    values = np.asarray(indices, np.int64).reshape(-1)
    steps = np.diff(values)
    changes = [*(np.flatnonzero(np.diff(steps)) + 1).tolist(), steps.size]  # where other steps begin
    found: list[Run] = []
    start = change = 0
    while start < values.size:
        while change + 1 < len(changes) and changes[change] <= start:
            change += 1
        last = max(start, min(changes[change], values.size - 1))
        if last == start + 1 and last + 1 < steps.size and steps[last] == steps[last + 1]:
            last = start  # the second of the two belongs to a longer run
        found.append(Run(start, int(values[start]), last - start + 1, int(steps[start]) if last > start else 0))
        start = last + 1
    return found


def count_runs(indices: np.ndarray) -> int:
    """About how many runs an index list has; cheap, for deciding whether `runs` is worth while."""
    if indices.size < 3:
        return indices.size
    steps = np.diff(indices.astype(np.int64))
    return 1 + int(np.count_nonzero(steps[1:] != steps[:-1])) // 2


def is_increasing(values: Sequence[int]) -> bool:
    """Whether each value is greater than the one before."""
    return all(a < b for a, b in pairwise(values))
