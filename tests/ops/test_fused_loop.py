"""LoopParam loops against NumPy formulas."""

import numpy as np
import pytest
from graphs import I32, graph, info

import mnn_core as mnn
from mnn_core import Op
from mnn_core.ir import schema


def run(commands, inputs, shape, *, trips, init=()):
    names = list(inputs)
    op = Op("While", names, ["y"], {
        "tensorNumber": len(names) + 1, "inputIndexes": tuple(range(len(names))), "outputIndexes": (len(names),),
        "extraTensorInfos": ({"blob": {"dims": shape, "dataType": "DT_FLOAT"}},), "loopNumber": trips,
        "commands": commands, "initCommand": init}, "loop", "LoopParam")
    g = graph([op], [info(n, None, a.dtype) for n, a in inputs.items()], ["y"])
    return mnn.load(g, "numpy").run(inputs)["y"]


def command(size, views, indexes, steps, *, op=None, by=None, fuse=-1):
    return {"size": size, "view": tuple({"offset": o, "stride": s} for o, s in views), "indexes": indexes, "steps": steps,
            "iterIndexes": by or (-1,) * len(indexes), "op": op, "fuse": fuse}


def test_batched_matrix_product():
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((3, 4, 5), (3, 5, 2)))
    views = [(0, (2, 0, 1)), (0, (5, 1, 0)), (0, (0, 2, 1))]
    product = command((4, 5, 2), views, (2, 0, 1), (8, 20, 10), op={"type": "MatMul"})
    np.testing.assert_allclose(run((product,), {"a": a, "b": b}, (3, 4, 2), trips=3), a @ b, rtol=1e-6)


def test_gather_by_an_index_tensor_and_scatter_with_add():
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    index = np.array([2, 0, 2], I32)
    gather = command((1, 1, 3), [(0, (0, 0, 1)), (0, (0, 0, 1))], (2, 0), (3, 3), by=(-1, 1))
    np.testing.assert_array_equal(run((gather,), {"x": x, "i": index}, (3, 3), trips=3), x[index])
    add = schema.ENUMS["BinaryOpOperation"]["ADD"]
    scatter = command((1, 1, 3), [(0, (0, 0, 1)), (0, (0, 0, 1))], (2, 0), (3, 3), by=(1, -1), fuse=add)
    expected = np.zeros((4, 3), np.float32)
    np.add.at(expected, index, x[:3])
    np.testing.assert_array_equal(run((scatter,), {"x": x, "i": index}, (4, 3), trips=3), expected)


def test_running_sum():
    x = np.arange(1, 7, dtype=np.float32)
    step = command((1, 1, 1), [(1, (0, 0, 0)), (0, (0, 0, 0)), (0, (0, 0, 0))], (1, 1, 0), (1, 1, 1),
                   op={"type": "BinaryOp", "main": {"opType": "ADD"}})
    np.testing.assert_array_equal(run((step,), {"x": x}, (7,), trips=6), [0, 1, 3, 6, 10, 15, 21])


def test_out_of_bounds_is_an_error():
    bad = command((1, 1, 3), [(0, (0, 0, 1)), (0, (0, 0, 1))], (1, 0), (3, 3))
    with pytest.raises(mnn.GraphError, match=r"elements 6\.\.8 of a tensor of 6"):
        run((bad,), {"x": np.zeros(6, np.float32)}, (9,), trips=3)
