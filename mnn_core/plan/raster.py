"""Merges Rasters: a copy of a copy becomes one copy, and copies that change nothing disappear."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ..ir import Op, Region, Spec
from ..ops._compose import MAX_REGIONS, compose, join


def is_identity(op: Op, specs: Mapping[str, Spec]) -> bool:
    """Whether an op's output holds its (first) input's elements in the same order, as a reshape's does: no copy is needed."""
    if op.type != "Raster":
        return False
    size = specs[op.inputs[0]].size
    if specs[op.outputs[0]].size != size:
        return False
    return size == 0 or op["regions"] == _identity(0, size)


def merge(ops: Sequence[Op], specs: Mapping[str, Spec], keep: Collection[str]) -> list[Op]:
    """Rewrites the Rasters among ops (in topological order); all tensors in `keep` are still made, with the same values.

    - A Raster that reads another's output reads that one's sources instead, where the copies compose into few regions.
    - Regions that continue each other become one.
    - Readers of a Raster that changes neither shape nor order read its source; equal Rasters are made once.
    - Rasters that nobody reads any more are dropped.

    Ops given are not changed; changed ones are copies.
    """
    made: dict[str, Op] = {}  # Raster outputs -> their Raster, as rewritten
    same: dict[str, str] = {}  # tensor -> the equal one to read instead
    known: dict[tuple, str] = {}  # what a Raster does -> the output of the first that does it
    result = []
    for op in ops:
        if any(name in same for name in op.inputs):
            op = replace(op, inputs=[same.get(name, name) for name in op.inputs])
        if op.type == "Raster":
            op = _merged(op, made, specs)
            out = op.outputs[0]
            key = (*op.inputs, op["regions"], op["shape"], repr(op["fill"]))
            vanishes = is_identity(op, specs) and specs[op.inputs[0]].shape == specs[out].shape
            twin = op.inputs[0] if vanishes else known.get(key)
            if twin is not None:
                same[out] = twin
            known.setdefault(key, out)
            made[out] = op
        result.append(op)
    return _used(result, keep)


def _identity(source: int, size: int) -> tuple[Region, ...]:
    """The regions of a Raster that copies a whole tensor as it is."""
    return (Region(source, (size,), 0, (1,), 0, (1,)) if size > 1 else Region(source, (), 0, (), 0, ()),)


def _merged(op: Op, made: Mapping[str, Op], specs: Mapping[str, Spec]) -> Op:
    """A Raster with every source that is itself a Raster's output replaced by what that one reads, where possible."""
    regions = join(op["regions"])
    first = made.get(op.inputs[0])
    if first is not None and first["fill"] is not None and is_identity(op, specs):
        # Elements that no region makes can be handed on only by a copy that takes all there is, in order.
        return replace(op, inputs=list(first.inputs), attrs={**first.attrs, "shape": op["shape"]})
    own: dict[int, list[Region]] = {}
    for r in regions:
        own.setdefault(r.source, []).append(r)
    read: list[tuple[str, Region]] = []
    limit = len(regions)
    for index, mine in own.items():
        name = op.inputs[index]
        producer = made.get(name)
        composed = _composed(mine, producer["regions"]) if producer is not None and producer["fill"] is None else None
        if composed is None or producer is None:
            read += [(name, r) for r in mine]
        else:
            read += [(producer.inputs[r.source], r) for r in composed]
            limit += len(producer["regions"])
    names: dict[str, int] = {}
    new = join([replace(r, source=names.setdefault(name, len(names))) for name, r in read])
    if len(new) > max(MAX_REGIONS, limit):
        names, new = {name: i for i, name in enumerate(op.inputs)}, regions
    used = list(dict.fromkeys(r.source for r in new))
    place = {old: i for i, old in enumerate(used)}
    inputs = [list(names)[i] for i in used] or op.inputs[:1]
    regions = [replace(r, source=place[r.source]) for r in new]
    return replace(op, inputs=inputs, attrs={**op.attrs, "regions": tuple(regions)})


def _composed(regions: Sequence[Region], producers: Sequence[Region]) -> list[Region] | None:
    """Regions that read a Raster's output, as regions that read its sources; None if that takes too many."""
    found: list[Region] = []
    for r in regions:
        composed = compose(r, producers, limit=max(MAX_REGIONS, min(len(producers), 4 * MAX_REGIONS)))
        if composed is None or len(found) + len(composed) > max(4 * MAX_REGIONS, len(regions)):
            return None
        found += composed
    return found


def _used(ops: Sequence[Op], keep: Collection[str]) -> list[Op]:
    """ops without the Rasters that nothing in `keep` and no op that stays reads."""
    wanted, found = set(keep), []
    for op in reversed(ops):
        if op.type != "Raster" or op.outputs[0] in wanted:
            found.append(op)
            wanted.update(op.inputs)
    return found[::-1]
