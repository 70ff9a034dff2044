"""Resampling of any axis by ONNX's rules, out of index arithmetic, gathers and weights.

Everything but the tensor itself depends on shapes only, so plans compute it once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .builder import Builder
from .rules import Unsupported


@dataclass(frozen=True)
class Method:
    """mode: nearest, linear, cubic; the other fields are attributes of ONNX's Resize."""

    mode: str
    transform: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic_a: float = -0.75
    exclude_outside: bool = False
    extrapolation: float = 0.0
    antialias: bool = False


@dataclass(frozen=True)
class Axis:
    """An axis to resize, by a scale or to a size, or both; start, end: its region of interest.

    All are names of rank-0 tensors, "" for none.
    """

    index: int
    scale: str
    size: str
    start: str
    end: str


class _Numbers:
    """Float arithmetic on tensors that depend on shapes only."""

    def __init__(self, b: Builder) -> None:
        self.b = b

    def do(self, kind: str, x: str, y: str | float) -> str:
        return self.b.binary(kind, x, y if isinstance(y, str) else self.b.const(np.float32(y)))

    def floats(self, x: str) -> str:
        return self.b.cast(x, np.float32)

    def rounded(self, x: str, how: str) -> str:
        if how == "round_prefer_floor":
            return self.b.unary("CEIL", self.do("SUB", x, 0.5))
        if how == "round_prefer_ceil":
            return self.b.unary("FLOOR", self.do("ADD", x, 0.5))
        return self.b.unary("FLOOR" if how == "floor" else "CEIL", x)

    def clamped(self, x: str, top: str) -> str:
        return self.do("MINIMUM", self.do("MAXIMUM", x, 0.0), top)


def resample(b: Builder, x: str, method: Method, axes: list[Axis], outputs: list[str]) -> None:
    """Resizes the axes one after the other; adds the ops that make `outputs`."""
    masks = []
    shape, dtype, rank = b.shape_of(x), b.dtype(x), b.rank(x)
    crop = method.transform == "tf_crop_and_resize"
    if crop and rank is None:
        raise Unsupported("tf_crop_and_resize of a tensor of unknown rank")
    if not axes:
        b.op("Identity", [x], outputs)
        return
    for i, axis in enumerate(axes):
        n = _Numbers(b)
        old = b.op("GatherV2", [shape, b.const(np.int32(axis.index)), b.const(np.int32(0))], dtype=np.int64)
        length, scale, new = _sizes(n, old, axis)
        coordinates = _coordinates(n, method, axis, length, scale, new)
        last = outputs if i == len(axes) - 1 and not crop else 1
        x = _along(n, x, method, axis.index, coordinates, old, length, scale, last)
        if crop:
            outside = b.binary("LOGICALOR", b.binary("LESS", coordinates, b.const(np.float32(0)), dtype=np.bool_),
                               b.binary("GREATER", coordinates, n.do("SUB", length, 1.0), dtype=np.bool_), dtype=np.bool_)
            assert rank is not None
            masks.append(_column(b, outside, axis.index, rank))
    if crop:
        mask = masks[0]
        for other in masks[1:]:
            mask = b.binary("LOGICALOR", mask, other, dtype=np.bool_)
        b.op("Select", [mask, b.number(method.extrapolation, x), x], outputs, dtype=dtype)


def _column(b: Builder, vector: str, axis: int, rank: int) -> str:
    """A vector shaped to run along an axis."""
    return b.reshape(vector, (-1, *[1] * (rank - 1 - axis)))


def _sizes(n: _Numbers, old: str, axis: Axis) -> tuple[str, str, str]:
    """Old size as a float, scale, new size as an integer."""
    length = n.floats(old)
    if axis.size:
        return length, axis.scale or n.do("REALDIV", n.floats(axis.size), length), n.b.cast(axis.size, np.int64)
    return length, axis.scale, n.b.cast(n.b.unary("FLOOR", n.do("MUL", length, axis.scale)), np.int64)


def _coordinates(n: _Numbers, method: Method, axis: Axis, length: str, scale: str, new: str) -> str:
    """Where each element of the result lies in the input."""
    b = n.b
    steps = n.floats(b.op("Range", [b.const(np.int32(0)), new, b.const(np.int32(1))], dtype=np.int64))
    count = n.floats(new)
    kind = method.transform
    if kind == "asymmetric":
        return n.do("REALDIV", steps, scale)
    if kind == "align_corners":
        ratio = n.do("REALDIV", n.do("SUB", length, 1.0), n.do("MAXIMUM", n.do("SUB", count, 1.0), 1.0))
        return n.do("MUL", steps, ratio)
    if kind == "tf_crop_and_resize":
        top = n.do("SUB", length, 1.0)
        ratio = n.do("REALDIV", n.do("MUL", n.do("SUB", axis.end, axis.start), top),
                     n.do("MAXIMUM", n.do("SUB", count, 1.0), 1.0))
        many = n.do("ADD", n.do("MUL", steps, ratio), n.do("MUL", axis.start, top))
        one = n.do("MUL", n.do("MUL", n.do("ADD", axis.start, axis.end), 0.5), top)
        several = b.binary("GREATER", count, b.const(np.float32(1)), dtype=np.bool_)
        return b.op("Select", [several, many, one], dtype=np.float32)
    centres = n.do("REALDIV", n.do("ADD", steps, 0.5), scale)
    if kind == "tf_half_pixel_for_nn":
        return centres
    half = n.do("SUB", centres, 0.5)
    if kind == "pytorch_half_pixel":
        return n.do("MUL", half, n.floats(b.binary("GREATER", count, b.const(np.float32(1)), dtype=np.bool_)))
    if kind == "half_pixel_symmetric":
        adjustment = n.do("REALDIV", count, n.do("MUL", scale, length))
        offset = n.do("MUL", n.do("MUL", length, 0.5), n.do("SUB", b.const(np.float32(1)), adjustment))
        return n.do("ADD", half, offset)
    return half


def _along(n: _Numbers, x: str, method: Method, axis: int, coordinates: str, old: str, length: str, scale: str,
           outputs: list[str] | int) -> str:
    """One axis of x at the coordinates."""
    b = n.b
    top = n.do("SUB", length, 1.0)

    def take(position: str, outputs: list[str] | int = 1) -> str:
        index = b.cast(n.clamped(position, top), np.int32)
        return b.op("GatherV2", [x, index, b.const(np.int32(axis))], outputs, dtype=b.dtype(x))

    if method.mode == "nearest":
        return take(n.rounded(coordinates, method.nearest), outputs)
    if method.antialias:
        return _matrix(n, x, method, axis, coordinates, old, scale, outputs)
    rank = b.rank(x)
    if rank is None:
        raise Unsupported("Resize of a tensor of unknown rank")
    if method.mode == "linear":
        coordinates = n.clamped(coordinates, top)
        low = b.unary("FLOOR", coordinates)
        right = n.do("SUB", coordinates, low)
        taps = [(low, n.do("SUB", b.const(np.float32(1)), right)), (n.do("ADD", low, 1.0), right)]
    else:
        low = b.unary("FLOOR", coordinates)
        taps = []
        for i in (-1.0, 0.0, 1.0, 2.0):
            position = n.do("ADD", low, i)
            taps.append((position, _cubic(n, b.unary("ABS", n.do("SUB", coordinates, position)), method.cubic_a)))
        if method.exclude_outside:
            taps = _without_outside(n, taps, top)
    total = ""
    for i, (position, weight) in enumerate(taps):
        part = b.binary("MUL", take(position), _column(b, weight, axis, rank))
        total = part if not total else b.binary("ADD", total, part, outputs if i == len(taps) - 1 else 1)
    b.declare(total, None, rank)
    return total


def _without_outside(n: _Numbers, taps: list[tuple[str, str]], top: str) -> list[tuple[str, str]]:
    """Weights of positions outside the input become 0, and the others sum to 1."""
    b = n.b
    kept = []
    for position, weight in taps:
        inside = b.binary("EQUAL", position, n.clamped(position, top), dtype=np.bool_)
        kept.append((position, n.do("MUL", weight, n.floats(inside))))
    total = kept[0][1]
    for _, weight in kept[1:]:
        total = n.do("ADD", total, weight)
    return [(position, n.do("REALDIV", weight, total)) for position, weight in kept]


def _cubic(n: _Numbers, d: str, a: float) -> str:
    """Keys' kernel: ((a + 2) d - (a + 3)) d^2 + 1 up to 1, then ((a d - 5a) d + 8a) d - 4a up to 2, then 0."""
    b = n.b
    near = n.do("ADD", n.do("MUL", n.do("SUB", n.do("MUL", d, a + 2), a + 3), n.do("MUL", d, d)), 1.0)
    far = n.do("SUB", n.do("MUL", n.do("ADD", n.do("MUL", n.do("SUB", n.do("MUL", d, a), 5 * a), d), 8 * a), d), 4 * a)
    within = [b.binary("LESS_EQUAL", d, b.const(np.float32(limit)), dtype=np.bool_) for limit in (1, 2)]
    outer = b.op("Select", [within[1], far, b.const(np.float32(0))], dtype=np.float32)
    return b.op("Select", [within[0], near, outer], dtype=np.float32)


def _matrix(n: _Numbers, x: str, method: Method, axis: int, coordinates: str, old: str, scale: str,
            outputs: list[str] | int) -> str:
    """Antialiased: the kernel is stretched by 1 / scale when shrinking. A matrix of weights is applied to the axis, which is
    continued beyond its ends by the elements there, unless what is outside is to be left out."""
    b = n.b
    rank = b.rank(x)
    if rank is None:
        raise Unsupported("Resize of a tensor of unknown rank")
    shrink = n.do("MINIMUM", scale, 1.0)
    reach = b.cast(b.unary("CEIL", n.do("REALDIV", b.const(np.float32(2)), shrink)), np.int64)
    stop = b.binary("ADD", old, reach)
    positions = n.floats(b.op("Range", [b.unary("NEG", reach), stop, b.const(np.int32(1))], dtype=np.int64))
    inside = n.clamped(positions, n.do("SUB", n.floats(old), 1.0))
    distance = b.unary("ABS", n.do("SUB", b.reshape(positions, (-1, 1)), b.reshape(coordinates, (1, -1))))
    distance = n.do("MUL", distance, shrink)
    weights = _cubic(n, distance, method.cubic_a) if method.mode == "cubic" else \
        n.do("MAXIMUM", n.do("SUB", b.const(np.float32(1)), distance), 0.0)
    if method.exclude_outside:
        kept = n.floats(b.binary("EQUAL", positions, inside, dtype=np.bool_))
        weights = n.do("MUL", weights, b.reshape(kept, (-1, 1)))
    total = b.op("Reduction", [weights], operation="SUM", dim=(0,), keepDims=True)
    weights = n.do("REALDIV", weights, total)
    wide = b.op("GatherV2", [x, b.cast(inside, np.int32), b.const(np.int32(axis))], dtype=b.dtype(x))
    order = (*(i for i in range(rank) if i != axis), axis)
    back = tuple(int(i) for i in np.argsort(order))
    moved = b.op("Permute", [wide], dims=order) if axis != rank - 1 else wide
    product = b.op("MatMul", [moved, weights], 1 if axis != rank - 1 else outputs)
    if axis != rank - 1:
        product = b.op("Permute", [product], outputs, dims=back)
    b.declare(product, None, rank)
    return product
