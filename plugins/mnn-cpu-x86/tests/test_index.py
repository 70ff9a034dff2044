"""Kernels that choose elements, by index or by order, on odd sizes and with ties and NaN."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_rows import ISAS, check, library, run_row

import mnn_core as mnn
from mnn_core.ir import Op, Spec

pytestmark = pytest.mark.parametrize("isa", ISAS)


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _integers(*shape: int, low: int = -9, high: int = 10) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(low, high, shape).astype(np.int32)


SHAPES = [((33,), 0), ((5, 70), 1), ((5, 70), 0), ((3, 9, 2, 5), 1), ((2, 1, 3), 1), ((0, 4), 1), ((6, 40, 17), -2)]


@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_arg(op_type, shape, axis, isa):
    name = "arg_max" if op_type == "ArgMax" else "arg_min"
    x = _random(*shape)
    assert check(isa, op_type, {"axis": axis}, [x]) == [name + "_f32"]
    assert check(isa, op_type, {"axis": axis}, [_integers(*shape, high=0)]) == [name + "_i32"]
    if x.size:
        x.reshape(-1)[x.size // 3::5] = np.nan
        check(isa, op_type, {"axis": axis}, [x])
        check(isa, op_type, {"axis": axis}, [np.full(shape, -np.inf, np.float32)])


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("largest", [True, False])
def test_top_k(shape, axis, largest, isa):
    for k in {0, 1, shape[axis] // 2, shape[axis]}:
        more = [np.array(k, np.int32), np.array(axis, np.int32)]
        x = _random(*shape)
        assert check(isa, "TopKV2", {"largest": largest}, [x, *more], (1, 2)) == ["top_k_f32"]
        assert check(isa, "TopKV2", {"largest": largest}, [_integers(*shape, low=-2, high=3), *more], (1, 2)) == ["top_k_i32"]
        if x.size:
            x.reshape(-1)[::7], x.reshape(-1)[3::5] = np.nan, np.inf
            check(isa, "TopKV2", {"largest": largest}, [x, *more], (1, 2))


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("reverse", [True, False])
def test_cumulative(shape, axis, exclusive, reverse, isa):
    attrs = {"exclusive": exclusive, "reverse": reverse}
    for x in (_random(*shape), _integers(*shape)):
        assert len(check(isa, "CumSum", attrs, [x, np.array(axis, np.int32)], (1,))) == 1
    assert check(isa, "CumProd", {"axis": axis}, [_random(*shape)]) == ["cum_prod"]


@pytest.mark.parametrize(("shape", "indices", "batch"), [
    ((5, 6, 7), (4, 2), 0), ((5, 6, 7), (3, 2, 3), 0), ((5, 6, 7), (9, 1), 0), ((2, 3, 4, 5), (2, 3, 6, 1), 2),
    ((2, 3, 4, 5), (2, 7, 2), 1), ((4, 5), (0, 2), 0), ((4, 0), (3, 1), 0)])
def test_gather_nd(shape, indices, batch, isa):
    index = _integers(*indices, low=-4, high=4)
    for k in range(indices[-1]):
        index[..., k] %= max(shape[batch + k], 1)
        index[..., k][..., ::2] -= shape[batch + k]
    for x in (_random(*shape), _integers(*shape).astype(np.uint8)):
        assert check(isa, "GatherND", {"axis": batch}, [x, index]) == ["gather_nd"]


@pytest.mark.parametrize(("shape", "indices", "axis"), [((5, 6, 7), (5, 2, 7), 1), ((5, 6), (9, 4), 0), ((8,), (3,), -1),
                                                        ((3, 4), (0, 4), 0)])
def test_elements(shape, indices, axis, isa):
    index = _integers(*indices, low=-shape[axis], high=shape[axis])
    along = np.array(axis, np.int32)
    for x in (_random(*shape), _integers(*shape), _integers(*shape).astype(np.int8)):
        assert check(isa, "GatherElements", {}, [x, index, along], (2,)) == ["gather_elements"]
    for make in (_random, _integers):
        for how in (-1, "ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"):
            ran = check(isa, "ScatterElements", {"opType": how}, [make(*shape), index, make(*indices), along], (3,))
            assert ran == ["scatter_elements_" + ("f32" if make is _random else "i32")]


@pytest.mark.parametrize("how", [-1, None, "ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"])
def test_scatter_nd(how, isa):
    shape, index = (4, 5, 3), _integers(6, 2, low=-4, high=4)
    attrs = {} if how is None else {"opType": how}
    for make in (_random, _integers):
        name = "scatter_nd_" + ("f32" if make is _random else "i32")
        assert check(isa, "ScatterNd", attrs, [index, make(6, 3), np.array(shape, np.int32), make(*shape)], (2,)) == [name]
        if how in (None, "ADD"):
            assert check(isa, "ScatterNd", attrs, [index, make(6, 3), np.array(shape, np.int32), None], (2,)) == [name]


@pytest.mark.parametrize(("op_type", "inputs"), [
    ("GatherV2", [np.zeros((3, 4), np.float32), np.array([0, 3], np.int32)]),
    ("GatherND", [np.zeros((3, 4), np.float32), np.array([[2, 4]], np.int32)]),
    ("GatherElements", [np.zeros((3, 4), np.float32), np.full((3, 4), -4, np.int32)]),
    ("ScatterNd", [np.array([[-5]], np.int32), np.ones((1,), np.float32), np.array([4], np.int32), np.zeros(4, np.float32)]),
    ("ScatterElements", [np.zeros((3, 4), np.float32), np.full((1, 1), 2**31 - 1, np.int32), np.zeros((1, 1), np.float32)]),
])
def test_indices_out_of_range(op_type, inputs, isa):
    op = Op(op_type, [f"x{i}" for i in range(len(inputs))], ["y"], {}, "tested")
    shape = {"GatherV2": (2, 4), "GatherND": (1,), "ScatterNd": (4,)}.get(op_type, (3, 4))
    types = [{"f": "f32", "i": "i32"}[x.dtype.kind] for x in inputs]
    row = next(r for r in library(isa).rows(op_type, types, ["f32"]) if r.isa == isa)
    with pytest.raises(mnn.KernelError, match="tested.*out of range"):
        run_row(row, op, inputs, set(), [Spec(shape, inputs[1 if op_type == "ScatterNd" else 0].dtype)])
