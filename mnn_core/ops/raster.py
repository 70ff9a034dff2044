"""Raster: copies strided regions; what all data movement is lowered to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..errors import ShapeError
from ..ir import Op, Region, Spec
from .registry import Example, register

_F32 = np.dtype(np.float32)


def _infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    """Also checks that every region stays within its source and the output, as files can hold any numbers."""
    first = inputs[0] if inputs else None
    if first is None:
        raise ShapeError(f"{op}: a Raster needs an input, if only for its dtype")
    out = first.with_shape(op["shape"])
    covered = 0
    for index, r in enumerate(op["regions"]):
        source = inputs[r.source] if 0 <= r.source < len(inputs) else None
        if source is None:
            raise ShapeError(f"{op}: region {index} reads input {r.source} of {len(inputs)}")
        if source.dtype != out.dtype:
            raise ShapeError(f"{op}: input {r.source} is {source}, expected dtype {out.dtype.name} as of input 0")
        if not len(r.size) == len(r.src_strides) == len(r.dst_strides):
            raise ShapeError(f"{op}: region {index} has sizes and strides of different rank: {r}")
        _check_bounds(op, index, "reads", r.size, r.src_offset, r.src_strides, source.size)
        _check_bounds(op, index, "writes", r.size, r.dst_offset, r.dst_strides, out.size)
        covered += int(np.prod(r.size, dtype=object))
    if op["fill"] is None and covered < out.size:
        raise ShapeError(f"{op}: its regions write {covered} of {out.size} elements and it has no `fill` for the rest")
    return [out]


def _check_bounds(op: Op, index: int, verb: str, size: Sequence[int], offset: int, strides: Sequence[int], limit: int) -> None:
    if any(n < 0 for n in size):
        raise ShapeError(f"{op}: region {index} has a negative size: {list(size)}")
    if 0 in size:
        return
    low = offset + sum(min(0, s) * (n - 1) for n, s in zip(size, strides))
    high = offset + sum(max(0, s) * (n - 1) for n, s in zip(size, strides))
    if low < 0 or high >= limit:
        raise ShapeError(f"{op}: region {index} {verb} elements {low}..{high} of a tensor of {limit} elements")


def _strided(flat: np.ndarray, size: tuple[int, ...], offset: int, strides: tuple[int, ...], writeable: bool) -> np.ndarray:
    return as_strided(flat[offset:], size, tuple(s * flat.itemsize for s in strides), writeable=writeable)


@register("Raster", attrs={"regions": (), "shape": (), "fill": None}, infer=_infer, examples=[
    Example({"regions": (Region(0, (3, 2), 0, (1, 3), 0, (2, 1)),), "shape": (3, 2)}, [Spec((2, 3), _F32)], name="transpose"),
    Example({"regions": (Region(0, (6,), 0, (1,), 0, (1,)), Region(1, (4,), 3, (-1,), 6, (1,))), "shape": (10,)},
            [Spec((2, 3), _F32), Spec((4,), _F32)], name="concat_reversed"),
    Example({"regions": (Region(0, (2, 3), 0, (3, 1), 6, (5, 1)),), "shape": (4, 5), "fill": 1.5}, [Spec((2, 3), _F32)],
            name="pad"),
    Example({"regions": (Region(0, (2, 4, 3), 0, (3, 0, 1), 0, (12, 3, 1)),), "shape": (2, 4, 3)},
            [Spec((2, 1, 3), np.dtype(np.int32))], name="broadcast_int"),
    Example({"regions": (Region(0, (2, 3, 4, 5), 0, (1, 2, 6, 24), 0, (60, 20, 5, 1)),), "shape": (2, 3, 4, 5)},
            [Spec((5, 4, 3, 2), np.dtype(np.int8))], name="reverse_axes"),
])
def raster(op: Op, *inputs: np.ndarray) -> np.ndarray:
    """out = `fill` (0 if None), then every region copied. Regions do not overlap in the output."""
    fill = 0 if op["fill"] is None else op["fill"]
    out = np.full(op["shape"], fill, inputs[0].dtype)
    flat = out.reshape(-1)
    sources = [np.ascontiguousarray(x).reshape(-1) for x in inputs]
    for r in op["regions"]:
        if 0 not in r.size:
            _strided(flat, r.size, r.dst_offset, r.dst_strides, True)[...] = _strided(
                sources[r.source], r.size, r.src_offset, r.src_strides, False)
    return out
