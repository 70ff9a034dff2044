"""Merges Rasters: a copy of a copy becomes one copy, and copies that change nothing disappear."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ..ir import Op, Region, Spec
from .regions import MAX_REGIONS, compose, join


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
    inputs, fill = list(op.inputs), op["fill"]
    for name in op.inputs:
        producer = made.get(name)
        if producer is None:
            continue
        through = _through(inputs, regions, name, producer, specs[name].size, specs[op.outputs[0]].size, fill)
        if through is not None:
            inputs, regions, fill = through
    used = list(dict.fromkeys(r.source for r in regions)) or [0]
    place = {old: new for new, old in enumerate(used)}
    regions = [replace(r, source=place[r.source]) for r in regions]
    return replace(op, inputs=[inputs[i] for i in used], attrs={**op.attrs, "regions": tuple(regions), "fill": fill})


def _through(inputs: list[str], regions: list[Region], name: str, producer: Op, between: int, total: int,
             fill: float | None) -> tuple[list[str], list[Region], float | None] | None:
    """Inputs, regions, fill of a Raster that reads the producer's sources instead of its output `name`; None if it cannot."""
    index = inputs.index(name)
    inputs = list(inputs)
    sources = []
    for source in producer.inputs:
        if source not in inputs:
            inputs.append(source)
        sources.append(inputs.index(source))
    if producer["fill"] is not None:
        # Elements that no region makes can be handed on only by copies that take all there is, in order.
        if tuple(regions) != _identity(index, between) or between != total:
            return None
        return inputs, [replace(r, source=sources[r.source]) for r in producer["regions"]], producer["fill"]
    new: list[Region] = []
    for r in regions:
        if r.source != index:
            new.append(r)
            continue
        composed = compose(r, producer["regions"])
        if composed is None:
            return None
        new += (replace(c, source=sources[c.source]) for c in composed)
        if len(new) > max(4 * MAX_REGIONS, len(regions)):
            return None
    joined = join(new)
    if len(joined) > max(MAX_REGIONS, len(regions) + len(producer["regions"])):
        return None
    return inputs, joined, fill


def _used(ops: Sequence[Op], keep: Collection[str]) -> list[Op]:
    """ops without the Rasters that nothing in `keep` and no op that stays reads."""
    wanted, found = set(keep), []
    for op in reversed(ops):
        if op.type != "Raster" or op.outputs[0] in wanted:
            found.append(op)
            wanted.update(op.inputs)
    return found[::-1]
