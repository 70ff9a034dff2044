"""Operators that read or write at indices, and those that order or choose elements."""

from __future__ import annotations

import numpy as np

from .draft import INDICES, Draft, Refused, Tensor
from .families import family


def places(g: Draft, shape: tuple[int, ...], size: int, dtype: type | None = None, negative: bool = True) -> np.ndarray:
    """Indices into an axis of a size."""
    if not size and np.prod(shape):
        raise Refused("nothing to index")
    low = -size if negative and g.flag() else 0
    return (g.rng.integers(low, size, shape) if size else np.zeros(shape)).astype(dtype or g.pick(INDICES))


@family("Gather")
def gather(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 4))
    axis = g.axis(x.rank)
    at = places(g, g.dims(g.integer(0, 2)), x.shape[axis], negative=g.opset >= 11)
    return g.node(op, [x, g.given(at)], axis=axis if axis or g.flag() else None)


@family("GatherElements")
def gather_elements(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 4))
    axis = g.axis(x.rank)
    dims = [g.integer(1, d) if d else 0 for d in x.shape]
    dims[axis] = g.integer(1, 4) if x.shape[axis] else 0
    return g.node(op, [x, g.given(places(g, tuple(dims), x.shape[axis]))], axis=axis if axis or g.flag() else None)


@family("GatherND")
def gather_nd(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 4))
    batch = g.integer(0, x.rank - 1) if g.opset >= 12 else 0
    depth = g.integer(1, x.rank - batch)
    dims = (*x.shape[:batch], *g.dims(g.integer(0, 2)))
    at = np.stack([places(g, dims, x.shape[batch + i], np.int64) for i in range(depth)], -1)
    return g.node(op, [x, g.given(at)], batch_dims=batch if batch or g.flag() else None)


@family("ScatterElements", "Scatter")
def scatter_elements(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 4))
    axis = g.axis(x.rank)
    reduction = g.pick([None, "add"] + (["mul"] if g.opset >= 16 else []) + (["max", "min"] if g.opset >= 18 else [])) \
        if g.opset >= 16 and op != "Scatter" else None
    dims = [g.integer(1, d) if d else 0 for d in x.shape]
    size = x.shape[axis]
    at = places(g, tuple(dims), size, negative=g.opset >= 11)
    if reduction is None and size:  # twice the same place is undefined
        order = g.rng.random(x.shape).argsort(axis)
        at = order[tuple(slice(d) for d in dims)].astype(at.dtype) - (size if (at < 0).any() else 0)
    return g.node(op, [x, g.given(at.astype(at.dtype)), g.tensor([x.dtype], shape=at.shape)],
                  axis=axis if axis or g.flag() else None, reduction=reduction)


@family("ScatterND")
def scatter_nd(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 4))
    depth = g.integer(1, x.rank)
    space = x.shape[:depth]
    reduction = g.pick([None, "add", "mul"] + (["max", "min"] if g.opset >= 18 else [])) if g.opset >= 16 else None
    if not np.prod(space):
        raise Refused("nothing to index")
    count = g.integer(1, 3)
    flat = g.rng.integers(0, np.prod(space), count) if reduction else g.rng.permutation(int(np.prod(space)))[:count]
    at = np.stack(np.unravel_index(flat, space), -1).astype(np.int64)
    if g.flag():
        at = at - np.array(space)
    return g.node(op, [x, g.given(at), g.tensor([x.dtype], shape=(len(flat), *x.shape[depth:]))], reduction=reduction)


@family("TensorScatter")
def tensor_scatter(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (3, 4))
    axis = g.integer(1, x.rank - 1)
    size = x.shape[axis]
    dims = list(x.shape)
    dims[axis] = g.integer(1, max(size, 1))
    mode = g.pick([None, "linear", "circular"])
    last = size if mode == "circular" else size - dims[axis] + 1
    if last < 1:
        raise Refused("nothing to write")
    at = g.given(g.rng.integers(0, last, x.shape[0]).astype(np.int64)) if g.flag() else None
    return g.node(op, [x, g.tensor([x.dtype], shape=dims), at], axis=axis - (x.rank if g.flag() else 0), mode=mode)


@family("Compress")
def compress(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 4))
    axis = g.axis(x.rank) if g.flag() else None
    if axis is not None and g.opset < 11:
        axis %= x.rank
    size = x.value.size if axis is None else x.shape[axis]
    return g.node(op, [x, g.tensor([bool], shape=(g.integer(0, size),))], axis=axis)


@family("NonZero")
def non_zero(g: Draft, op: str) -> list[Tensor]:
    return g.node(op, [g.tensor(g.types(op), (0, 4), low=-1, high=1)])


@family("Unique")
def unique(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 3), low=0, high=2)
    if x.owner is g and not x.noise and x.dtype.kind == "f":
        x = g.given(np.round(x.value))
    wanted = [True, g.flag(), g.flag(), g.flag()]
    return g.node(op, [x], wanted, axis=g.axis(x.rank) if g.flag() else None, sorted=g.pick([None, 0, 1]))


@family("TopK")
def top_k(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 4), low=-50, high=50)
    axis = g.axis(x.rank)
    if g.opset < 11:
        axis %= x.rank
    k = g.integer(0 if g.rarely() else 1, max(x.shape[axis], 1))
    if g.opset < 10:
        return g.node(op, [x], 2, axis=axis, k=k)
    if g.opset < 11:
        return g.node(op, [x, g.ints(k)], 2, axis=axis)
    return g.node(op, [x, g.ints(k)], 2, axis=axis, largest=g.pick([None, 0, 1]), sorted=g.pick([None, 1]))


@family("NonMaxSuppression")
def non_max_suppression(g: Draft, op: str) -> list[Tensor]:
    batch, boxes, classes = g.integer(1, 2), g.integer(0 if g.empty else 1, 6), g.integer(1, 3)
    center = g.pick([None, 0, 1])
    a, b = g.values(np.float32, (batch, boxes, 2), 0, 2), g.values(np.float32, (batch, boxes, 2), 0.5, 2)
    corners = np.concatenate([a, b if center else a + b], -1)
    if not center and g.flag():
        corners = corners[..., [2, 3, 0, 1]]
    scores = g.rng.permutation(batch * classes * boxes).reshape(batch, classes, boxes).astype(np.float32) / 32
    options = [g.given(v) if g.flag() else None for v in (np.array(g.integer(0, 4), np.int64), np.array(0.37, np.float32),
                                                          np.array(0.3, np.float32))]
    return g.node(op, [g.given(corners, False), g.given(scores), *options], center_point_box=center, fragile=True)
