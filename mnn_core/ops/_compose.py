"""Arithmetic of copy regions: composing two copies into one, and joining neighbours.

Composition works on digits. A producer region writes element sum(k_a * s_a) of the tensor between, k_a being its coordinates
and s_a its strides, greatest first; so a consumer that reads at offset o with stride c reads the producer's coordinates
"o written in the strides s_a" and moves by "c written in them" -- as long as no coordinate leaves its range, which
is checked. Where one does, the consumer's region is cut there and the rest looked at again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..ir import Region
from ._regions import simplify

#: A composition that takes more regions than this is not worth it.
MAX_REGIONS = 64


@dataclass(frozen=True)
class _Dim:
    """One dimension of a copy: its size and its strides on both sides."""

    size: int
    src: int
    dst: int


@dataclass(frozen=True)
class _Copy:
    """A region as dimensions."""

    src: int
    dst: int
    dims: tuple[_Dim, ...]

    @classmethod
    def of(cls, r: Region) -> _Copy:
        return cls(r.src_offset, r.dst_offset, tuple(_Dim(*d) for d in zip(r.size, r.src_strides, r.dst_strides) if d[0] != 1))

    def region(self, source: int) -> Region:
        return simplify(Region(source, tuple(d.size for d in self.dims), self.src, tuple(d.src for d in self.dims),
                               self.dst, tuple(d.dst for d in self.dims)))

    def upwards(self) -> _Copy:
        """The same copy with no negative source stride and no dimension of one item."""
        src, dst, dims = self.src, self.dst, []
        for d in self.dims:
            if d.size == 1:
                continue
            if d.src < 0:
                src, dst, d = src + d.src * (d.size - 1), dst + d.dst * (d.size - 1), _Dim(d.size, -d.src, -d.dst)
            dims.append(d)
        return _Copy(src, dst, tuple(dims))

    def cut(self, index: int, at: int) -> tuple[_Copy, _Copy]:
        """The first `at` items of a dimension, and the rest."""
        d = self.dims[index]
        first = replace(self, dims=(*self.dims[:index], replace(d, size=at), *self.dims[index + 1:]))
        rest = _Copy(self.src + at * d.src, self.dst + at * d.dst,
                     (*self.dims[:index], replace(d, size=d.size - at), *self.dims[index + 1:]))
        return first, rest

    def split(self, index: int, inner: int) -> _Copy:
        """A dimension as two, the inner one of a given size."""
        d = self.dims[index]
        two = (_Dim(d.size // inner, d.src * inner, d.dst * inner), replace(d, size=inner))
        return replace(self, dims=(*self.dims[:index], *two, *self.dims[index + 1:]))


def compose(consumer: Region, producers: Sequence[Region], limit: int = MAX_REGIONS) -> list[Region] | None:
    """The consumer's copy, reading what the producers read; None if that takes more than `limit` regions or cannot be told.

    producers: the regions that make the tensor that `consumer` reads; their destinations do not overlap. The result's
    `source` is that of the producer region it came from.
    """
    makers = [(p.source, _outermost_first(_Copy.of(p))) for p in producers if 0 not in p.size]
    todo = [_Copy.of(consumer)]
    found: list[Region] = []
    for _ in range(4 * limit):
        if not todo:
            return found
        piece = todo.pop().upwards()
        if any(d.size == 0 for d in piece.dims):
            continue
        maker = next(((s, m) for s, m in makers if _digits(piece.src - m.dst, m, bounded=True) is not None), None)
        if maker is None:
            return None
        fitted = _fit(piece, maker[1])
        if fitted is None or len(found) == limit:
            return None
        done, rest = fitted
        if done is not None:
            found.append(done.region(maker[0]))
        todo += rest
    return None


def _outermost_first(maker: _Copy) -> _Copy:
    """A producer with its destination strides positive and falling."""
    src, dst, dims = maker.src, maker.dst, []
    for d in maker.dims:
        if d.dst < 0:
            src, dst, d = src + d.src * (d.size - 1), dst + d.dst * (d.size - 1), _Dim(d.size, -d.src, -d.dst)
        dims.append(d)
    return _Copy(src, dst, tuple(sorted(dims, key=lambda d: -d.dst)))


def _digits(offset: int, maker: _Copy, bounded: bool) -> list[int] | None:
    """An offset as coordinates of the producer; None if it is no sum of them (bounded: of coordinates in range)."""
    if offset < 0:
        return None
    found = []
    for d in maker.dims:
        digit = offset // d.dst if d.dst else 0
        if bounded:
            digit = min(digit, d.size - 1)
        found.append(digit)
        offset -= digit * d.dst
    return found if offset == 0 else None


def _fit(piece: _Copy, maker: _Copy) -> tuple[_Copy | None, list[_Copy]] | None:
    """Composes what of a piece, from its first element on, lies within a producer.

    Gives (the composed copy, pieces that are left), or (None, smaller pieces to look at), or None if neither works.
    """
    pieces = _refine(piece, maker)
    if len(pieces) > 1:
        return None, pieces
    piece = pieces[0]
    start = _digits(piece.src - maker.dst, maker, bounded=True)
    steps = [_digits(d.src, maker, bounded=False) for d in piece.dims]
    if start is None or any(s is None for s in steps):
        return None
    moves = [s for s in steps if s is not None]
    rest: list[_Copy] = []
    for a, limit in enumerate(maker.dims):
        room = limit.size - 1 - start[a]
        for k, move in enumerate(moves):
            if move[a] > room and piece.dims[k].size > 1:  # its first step leaves the producer already
                piece, left = piece.cut(k, 1)
                rest.append(left)
        moving = [k for k, move in enumerate(moves) if move[a] and piece.dims[k].size > 1]
        if sum(moves[k][a] * (piece.dims[k].size - 1) for k in moving) <= room:
            continue
        if len(moving) != 1:
            return None
        k = moving[0]
        piece, left = piece.cut(k, room // moves[k][a] + 1)
        rest.append(left)
    src = maker.src + sum(i * d.src for i, d in zip(start, maker.dims))
    dims = tuple(_Dim(d.size, sum(i * m.src for i, m in zip(s, maker.dims)), d.dst) for d, s in zip(piece.dims, moves))
    return _Copy(src, piece.dst, dims), rest


def _refine(piece: _Copy, maker: _Copy) -> list[_Copy]:
    """Splits dimensions that run across a coordinate of the producer; more than one piece where the sizes do not divide."""
    for outer in maker.dims:
        for k, d in enumerate(piece.dims):
            if not 0 < d.src < outer.dst or outer.dst % d.src:
                continue
            inner = outer.dst // d.src
            if d.size <= inner:
                continue
            if d.size % inner:
                return list(piece.cut(k, d.size // inner * inner))
            return _refine(piece.split(k, inner), maker)
    return [piece]


def join(regions: Sequence[Region]) -> list[Region]:
    """The same copies in as few regions as can be found: neighbours become one. Order of the result: by destination."""
    found = sorted((simplify(r) for r in regions if 0 not in r.size), key=lambda r: r.dst_offset)
    while True:
        joined = _join_once(found)
        if len(joined) == len(found):
            return joined
        found = joined


def _join_once(regions: Sequence[Region]) -> list[Region]:
    """One sweep; looks at all pairs while there are few, else only at those next to each other."""
    found: list[Region] = []
    for r in regions:
        for index in range(len(found) - 1, max(-1, len(found) - 1 - MAX_REGIONS), -1):
            both = _joined(found[index], r)
            if both is not None:
                found[index] = simplify(both)
                break
        else:
            found.append(r)
    return found


def _joined(a: Region, b: Region) -> Region | None:
    """Two regions as one, or None. a's destination begins before b's."""
    if a.source != b.source:
        return None
    step = (b.src_offset - a.src_offset, b.dst_offset - a.dst_offset)
    for x, y in ((a, b), (_with_dim_of(a, b), b), (a, _with_dim_of(b, a))):
        if x is None or y is None or (x.src_strides, x.dst_strides) != (y.src_strides, y.dst_strides):
            continue
        differ = [k for k, (n, m) in enumerate(zip(x.size, y.size)) if n != m]
        if len(differ) > 1:
            continue
        for k in differ or range(len(x.size)):
            if step == (x.size[k] * x.src_strides[k], x.size[k] * x.dst_strides[k]):
                return replace(x, size=(*x.size[:k], x.size[k] + y.size[k], *x.size[k + 1:]))
    if (a.size, a.src_strides, a.dst_strides) == (b.size, b.src_strides, b.dst_strides):
        return replace(a, size=(2, *a.size), src_strides=(step[0], *a.src_strides), dst_strides=(step[1], *a.dst_strides))
    return None


def _with_dim_of(small: Region, big: Region) -> Region | None:
    """`small` with one more dimension, of size 1, so that it has the dimensions of `big`; None if it does not differ by one."""
    if len(small.size) + 1 != len(big.size):
        return None
    ours = list(zip(small.src_strides, small.dst_strides))
    theirs = list(zip(big.src_strides, big.dst_strides))
    for k in range(len(theirs)):
        if theirs[:k] + theirs[k + 1:] == ours:
            return replace(small, size=(*small.size[:k], 1, *small.size[k:]), src_strides=big.src_strides,
                           dst_strides=big.dst_strides)
    return None
