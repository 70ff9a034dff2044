"""Operators that move data, and those that make shapes."""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper

from .draft import INDICES, Draft, Refused, Tensor
from .families import family

_ANY = [np.float32, np.int64, np.int32, np.float16, np.float64, np.uint8, np.int8, np.bool_, np.uint32, np.uint64, np.int16,
        np.uint16]


@family("Reshape")
def reshape(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (0, 4))
    rest, dims = x.value.size, []
    while rest > 1 and len(dims) < 4:
        step = g.pick([d for d in range(1, min(rest, 12) + 1) if rest % d == 0])
        dims.append(step)
        rest //= step
    dims = [0, *dims, 2] if x.value.size == 0 else [*dims, rest] if rest > 1 or g.flag() else dims
    zero = g.opset >= 14 and (x.value.size == 0 or g.rarely())
    if not zero:
        dims = [0 if i < x.rank and x.shape[i] == d and g.flag() else d for i, d in enumerate(dims)]
    if dims and g.flag() and x.value.size:
        dims[g.integer(0, len(dims) - 1)] = -1
    return g.node(op, [x, g.ints(*dims)], allowzero=1 if zero else None)


@family("Transpose")
def transpose(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (0, 5))
    return g.node(op, [x], perm=[int(i) for i in g.rng.permutation(x.rank)] if g.integer(0, 3) and x.rank else None)


@family("Flatten")
def flatten(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 4))
    axis = g.integer(-x.rank if g.opset >= 11 else 0, x.rank)
    return g.node(op, [x], axis=axis if g.flag() else None)


@family("Squeeze", "Unsqueeze")
def squeeze(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (0, 4), None if g.flag() else tuple(g.pick([1, 3]) for _ in range(g.integer(0, 4))))
    if op == "Squeeze":
        ones = [i for i, d in enumerate(x.shape) if d == 1]
        axes = [i - (x.rank if g.opset >= 11 and g.flag() else 0) for i in ones if g.flag()] if ones and g.flag() else None
        axes = axes or None
    else:
        count = g.integer(1, 2)
        rank = x.rank + count
        axes = [int(a) - (rank if g.opset >= 11 and g.flag() else 0) for a in g.rng.permutation(rank)[:count]]
        if g.opset < 11:
            axes.sort()
    if g.opset < 13:
        return g.node(op, [x], axes=axes)
    return g.node(op, [x, None if axes is None else g.ints(*axes)])


@family("Slice")
def slice_(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 4))
    axes = g.axes(x.rank)
    if g.opset < 10:
        axes = [a % x.rank for a in axes]
    constant = not g.rarely()
    far = [100, -100, *([2**31 - 1, -(2**31), 2**63 - 1, -(2**63) + 1] if constant else [])]
    starts, ends, steps = [], [], []
    for axis in axes:
        size = x.shape[axis]
        step = g.pick([1, 2, -1, -2, 3, -3]) if g.opset >= 10 else 1
        low, high = g.integer(-size - 1, size + 1), g.integer(-size - 1, size + 1)
        starts.append(low if not g.rarely() else g.pick(far))
        ends.append(high if not g.rarely() else g.pick(far))
        steps.append(step)
    if g.opset < 10:
        return g.node(op, [x], starts=starts, ends=ends, axes=axes if axes != list(range(len(axes))) or g.flag() else None)
    dtype = g.pick(INDICES)
    clamp = [[min(max(v, np.iinfo(dtype).min), np.iinfo(dtype).max) for v in part] for part in (starts, ends)]
    parts = [g.given(np.array(v, dtype), constant) for v in clamp]
    default = axes == list(range(len(axes)))
    one = all(s == 1 for s in steps)
    return g.node(op, [x, *parts, None if default and g.flag() else g.given(np.array(axes, dtype), constant),
                       None if one and g.flag() else g.given(np.array(steps, dtype), constant)])


@family("Concat")
def concat(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 4))
    axis, inputs = g.axis(x.rank), [x]
    if g.opset < 11:
        axis %= x.rank
    for _ in range(g.integer(0, 3)):
        dims = list(x.shape)
        dims[axis] = g.integer(0 if g.empty else 1, 3)
        inputs.append(g.tensor([x.dtype], shape=dims))
    return g.node(op, inputs[::-1] if g.flag() else inputs, axis=axis)


@family("Split")
def split(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 4))
    axis = g.axis(x.rank)
    if g.opset < 11:
        axis %= x.rank
    size, parts = x.shape[axis], g.integer(1, 4)
    if g.flag() or (g.opset < 18 and size % parts):
        cuts = sorted(g.integer(0, size) for _ in range(parts - 1))
        sizes = [int(v) for v in np.diff([0, *cuts, size])]
        if g.opset < 13:
            return g.node(op, [x], parts, axis=axis, split=sizes)
        return g.node(op, [x, g.ints(*sizes)], parts, axis=axis)
    return g.node(op, [x], parts, axis=axis, num_outputs=parts if g.opset >= 18 else None)


@family("Pad")
def pad(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 4))
    mode = g.pick([None, "constant", "edge", "reflect"] + (["wrap"] if g.opset >= 19 else []))
    axes = [a % x.rank for a in g.axes(x.rank)] if g.opset >= 18 and g.flag() else None
    sizes = [x.shape[a] for a in (range(x.rank) if axes is None else axes)]
    low = -1 if mode in (None, "constant") else 0
    pads = [g.integer(low if s > 2 else 0, min(2, s - 1) if mode == "reflect" and s else 2) for s in sizes * 2]
    if g.opset < 11:
        return g.node(op, [x], mode=mode, pads=pads, value=0.5 if g.flag() else None)
    fill = g.given(np.array(1, x.dtype)) if g.flag() else None
    dtype = g.pick(INDICES) if g.opset >= 18 else np.int64
    where = None if axes is None else g.given(np.array([a - (x.rank if g.flag() else 0) for a in axes], dtype), True)
    return g.node(op, [x, g.ints(*pads), fill, where], mode=mode)


@family("Expand")
def expand(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (0, 4))
    return g.node(op, [x, g.ints(*g.broadcast(x.shape))])


@family("Tile")
def tile(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 4))
    return g.node(op, [x, g.ints(*(g.integer(0 if g.empty else 1, 3) for _ in x.shape))])


@family("DepthToSpace", "SpaceToDepth")
def blocks(g: Draft, op: str) -> list[Tensor]:
    n, c, h, w = g.dims(4, 1, 3)
    block = g.integer(1, 3)
    if op == "SpaceToDepth":
        return g.node(op, [g.tensor(g.types(op), shape=(n, c, h * block, w * block))], blocksize=block)
    x = g.tensor(g.types(op), shape=(n, c * block * block, h, w))
    return g.node(op, [x], blocksize=block, mode=g.pick([None, "DCR", "CRD"]) if g.opset >= 11 else None)


@family("Shape", "Size")
def shape(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(_ANY, (0, 4))
    if op == "Size" or g.opset < 15:
        return g.node(op, [x])
    return g.node(op, [x], start=g.pick([None, 0, 1, -2, -7]), end=g.pick([None, 1, 2, -1, 9]))


@family("ReverseSequence")
def reverse_sequence(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (2, 4))
    batch = g.integer(0, 1)
    lengths = g.rng.integers(1 if x.shape[1 - batch] else 0, x.shape[1 - batch] + 1, x.shape[batch])
    return g.node(op, [x, g.given(lengths.astype(np.int64))], batch_axis=batch, time_axis=1 - batch)


@family("Trilu")
def trilu(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (2, 4))
    k = g.given(np.array(g.integer(-4, 4), np.int64)) if g.flag() else None
    return g.node(op, [x, k], upper=g.pick([None, 0, 1]))


@family("CenterCropPad")
def center_crop_pad(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 4))
    axes = g.axes(x.rank) if g.flag() else None
    count = x.rank if axes is None else len(axes)
    return g.node(op, [x, g.given(np.array([g.integer(1, 6) for _ in range(count)], g.pick(INDICES)))], axes=axes)


@family("ConstantOfShape")
def constant_of_shape(g: Draft, op: str) -> list[Tensor]:
    value = numpy_helper.from_array(np.array([2]).astype(g.dtype(_ANY))) if g.flag() else None
    return g.node(op, [g.ints(*g.dims(g.integer(0, 4)))], value=value)


@family("Constant")
def constant(g: Draft, op: str) -> list[Tensor]:
    kind = g.integer(0, 4 if g.opset >= 12 else 0)
    if kind == 0:
        dtype = g.dtype(_ANY)
        return g.node(op, [], value=numpy_helper.from_array(g.values(dtype, g.dims(g.integer(0, 3)))))
    return g.node(op, [], **[{"value_int": 3}, {"value_ints": [3, -1, 4]}, {"value_float": 0.5},
                             {"value_floats": [0.5, -1.5]}][kind - 1])


@family("Range")
def range_(g: Draft, op: str) -> list[Tensor]:
    dtype = g.dtype(g.types(op))
    start, step = g.integer(-4, 4), g.pick([1, 2, -1, -3])
    limit = start + step * g.integer(0, 5) + g.integer(0, 1)
    scale = 0.5 if dtype.kind == "f" and g.flag() else 1
    constant = g.flag()
    return g.node(op, [g.given(np.array(v * scale, dtype), constant) for v in (start, limit, step)])


@family("EyeLike")
def eye(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (2, 2))
    return g.node(op, [x], dtype=g.pick([None, 1, 7, 6, 11, 2, 9]), k=g.pick([None, 1, -1, 3]))


@family("OneHot")
def one_hot(g: Draft, op: str) -> list[Tensor]:
    kind, other, depth_kind = g.pick([(np.int64, np.float32, np.int64), (np.int32, np.float32, np.int32),
                                      (np.float32, np.float32, np.float32), (np.int64, np.int64, np.int64),
                                      (np.int64, np.int32, np.float32), (np.int32, np.float32, np.float32),
                                      (np.float32, np.int64, np.int64), (np.int64, np.float32, np.int32)])
    x = g.given(g.values(np.int64, g.dims(g.integer(1, 3)), -3 if g.opset >= 11 else 0, 4).astype(kind))
    depth = g.given(np.array(g.integer(1, 4), depth_kind).reshape(() if g.flag() else (1,)))
    values = g.given(np.array([g.integer(0, 1), g.integer(2, 5)], other))
    return g.node(op, [x, depth, values], axis=g.integer(-x.rank - 1, x.rank) if g.flag() else None)


@family("Col2Im")
def col2im(g: Draft, op: str) -> list[Tensor]:
    rank = g.integer(1, 3)
    kernel = [g.integer(1, 2) for _ in range(rank)]
    strides = [g.integer(1, 2) for _ in range(rank)]
    dilations = [g.integer(1, 2) for _ in range(rank)]
    pads = [g.integer(0, 1) for _ in range(2 * rank)]
    image = [g.integer(3, 5) for _ in range(rank)]
    blocks_ = [(i + pads[d] + pads[rank + d] - dilations[d] * (kernel[d] - 1) - 1) // strides[d] + 1
               for d, i in enumerate(image)]
    if min(blocks_) < 1:
        raise Refused("no block")
    x = g.tensor(g.types(op), shape=(g.integer(1, 2), g.integer(1, 2) * int(np.prod(kernel)), int(np.prod(blocks_))))
    return g.node(op, [x, g.ints(*image), g.ints(*kernel)], dilations=dilations if g.flag() or max(dilations) > 1 else None,
                  pads=pads if g.flag() or max(pads) else None, strides=strides)
