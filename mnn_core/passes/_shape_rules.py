"""Output shapes of ops from shapes that hold names; see _shapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import zip_longest
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ..ir import Op, Spec
from ..ops import definition

if TYPE_CHECKING:
    from ._shapes import Shapes

#: A size, or the name of one.
Dim = int | str
Shape = tuple[Dim, ...]
Rule = Callable[["Shapes", Op], "Sequence[Shape | None]"]
RULES: dict[str, Rule] = {}


def broadcast(a: Dim, b: Dim, fresh: str) -> Dim:
    """The size that two sizes broadcast to."""
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    return a if isinstance(a, int) else b if isinstance(b, int) else fresh


def quotient(total: Shape, part: Shape, fresh: str) -> Dim:
    """The size of what is left of a shape's elements beside some sizes: a number or a name if it can be told."""
    left = Counter(d for d in total if isinstance(d, str))
    taken = Counter(d for d in part if isinstance(d, str))
    number, by = prod(d for d in total if isinstance(d, int)), prod(d for d in part if isinstance(d, int))
    if taken - left or not by or number % by:
        return fresh
    rest = list((left - taken).elements())
    return number // by if not rest else rest[0] if len(rest) == 1 and number == by else fresh


def _rule(*types: str) -> Callable[[Rule], Rule]:
    def add(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(types, rule))
        return rule

    return add


def _join(op: Op, *shapes: Shape) -> Shape:
    """What shapes broadcast to."""
    found: Shape = ()
    for shape in shapes:
        pairs = list(zip_longest(found[::-1], shape[::-1], fillvalue=1))
        found = tuple(broadcast(a, b, f"{op.outputs[0]}.-{i}") for i, (a, b) in enumerate(pairs))[::-1]
    return found


@_rule("UnaryOp", "ReLU", "ReLU6", "ELU", "Selu", "Cast", "Sigmoid", "TanH", "Identity", "LayerNorm", "Softmax", "Scale",
       "PReLU", "GroupNorm", "InstanceNorm", "BatchNorm", "Dropout", "CumSum")
def _same(s: Shapes, op: Op) -> Sequence[Shape | None]:
    return [s.shapes.get(op.inputs[0])] * len(op.outputs)


@_rule("BinaryOp", "Select")
def _broadcast(s: Shapes, op: Op) -> Sequence[Shape | None]:
    found = [s.shapes.get(n) for n in op.inputs]
    return [] if None in found else [_join(op, *(f for f in found if f is not None))]


@_rule("MatMul", "BatchMatMul")
def _product(s: Shapes, op: Op) -> Sequence[Shape | None]:
    a, b = (s.shapes.get(n) for n in op.inputs[:2])
    if a is None or b is None or min(len(a), len(b)) < 2:
        return []
    rows, columns = ("transposeA", "transposeB") if op.type == "MatMul" else ("adjX", "adjY")
    return [(*_join(op, a[:-2], b[:-2]), a[-1] if op[rows] else a[-2], b[-2] if op[columns] else b[-1])]


@_rule("Permute")
def _permute(s: Shapes, op: Op) -> Sequence[Shape | None]:
    x = s.shapes.get(op.inputs[0])
    order = op["dims"] if len(op["dims"]) else range(len(x or ()))[::-1]
    return [] if x is None or len(order) != len(x) else [tuple(x[d] for d in order)]


@_rule("Reshape")
def _reshape(s: Shapes, op: Op) -> Sequence[Shape | None]:
    x = s.shapes.get(op.inputs[0])
    wanted = list(op["dims"]) if len(op.inputs) < 2 else s.items(op.inputs[1])
    if wanted is None:
        length = s.shapes.get(op.inputs[1])
        return [tuple(f"{op.outputs[0]}.{i}" for i in range(length[0]))] if length and isinstance(length[0], int) else []
    made: list[Dim] = []
    for i, d in enumerate(wanted):
        copied = d == 0 and op["dimType"] != "NHWC"
        made.append(d if not copied else f"{op.outputs[0]}.{i}" if x is None else x[i])
    if made.count(-1) == 1:
        at = made.index(-1)
        rest = tuple(d for d in made if d != -1)
        made[at] = quotient(x, rest, f"{op.outputs[0]}.{at}") if x is not None else f"{op.outputs[0]}.{at}"
    return [tuple(made)]


@_rule("Flatten")
def _flatten(s: Shapes, op: Op) -> Sequence[Shape | None]:
    x = s.shapes.get(op.inputs[0])
    if x is None or op["endAxis"]:
        return []
    return [tuple(quotient(part, (), f"{op.outputs[0]}.{i}") for i, part in enumerate((x[:op["axis"]], x[op["axis"]:])))]


@_rule("Squeeze")
def _squeeze(s: Shapes, op: Op) -> Sequence[Shape | None]:
    x = s.shapes.get(op.inputs[0])
    axes = op["squeezeDims"] if len(op.inputs) < 2 else s.items(op.inputs[1])
    if x is None or not axes:
        return []
    gone = {int(a) % len(x) for a in axes}
    return [tuple(d for i, d in enumerate(x) if i not in gone)]


@_rule("Unsqueeze")
def _unsqueeze(s: Shapes, op: Op) -> Sequence[Shape | None]:
    x = s.shapes.get(op.inputs[0])
    axes = op["squeezeDims"] if len(op.inputs) < 2 else s.items(op.inputs[1])
    if x is None or axes is None:
        return []
    rank = len(x) + len(axes)
    new, rest = {int(a) % rank for a in axes}, iter(x)
    return [tuple(1 if i in new else next(rest) for i in range(rank))]


@_rule("Concat")
def _concat(s: Shapes, op: Op) -> Sequence[Shape | None]:
    parts = [s.shapes.get(n) for n in op.inputs]
    whole = [p for p in parts if p is not None]
    if len(whole) != len(parts) or not whole or len({len(p) for p in whole}) != 1:
        return []
    axis = op["axis"] % len(whole[0])
    numbers = [p[axis] for p in whole if isinstance(p[axis], int)]
    made: list[Dim] = [next((p[i] for p in whole if isinstance(p[i], int)), whole[0][i]) for i in range(len(whole[0]))]
    made[axis] = sum(int(n) for n in numbers) if len(numbers) == len(whole) else f"{op.outputs[0]}.{axis}"
    return [tuple(made)]


@_rule("Pack")
def _pack(s: Shapes, op: Op) -> Sequence[Shape | None]:
    x = s.shapes.get(op.inputs[0])
    axis = None if x is None else op["axis"] % (len(x) + 1)
    return [] if x is None else [(*x[:axis], len(op.inputs), *x[axis:])]


def _along(s: Shapes, op: Op, x: Shape, axis: int) -> list[Dim]:
    """Lengths of what an op cuts out of one axis."""
    length, arrays = x[axis], [s.array(n) if n else None for n in op.inputs[1:]]
    if isinstance(length, str) or any(n and a is None for n, a in zip(op.inputs[1:], arrays)):
        return [f"{name}.{axis}" for name in op.outputs]
    line = Spec(tuple(length if i == axis else 1 for i in range(len(x))), np.dtype(np.float32))
    made = definition(op).infer(op, [line, *(None if a is None else Spec.of(a) for a in arrays)])
    return [m.shape[axis] for m in made]


@_rule("Slice")
def _slice(s: Shapes, op: Op) -> Sequence[Shape | None]:
    x = s.shapes.get(op.inputs[0])
    if x is None:
        return []
    axis = op["axis"] % len(x)
    return [(*x[:axis], d, *x[axis + 1:]) for d in _along(s, op, x, axis)]


@_rule("StridedSlice")
def _strided_slice(s: Shapes, op: Op) -> Sequence[Shape | None]:
    """ONNX's form: axes that are not named stay."""
    x, axes = s.shapes.get(op.inputs[0]), s.items(op.inputs[3]) if len(op.inputs) > 3 else None
    if x is None or axes is None or op["fromType"] != 1:
        return []
    made = list(x)
    for a in axes:
        made[int(a)] = f"{op.outputs[0]}.{int(a) % len(x)}"
    if len(axes) == 1:
        made[int(axes[0])] = _along(s, op, x, int(axes[0]) % len(x))[0]
    return [tuple(made)]


@_rule("GatherV2", "Gather")
def _gather(s: Shapes, op: Op) -> Sequence[Shape | None]:
    x, indices = (s.shapes.get(n) for n in op.inputs[:2])
    given = s.items(op.inputs[2]) if len(op.inputs) > 2 else [op["axis"] if op.type == "Gather" else 0]
    if x is None or indices is None or not given or not x:
        return []
    axis = int(given[0]) % len(x)
    return [(*x[:axis], *indices, *x[axis + 1:])]


@_rule("Reduction")
def _reduction(s: Shapes, op: Op) -> Sequence[Shape | None]:
    x = s.shapes.get(op.inputs[0])
    axes = s.items(op.inputs[1]) if len(op.inputs) > 1 else list(op["dim"])
    if x is None or axes is None:
        return []
    gone = {int(a) % len(x) for a in axes} if len(axes) else set(range(len(x)))
    return [tuple(1 if i in gone else d for i, d in enumerate(x) if op["keepDims"] or i not in gone)]


@_rule("Convolution", "ConvolutionDepthwise", "Deconvolution", "DeconvolutionDepthwise", "Pooling", "Interp")
def _image(s: Shapes, op: Op) -> Sequence[Shape | None]:
    """The batch stays; so do the channels, unless a convolution says how many it makes."""
    x = s.shapes.get(op.inputs[0])
    if x is None or len(x) != 4:
        return []
    channels = x[1] if op.type in ("Pooling", "Interp") else op["outputCount"] or f"{op.outputs[0]}.1"
    return [(x[0], channels, f"{op.outputs[0]}.2", f"{op.outputs[0]}.3")]


@_rule("Padding")
def _padding(s: Shapes, op: Op) -> Sequence[Shape | None]:
    x, pads = s.shapes.get(op.inputs[0]), s.items(op.inputs[1])
    if x is None or pads is None or len(pads) != 2 * len(x):
        return []
    made: list[Dim] = []
    for i, (d, before, after) in enumerate(zip(x, pads[::2], pads[1::2])):
        fixed = isinstance(d, int) and isinstance(before, int) and isinstance(after, int)
        made.append(d if before == after == 0 else int(d) + int(before) + int(after) if fixed else f"{op.outputs[0]}.{i}")
    return [tuple(made)]


@_rule("BroadcastTo")
def _broadcast_to(s: Shapes, op: Op) -> Sequence[Shape | None]:
    x, wanted = s.shapes.get(op.inputs[0]), s.items(op.inputs[1])
    return [] if x is None or wanted is None else [_join(op, x, tuple(wanted))]


@_rule("Fill")
def _fill(s: Shapes, op: Op) -> Sequence[Shape | None]:
    wanted = s.items(op.inputs[0])
    return [] if wanted is None else [tuple(wanted)]


@_rule("Range")
def _range(s: Shapes, op: Op) -> Sequence[Shape | None]:
    parts = [s.items(n) for n in op.inputs]
    count = parts[1][0] if parts[1] and parts[0] == [0] and parts[2] == [1] else None
    size = isinstance(count, str) and "(" not in count  # not a difference, which may be negative
    return [(count if size and count is not None else f"{op.outputs[0]}.0",)]
