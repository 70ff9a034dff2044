"""Kernels of plain arrays on odd sizes: products, reductions, normalisations, copies, choices, casts."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_rows import ISAS, check, library, run_row

from mnn_core.ir import Op, Region, Spec

pytestmark = pytest.mark.parametrize("isa", ISAS)


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _integers(*shape: int, low: int = -9, high: int = 10) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(low, high, shape).astype(np.int32)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (1, 70, 33), (5, 1, 300), (6, 16, 8), (7, 17, 9), (13, 31, 64),
                                           (15, 33, 1), (29, 65, 12), (57, 100, 40), (3, 5, 0), (1, 300, 20), (64, 70, 1024)])
@pytest.mark.parametrize("flip", [(False, False), (True, False), (False, True), (True, True)])
def test_matmul(m, n, k, flip, isa):
    a, b = _random(m, k), _random(k, n)
    attrs = {"transposeA": flip[0], "transposeB": flip[1]}
    operands = [np.ascontiguousarray(x.T) if f else x for x, f in zip((a, b), flip)]
    for constant in ((), (1,)):
        assert "matmul" in check(isa, "MatMul", attrs, operands, constant, 5e-6)
        assert "matmul" in check(isa, "MatMul", attrs, [*operands, _random(n)], constant, 5e-6)


@pytest.mark.parametrize("rows", [2, 6, 14, 29])
def test_rows_of_a_product_do_not_depend_on_each_other(rows, isa):
    a, b = _random(rows, 77), _random(77, 200)
    op, spec = Op("MatMul", ["a", "b"], ["y"], {}, "tested"), np.dtype(np.float32)
    row = next(r for r in library(isa).rows("MatMul", ["f32", "f32"], ["f32"]) if r.isa == isa)
    whole = run_row(row, op, [a, b], {1}, [Spec((rows, 200), spec)])[0]
    for i in range(rows):
        one = run_row(row, op, [a[i:i + 1], b], {1}, [Spec((1, 200), spec)])[0]
        assert one.tobytes() == whole[i:i + 1].tobytes()


@pytest.mark.parametrize(("a", "b"), [((2, 3, 5, 7), (2, 3, 7, 4)), ((2, 3, 5, 7), (3, 7, 4)), ((5, 7), (2, 7, 4)),
                                      ((2, 1, 5, 7), (3, 7, 4)), ((4, 5, 7), (7, 4)), ((0, 5, 7), (7, 4)),
                                      ((7,), (7, 4)), ((3, 5, 7), (7,)), ((7,), (7,)), ((2, 1, 5, 7), (1, 3, 7, 40)),
                                      ((2, 1, 60, 1024), (1, 2, 1024, 64))])
def test_matmul_in_batches(a, b, isa):
    for constant in ((), (1,)):
        ran = check(isa, "BatchMatMul", {}, [_random(*a), _random(*b)], constant, 5e-6)
        assert "batch_matmul" in ran or min(len(a), len(b)) == 1


@pytest.mark.parametrize("name", ["SUM", "MEAN", "MAXIMUM", "MINIMUM", "PROD", "ASUM", "SUMSQ"])
@pytest.mark.parametrize("axes", [(3,), (1,), (0, 2), (2, 3), (1, 3), (0, 1, 2, 3), (-2, -1)])
def test_reduction(name, axes, isa):
    x = _random(3, 5, 7, 19)
    for keep in (False, True):
        assert "reduce_f32" in check(isa, "Reduction", {"operation": name, "dim": axes, "keepDims": keep}, [x], (), 1e-5)
    assert "reduce_i32" in check(isa, "Reduction", {"operation": name, "dim": axes}, [_integers(3, 2, 2, 3, high=3)])
    x[1, 2, 3, 4], x[0, 0, 0, 0] = np.nan, np.inf
    assert "reduce_f32" in check(isa, "Reduction", {"operation": name, "dim": axes}, [x], (), 1e-5)


@pytest.mark.parametrize("name", ["ANY", "ALL"])
def test_reduction_of_truth_values(name, isa):
    x = _integers(4, 9, 3, low=0, high=2)
    assert "reduce_i32" in check(isa, "Reduction", {"operation": name, "dim": (1,)}, [x])


@pytest.mark.parametrize(("shape", "axis"), [((5, 33), -1), ((5, 33), 0), ((2, 7, 3, 5), 1), ((2, 7, 3, 40), 2),
                                             ((1,), 0), ((3, 1000), 1), ((2, 3), 1), ((4, 0), 0)])
def test_softmax(shape, axis, isa):
    x = _random(*shape) * 20
    assert "softmax" in check(isa, "Softmax", {"axis": axis}, [x])
    if x.size > 30:
        x.reshape(-1)[[0, 3]], x.reshape(-1)[20:24] = -np.inf, 3e38
        check(isa, "Softmax", {"axis": axis}, [x])


@pytest.mark.parametrize("width", [1, 7, 16, 33, 768, 1000])
@pytest.mark.parametrize("rms", [False, True])
def test_layer_norm(width, rms, isa):
    attrs = {"axis": (-1,), "epsilon": 1e-5, "useRMSNorm": rms}
    x = _random(3, 4, width) + np.float32(100)
    for inputs in ([x], [x, _random(width), _random(width)], [x, _random(width)]):
        assert "layer_norm" in check(isa, "LayerNorm", attrs, inputs, (1, 2), 2e-5)


def test_raster_kinds(isa):
    """Transposes, gaps, overlapping reads, fills, several sources; elements of every size."""
    regions = (Region(0, (5, 70, 3), 0, (1, 15, 5), 0, (210, 3, 1)), Region(1, (4,), 6, (-2,), 1050, (3,)),
               Region(1, (40, 33), 0, (0, 1), 1070, (40, 1)))
    for dtype in (np.uint8, np.int16, np.float32, np.int32, np.float64):
        x, y = (np.arange(1050) % 120).astype(dtype), np.arange(40).astype(dtype)
        attrs = {"regions": regions, "shape": (3000,), "fill": 3}
        assert check(isa, "Raster", attrs, [x, y]) == ["raster"]


@pytest.mark.parametrize("shape", [(), (1,), (3, 37), (2, 3, 4, 5)])
@pytest.mark.parametrize("other", [(), (1,), (37,), (3, 1), (2, 1, 4, 5), (2, 3, 4, 5), (3, 4, 1)])
@pytest.mark.parametrize("name", ["ADD", "MOD", "FLOORMOD", "FLOORDIV", "DIV", "MAXIMUM", "LESS", "EQUAL", "SquaredDifference"])
def test_broadcasting(name, shape, other, isa):
    try:
        np.broadcast_shapes(shape, other)
    except ValueError:
        return
    for make in (_random, _integers):
        x, y = np.asarray(make(*shape)), np.asarray(make(*other))
        x, y = (np.asarray(np.where(np.abs(v) < 0.1, 2, v).astype(v.dtype)) for v in (x, y))  # something to divide by
        assert check(isa, "BinaryOp", {"opType": name}, [x, y], (), 1e-5)
        assert check(isa, "BinaryOp", {"opType": name}, [y, x], (), 1e-5)


@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "POW", "ATAN2", "LESS", "GREATER_EQUAL",
                                  "EQUAL", "NOTEQUAL"])
def test_binary_edges(name, isa):
    edges = np.array([0, -0.0, 1, -2.5, np.inf, -np.inf, np.nan, 3e38], np.float32)
    x, y = (np.ascontiguousarray(v) for v in np.broadcast_arrays(edges[:, None], edges))
    assert check(isa, "BinaryOp", {"opType": name}, [x, y])
    assert check(isa, "BinaryOp", {"opType": name}, [edges[:, None].copy(), edges])


@pytest.mark.parametrize("name", ["POW", "LEFTSHIFT", "RIGHTSHIFT", "DIV", "MOD", "FLOORMOD", "FLOORDIV", "LOGICALOR",
                                  "BITWISE_XOR", "MAXIMUM", "LESS", "MUL", "SquaredDifference"])
def test_integer_edges(name, isa):
    edges = np.array([0, 1, -1, 2, -2, 7, -7, 31, 32, 33, -2**31, 2**31 - 1], np.int32)
    x, y = (np.ascontiguousarray(v) for v in np.broadcast_arrays(edges[:, None], edges))
    assert check(isa, "BinaryOp", {"opType": name}, [x, y]) == ["binary_i32"]


@pytest.mark.parametrize("name", ["LOGICALOR", "LOGICALXOR"])
def test_logic_of_floats(name, isa):
    x, y = np.array([[0], [2], [np.nan], [-0.0]], np.float32), np.array([0, -1, np.nan, np.inf], np.float32)
    assert check(isa, "BinaryOp", {"opType": name}, [x, y]) == ["compare_f32"]


@pytest.mark.parametrize("shapes", [((3, 5), (3, 5), (3, 5)), ((5,), (3, 1), ()), ((3, 1), (), (3, 5)), ((), (3, 5), (1, 5)),
                                    ((0,), (0,), (0,))])
def test_select(shapes, isa):
    where, *values = shapes
    assert check(isa, "Select", {}, [_integers(*where, low=0, high=2), *(_random(*s) for s in values)]) == ["select_f32"]
    assert check(isa, "Select", {}, [_integers(*where, low=0, high=2), *(_integers(*s) for s in values)]) == ["select_i32"]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(4,), (2, 3), (), (0,)])
def test_gather(axis, shape, isa):
    for x in (_random(7, 8, 9), _integers(7, 8, 9), _integers(7, 8, 9).astype(np.uint8)):
        index = np.asarray(_integers(*shape, low=-7, high=7))
        assert check(isa, "GatherV2", {}, [x, index, np.array(axis, np.int32)], (2,)) == ["gather_v2"]


@pytest.mark.parametrize("target", ["DT_FLOAT", "DT_INT32", "DT_BOOL", "DT_UINT8", "DT_INT8"])
def test_cast(target, isa):
    for x in (np.array([0, -0.4, 0.6, 1.5, 2.5, 100.9, -7.9], np.float32), _integers(33), np.arange(20, dtype=np.uint8),
              np.arange(-9, 9, dtype=np.int8)):
        check(isa, "Cast", {"dstT": target}, [x])


@pytest.mark.parametrize(("shape", "group"), [((2, 6, 3, 5), 3), ((1, 8, 40), 1), ((2, 5, 4, 4), 5), ((3, 4), 2),
                                              ((0, 4, 3), 2)])
@pytest.mark.parametrize("swish", [False, True])
def test_group_norm(shape, group, swish, isa):
    x, attrs = _random(*shape) + np.float32(10), {"group": group, "epsilon": 1e-5, "bSwish": int(swish)}
    for more in ([], [_random(shape[1]), _random(shape[1])], [None, _random(shape[1])]):
        assert check(isa, "GroupNorm", attrs, [x, *more], (), 1e-5) == ["group_norm"]


@pytest.mark.parametrize("rms", [False, True])
def test_layer_norm_of_groups(rms, isa):
    attrs = {"group": 3, "epsilon": 1e-5, "useRMSNorm": rms}
    for more in ([], [_random(6), _random(6)]):
        assert check(isa, "LayerNorm", attrs, [_random(2, 6, 5, 7), *more], (), 1e-5) == ["layer_norm_groups"]


@pytest.mark.parametrize("shape", [(2, 6, 3, 5), (1, 33, 70), (2, 3, 1)])
def test_instance_norm(shape, isa):
    x, more = _random(*shape) * 3 - 5, {"slopeData": _random(shape[1]), "biasData": _random(shape[1])}
    assert check(isa, "InstanceNorm", {"epsilon": 1e-3}, [x], (), 1e-5) == ["instance_norm"]
    assert check(isa, "InstanceNorm", {"epsilon": 1e-3, **more}, [x], (), 1e-5) == ["instance_norm"]
