"""Merging of Rasters never changes results, and removes what it should."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mnn_core.ir import Op, Region, Spec
from mnn_core.ops import definition
from mnn_core.ops._compose import join
from mnn_core.ops._regions import View, raster_op
from mnn_core.plan.raster import is_identity, merge

F32 = np.dtype(np.float32)


class Chain:
    """Raster ops built one after another, with the value that each tensor has by NumPy."""

    def __init__(self, *shapes: tuple[int, ...]) -> None:
        self.ops: list[Op] = []
        self.values: dict[str, np.ndarray] = {}
        count = 0
        for shape in shapes:
            size = int(np.prod(shape))
            self.values[f"x{len(self.values)}"] = np.arange(count, count + size, dtype=F32).reshape(shape)
            count += size
        self.inputs = dict(self.values)

    def add(self, copies: list[tuple[str, View, View]], value: np.ndarray, fill: float | None = None) -> str:
        name = f"t{len(self.ops)}"
        made = Op("Movement", [copies[0][0] if copies else "x0"], [name], name=name)
        self.ops.append(raster_op(made, copies, value.shape, fill))
        self.values[name] = np.ascontiguousarray(value)
        return name

    def permute(self, x: str, order: tuple[int, ...]) -> str:
        value = self.values[x].transpose(order)
        return self.add([(x, View.of(self.values[x].shape).permute(order), View.of(value.shape))], value)

    def reshape(self, x: str, shape: tuple[int, ...]) -> str:
        value = self.values[x].reshape(shape)
        return self.add([(x, View.of(value.shape), View.of(value.shape))], value)

    def cut(self, x: str, axis: int, start: int, count: int, step: int = 1) -> str:
        value = np.take(self.values[x], [start + i * step for i in range(count)], axis)
        return self.add([(x, View.of(self.values[x].shape).cut(axis, start, count, step), View.of(value.shape))], value)

    def concat(self, names: list[str], axis: int) -> str:
        value = np.concatenate([self.values[n] for n in names], axis)
        copies, at = [], 0
        for n in names:
            shape = self.values[n].shape
            copies.append((n, View.of(shape), View.of(value.shape).cut(axis, at, shape[axis])))
            at += shape[axis]
        return self.add(copies, value)

    def tile(self, x: str, times: int) -> str:
        value = np.broadcast_to(self.values[x], (times, *self.values[x].shape))
        return self.add([(x, View.of(self.values[x].shape).expand(value.shape), View.of(value.shape))], value)

    def pad(self, x: str, axis: int, before: int) -> str:
        shape = self.values[x].shape
        value = np.pad(self.values[x], [(before if a == axis else 0, 1 if a == axis else 0) for a in range(len(shape))],
                       constant_values=7)
        return self.add([(x, View.of(shape), View.of(value.shape).cut(axis, before, shape[axis]))], value, fill=7)

    def merged(self, *keep: str) -> list[Op]:
        """The merged ops, after checking that they make `keep` with the right values."""
        specs = {n: Spec(v.shape, v.dtype) for n, v in self.values.items()}
        ops = merge(self.ops, specs, set(keep))
        have = dict(self.inputs)
        for op in ops:
            rule = definition(op)
            ins = [Spec(have[n].shape, have[n].dtype) for n in op.inputs]
            assert list(rule.infer(op, ins)) == [specs[op.outputs[0]]]
            have[op.outputs[0]] = rule.compute(op, *(have[n] for n in op.inputs))
        for name in keep:
            np.testing.assert_array_equal(have[name], self.values[name])
        return ops

    def identities(self, ops: list[Op]) -> list[bool]:
        return [is_identity(op, {n: Spec(v.shape, v.dtype) for n, v in self.values.items()}) for op in ops]


def test_transpose_and_back_vanishes() -> None:
    c = Chain((2, 3, 4, 5))
    y = c.permute(c.permute("x0", (0, 2, 3, 1)), (0, 3, 1, 2))
    ops = c.merged(y)
    assert [op.inputs for op in ops] == [["x0"]]
    assert c.identities(ops) == [True]


def test_readers_of_a_vanished_transpose_read_its_source() -> None:
    c = Chain((2, 3, 4))
    y = c.permute(c.permute("x0", (2, 0, 1)), (1, 2, 0))
    specs = {n: Spec(v.shape, v.dtype) for n, v in c.values.items()} | {"z": Spec((2, 3, 4), F32)}
    assert merge([*c.ops, Op("UnaryOp", [y], ["z"])], specs, {"z"}) == [Op("UnaryOp", ["x0"], ["z"])]


def test_split_and_concat_vanish() -> None:
    c = Chain((2, 9, 4))
    parts = [c.cut("x0", 1, 0, 2), c.cut("x0", 1, 2, 1), c.cut("x0", 1, 3, 6)]
    ops = c.merged(c.concat(parts, 1))
    assert c.identities(ops) == [True]


def test_reshape_never_copies() -> None:
    c = Chain((2, 3, 4))
    a = c.reshape("x0", (6, 4))
    b = c.permute(a, (1, 0))
    ops = c.merged(c.reshape(b, (2, 2, 6)), a)
    assert c.identities(ops) == [True, False]
    assert ops[1].inputs == ["x0"]
    assert ops[1]["regions"] == (Region(0, (4, 6), 0, (1, 4), 0, (6, 1)),)


def test_transposes_across_a_reshape_compose() -> None:
    """Shuffle of channels: reshape, transpose, reshape, slice."""
    c = Chain((1, 6, 2, 2))
    y = c.reshape(c.permute(c.reshape("x0", (1, 2, 3, 4)), (0, 2, 1, 3)), (1, 6, 2, 2))
    ops = c.merged(c.cut(y, 1, 1, 4))
    assert len(ops) == 1
    assert ops[0].inputs == ["x0"]


def test_nested_concats_become_one() -> None:
    c = Chain((2, 3), (2, 5), (2, 1))
    ops = c.merged(c.permute(c.concat([c.concat(["x0", "x1"], 1), "x2"], 1), (1, 0)))
    assert [op.inputs for op in ops] == [["x0", "x1", "x2"]]
    assert len(ops[0]["regions"]) == 3


def test_a_transpose_of_interleaved_rows_reads_the_rows() -> None:
    c = Chain(*[(3, 1, 4)] * 5)
    ops = c.merged(c.permute(c.concat([f"x{i}" for i in range(5)], 1), (2, 1, 0)))
    assert [len(op.inputs) for op in ops] == [5]


def test_kept_tensors_stay() -> None:
    c = Chain((3, 4))
    a = c.permute("x0", (1, 0))
    ops = c.merged(a, c.cut(a, 0, 1, 2))
    assert [op.inputs for op in ops] == [["x0"], ["x0"]]


def test_equal_copies_are_made_once() -> None:
    c = Chain((3, 4))
    a, b = c.permute("x0", (1, 0)), c.permute("x0", (1, 0))
    specs = {n: Spec(v.shape, v.dtype) for n, v in c.values.items()} | {"z": Spec((4, 3), F32)}
    ops = merge([*c.ops, Op("BinaryOp", [a, b], ["z"])], specs, {"z"})
    assert [(op.type, op.inputs) for op in ops] == [("Raster", ["x0"]), ("BinaryOp", [a, a])]


def test_padding_passes_through_a_reshape_only() -> None:
    c = Chain((3, 4))
    p = c.pad("x0", 0, 1)
    assert len(c.merged(c.reshape(p, (4, 5)))) == 1
    c = Chain((3, 4))
    assert len(c.merged(c.permute(c.pad("x0", 0, 1), (1, 0)))) == 2


def test_rows_in_steps_join() -> None:
    rows = [Region(0, (4,), 8 * i, (1,), 4 * i, (1,)) for i in (2, 0, 1)]
    assert join(rows) == [Region(0, (3, 4), 0, (8, 1), 0, (4, 1))]


@st.composite
def chains(draw: st.DrawFn) -> tuple[Chain, list[str]]:
    """Up to eight random movements; each reads earlier tensors."""
    dims = st.integers(1, 5)
    shape = tuple(draw(st.lists(dims, min_size=1, max_size=4)))
    c = Chain(shape, shape)
    for _ in range(draw(st.integers(1, 8))):
        names = list(c.values)
        x = draw(st.sampled_from(names))
        shape = c.values[x].shape
        axis = draw(st.integers(0, len(shape) - 1))
        kind = draw(st.sampled_from(["permute", "reshape", "cut", "concat", "tile", "pad"]))
        if kind == "permute":
            c.permute(x, tuple(draw(st.permutations(range(len(shape))))))
        elif kind == "reshape":
            left, sizes = int(np.prod(shape)), []
            for _ in range(draw(st.integers(0, 3))):
                sizes.append(draw(st.sampled_from([d for d in range(1, left + 1) if left % d == 0])))
                left //= sizes[-1]
            c.reshape(x, (*sizes, left))
        elif kind == "cut":
            step = draw(st.sampled_from([1, 1, 1, 2, -1, -2]))
            start = draw(st.integers(0, shape[axis] - 1))
            room = (shape[axis] - 1 - start) // step if step > 0 else start // -step
            c.cut(x, axis, start, draw(st.integers(1, room + 1)), step)
        elif kind == "concat":
            fitting = [n for n in names if len(c.values[n].shape) == len(shape)
                       and all(a == b for k, (a, b) in enumerate(zip(c.values[n].shape, shape)) if k != axis)]
            c.concat(draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=3)), axis)
        elif kind == "tile":
            if c.values[x].size < 2000:
                c.tile(x, draw(st.integers(1, 3)))
        elif c.values[x].size < 2000:
            c.pad(x, axis, draw(st.integers(0, 2)))
    made = [op.outputs[0] for op in c.ops] or ["x0"]
    return c, sorted({made[-1], *draw(st.lists(st.sampled_from(made), max_size=2))})


@settings(max_examples=300, deadline=None)
@given(chains())
def test_random_chains_keep_their_values(chain: tuple[Chain, list[str]]) -> None:
    c, keep = chain
    assert len(c.merged(*keep)) <= max(1, len(c.ops))
