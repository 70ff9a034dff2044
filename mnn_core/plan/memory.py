"""Memory: who may share whose memory, and where in the arena everything lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Every buffer begins at a multiple of this; kernels may rely on it.
ALIGN = 64


@dataclass(frozen=True)
class Life:
    """A buffer of `size` bytes that is in use from step `first` to step `last`, both included."""

    size: int
    first: int
    last: int


def arena(lives: Sequence[Life]) -> tuple[list[int], int]:
    """Offsets of buffers and the size of the arena; no two that live at the same step overlap.

    First fit, big ones first: each goes into the lowest gap between those placed before that live at the same time.
    """
    offsets = [0] * len(lives)
    placed: list[int] = []
    total = 0
    for i in sorted(range(len(lives)), key=lambda k: (-lives[k].size, lives[k].first)):
        mine, at = lives[i], 0
        for j in placed:  # by offset
            other = lives[j]
            if other.last < mine.first or mine.last < other.first or not other.size:
                continue
            if at + mine.size <= offsets[j]:
                break
            at = max(at, _align(offsets[j] + other.size))
        offsets[i] = at
        total = max(total, _align(at + mine.size))
        placed.append(i)
        placed.sort(key=offsets.__getitem__)
    return offsets, total


def _align(n: int) -> int:
    return -(-n // ALIGN) * ALIGN


@dataclass(frozen=True)
class Touch:
    """What a step does to tensors (by index). reads, writes: all of them; inplace: reads that out[0] may overwrite."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    inplace: tuple[int, ...] = ()


@dataclass
class Home:
    """Where a tensor lies: "input", "output" and "const" memory has an index; "arena" an offset; "alias" another tensor."""

    kind: str
    where: int = 0


def assign(
    sizes: Sequence[int],
    touches: Sequence[Touch],
    views: Sequence[tuple[int, int]],
    fixed: dict[int, Home],
    outputs: Sequence[int],
) -> tuple[list[Home], int]:
    """Gives every tensor its memory; returns homes and the arena's size.

    sizes: bytes of each tensor. touches: the steps in order. views: (tensor, other) pairs of which the first is the same
    memory as the second. fixed: tensors that are inputs or constants. outputs: tensors that are written straight into
    output memory; each must be the only output among its views, and none of its views fixed.
    """
    group = list(range(len(sizes)))

    def root(i: int) -> int:
        while group[i] != i:
            group[i] = group[group[i]]
            i = group[i]
        return i

    for view, base in views:
        group[root(view)] = root(base)
    end = len(touches)
    first, last = [end] * len(sizes), [-1] * len(sizes)
    for step, touch in enumerate(touches):
        for i in touch.writes:
            first[root(i)] = min(first[root(i)], step)
        for i in (*touch.reads, *touch.writes):
            last[root(i)] = max(last[root(i)], step)
    for i in outputs:
        last[root(i)] = end
    foreign = {root(i) for i in fixed}
    for step, touch in enumerate(touches):
        if not touch.writes:
            continue
        out = root(touch.writes[0])
        for i in touch.inplace:
            base = root(i)
            if (base != out and last[base] == step and base not in foreign and sizes[i] == sizes[touch.writes[0]]
                    and first[out] == step and not any(root(r) == base and r != i for r in touch.reads)
                    and sum(r == i for r in touch.reads) == 1):
                group[out] = base
                last[base] = last[out]
                break
    homes = [Home("alias", root(i)) for i in range(len(sizes))]
    for i, home in fixed.items():
        homes[i] = home
        if root(i) != i:
            raise AssertionError("a fixed tensor is the root of its views")
    for number, i in enumerate(outputs):
        for j in [j for j in range(len(sizes)) if root(j) == root(i)]:
            homes[j] = Home("alias", i)
        homes[i] = Home("output", number)
    free = [i for i in range(len(sizes)) if root(i) == i and homes[i] == Home("alias", i) and last[i] >= 0]
    offsets, total = arena([Life(max(sizes[j] for j in range(len(sizes)) if root(j) == i), min(first[i], last[i]), last[i])
                            for i in free])
    for i, offset in zip(free, offsets):
        homes[i] = Home("arena", offset)
    return homes, total
