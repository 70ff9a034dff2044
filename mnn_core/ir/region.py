"""Copy regions: what the Raster op is made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Region:
    """A strided copy: dst[dst_offset + sum i_k*dst_strides_k] = src[src_offset + sum i_k*src_strides_k], 0 <= i_k < size_k.

    source: index of the input that is read. Offsets and strides are in elements; strides may be 0 or negative.
    """

    source: int
    size: tuple[int, ...]
    src_offset: int
    src_strides: tuple[int, ...]
    dst_offset: int
    dst_strides: tuple[int, ...]


def flatten(regions: Iterable[Region]) -> tuple[int, ...]:
    """Regions as native kernels read them; for each: source, src_offset, dst_offset, n, n sizes, n src and n dst strides."""
    flat: list[int] = []
    for r in regions:
        flat += (r.source, r.src_offset, r.dst_offset, len(r.size), *r.size, *r.src_strides, *r.dst_strides)
    return tuple(flat)
