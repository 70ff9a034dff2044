"""Joins of channel-blocked tensors: a concatenation along the channels whose parts are computed where they belong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..ir import Op, Spec


class Join(NamedTuple):
    """Step `step` copies all of tensor `part` to byte `offset` of tensor `whole`; it is not needed if part lies there."""

    step: int
    part: int
    whole: int
    offset: int


def channel_parts(op: Op, specs: Mapping[str, Spec]) -> list[tuple[str, int]] | None:
    """(input, first channel) for a Raster that puts whole images [1, C, ...] one after the other; None for other Rasters.

    Blocked images of a batch of one lie so, too, if each begins at a full block.
    """
    whole = specs[op.outputs[0]]
    if op.type != "Raster" or op["fill"] is not None or whole.rank < 3 or whole.shape[0] != 1 or not whole.size or \
            len(op["regions"]) != len(op.inputs) or len(op.inputs) < 2:
        return None
    pixels = whole.size // whole.shape[1]
    parts: list[tuple[str, int]] = []
    channels = 0
    for region in sorted(op["regions"], key=lambda r: r.dst_offset):
        part = specs[op.inputs[region.source]]
        if part.shape[:1] + part.shape[2:] != whole.shape[:1] + whole.shape[2:] or region.dst_offset != channels * pixels or \
                (region.size, region.src_offset, region.src_strides, region.dst_strides) != ((part.size,), 0, (1,), (1,)):
            return None
        parts.append((op.inputs[region.source], channels))
        channels += part.shape[1]
    return parts if channels == whole.shape[1] else None
