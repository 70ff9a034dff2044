"""Memory: who may share whose memory, and where in the arena everything lies."""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .joins import Join

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
        insort(placed, i, key=offsets.__getitem__)
    return offsets, total


def _align(n: int) -> int:
    return -(-n // ALIGN) * ALIGN


@dataclass(frozen=True)
class Touch:
    """What a step does to tensors (by index). reads, writes: all of them; inplace: reads that out[0] may overwrite."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    inplace: tuple[int, ...] = ()


@dataclass(frozen=True)
class Home:
    """Where a tensor lies: "input", "output" and "const" memory has an index; "arena" an offset; "alias" another tensor, from
    byte `offset` of it on."""

    kind: str
    where: int = 0
    offset: int = 0


class _Groups:
    """Tensors that share memory. Each group has a root; live from step `first` to step `last` of the root.

    inside: root of a group -> the root of another one that it is a part of, and the byte at which it begins there.
    """

    def __init__(self, count: int, touches: Sequence[Touch], views: Sequence[tuple[int, int]]) -> None:
        self._parent = list(range(count))
        for view, base in views:
            self._parent[self.root(view)] = self.root(base)
        self.first, self.last = [len(touches)] * count, [-1] * count
        self.inside: dict[int, tuple[int, int]] = {}
        for step, touch in enumerate(touches):
            for i in map(self.root, touch.writes):
                self.first[i] = min(self.first[i], step)
            for i in map(self.root, (*touch.reads, *touch.writes)):
                self.last[i] = max(self.last[i], step)

    def root(self, i: int) -> int:
        while self._parent[i] != i:
            self._parent[i] = i = self._parent[self._parent[i]]
        return i

    def overwrite(self, base: int, out: int) -> None:
        """Puts group `out` into the memory of group `base`, which nobody reads any more."""
        self._parent[out] = base
        self.last[base] = self.last[out]

    def put_inside(self, part: int, whole: int, offset: int) -> None:
        """Makes group `part` a part of group `whole`."""
        self.inside[part] = whole, offset
        self.first[whole], self.last[whole] = min(self.first[whole], self.first[part]), max(self.last[whole], self.last[part])

    def outermost(self, root: int) -> tuple[int, int]:
        """The group that a group is a part of in the end, or itself, and the byte at which it begins there."""
        start = 0
        while root in self.inside:
            root, offset = self.inside[root]
            start += offset
        return root, start

    def members(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for i in range(len(self._parent)):
            found.setdefault(self.root(i), []).append(i)
        return found


def assign(
    sizes: Sequence[int],
    touches: Sequence[Touch],
    views: Sequence[tuple[int, int]],
    fixed: Mapping[int, Home],
    outputs: Sequence[int],
    joins: Sequence[Join] = (),
) -> tuple[list[Home], int, set[int]]:
    """Gives every tensor its memory; returns homes, the arena's size, and the steps of joins that are not needed.

    sizes: bytes of each tensor. touches: the steps in order. views: (tensor, other) pairs of which the first is the same
    memory as the second. fixed: tensors that are inputs or constants, which nothing overwrites. outputs: tensors that are
    written straight into output memory; each must be the only output among its views, and none of its views fixed.
    """
    groups = _Groups(len(sizes), touches, views)
    for i in outputs:
        groups.last[groups.root(i)] = len(touches)
    foreign = {groups.root(i) for i in fixed}
    for step, touch in enumerate(touches):
        _reuse(groups, step, touch, sizes, foreign)
    number_of = {groups.root(i): (number, i) for number, i in enumerate(outputs)}
    spared = _place_parts(groups, touches, joins, {*foreign, *number_of})
    homes = [Home("arena")] * len(sizes)
    lives: list[tuple[int, Life]] = []
    for root, members in groups.members().items():
        chief, home = root, Home("arena")
        if root in number_of:
            chief, home = number_of[root][1], Home("output", number_of[root][0])
        elif root in foreign:
            chief = next(i for i in members if i in fixed)
            home = fixed[chief]
        elif root in groups.inside:
            continue
        elif groups.last[root] >= 0:
            size = max(sizes[i] for i in members)
            lives.append((root, Life(size, min(groups.first[root], groups.last[root]), groups.last[root])))
        for i in members:
            homes[i] = Home("alias", chief)
        homes[chief] = home
    offsets, total = arena([life for _, life in lives])
    for (root, _), offset in zip(lives, offsets):
        homes[root] = Home("arena", offset)
    for root, members in groups.members().items():
        if root in groups.inside:
            whole, start = groups.outermost(root)
            for i in members:
                homes[i] = Home("alias", whole, start)
    return homes, total, spared


def _place_parts(groups: _Groups, touches: Sequence[Touch], joins: Sequence[Join], taken: set[int]) -> set[int]:
    """Puts what joins copy where it is copied to, if nothing is written there while the other is still read.

    Returns the steps that have nothing left to do.
    """
    written: dict[int, set[int]] = {}
    for step, touch in enumerate(touches):
        for i in map(groups.root, touch.writes):
            written.setdefault(i, set()).add(step)
    own: dict[int, set[int]] = {}
    for join in joins:
        own.setdefault(groups.root(join.whole), set()).add(join.step)
    spared = set()
    for join in joins:
        part, whole = groups.root(join.part), groups.root(join.whole)
        if part in taken or whole in taken or part in groups.inside or groups.outermost(whole)[0] == part:
            continue
        if max(written[part]) < join.step and (groups.last[part] <= join.step or written[whole] == own[whole]):
            groups.put_inside(part, whole, join.offset)
            spared.add(join.step)
    return spared


def _reuse(groups: _Groups, step: int, touch: Touch, sizes: Sequence[int], foreign: set[int]) -> None:
    """Lets the first output of a step overwrite an input that is read here for the last time."""
    if not touch.inplace:
        return
    out = groups.root(touch.writes[0])
    for i in touch.inplace:
        base = groups.root(i)
        alone = [r for r in touch.reads if groups.root(r) == base] == [i]
        if (alone and base not in (out, *foreign) and groups.last[base] == step and groups.first[out] == step
                and sizes[i] == sizes[touch.writes[0]]):
            groups.overwrite(base, out)
            return
