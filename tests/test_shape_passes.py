"""Passes that look at shapes: what is known of sizes that are free, and what becomes of reshapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from test_passes import F, binary, op, random, rewritten, unary

from mnn_core import Graph, Op, TensorInfo
from mnn_core.passes._shapes import Shapes
from mnn_core.passes.algebra import algebra
from mnn_core.passes.pipeline import optimize
from mnn_core.passes.shape_folding import shape_folding
from mnn_core.passes.softmax import softmax

I32 = np.int32
X = {"x": random(2, 5, 12)}


def graph(ops: Sequence[Op], shape: Sequence[str | int], outputs: str = "y", **constants: np.ndarray) -> Graph:
    """A graph of one input x, whose sizes are numbers or names."""
    info = TensorInfo("x", np.dtype(F), tuple(d if isinstance(d, int) else None for d in shape),
                      tuple(d if isinstance(d, str) else None for d in shape))
    return Graph(list(ops), [info], [TensorInfo(n, None, None) for n in outputs.split()],
                 {n: np.asarray(v, I32) if np.asarray(v).dtype.kind == "i" else v for n, v in constants.items()})


def viewed(*sizes: str) -> list[Op]:
    """x.view(...) as PyTorch's TorchScript exporter writes it; a name picks a size of x by its constant index."""
    ops = [op("Shape", "x", "s")]
    for i, size in enumerate(sizes):
        if size.startswith("i"):
            ops += [op("GatherV2", f"s {size}", f"g{i}"), op("Unsqueeze", f"g{i}", f"u{i}", squeezeDims=(0,))]
    names = [f"u{i}" if size.startswith("i") else size for i, size in enumerate(sizes)]
    return [*ops, op("Concat", " ".join(names), "w", axis=0), op("Reshape", "x w", "y")]


CONSTANTS = {"i0": np.array(0), "i1": np.array(1), "i2": np.array(2), "n3": np.array([3]), "n4": np.array([4]),
             "all": np.array([-1])}


@pytest.mark.parametrize(("sizes", "dims"), [
    (("i0", "i1", "n3", "n4"), (0, 0, 3, 4)),
    (("i0", "all", "n3", "n4"), (0, -1, 3, 4)),
    (("i0", "i1", "i2"), None),
    (("n3", "n4", "i0", "i1"), "Reshape"),
])
def test_views(sizes: tuple[str, ...], dims: tuple[int, ...] | str | None) -> None:
    g = graph(viewed(*sizes), ("batch", "length", 12), **CONSTANTS)
    types = rewritten(g, shape_folding, X)
    if dims is None:
        assert types == ["Identity"]
    elif dims == "Reshape":  # neither size stands where it stood
        assert (types[-1], len(g.ops[-1].inputs)) == ("Reshape", 2)
    else:
        assert (types, g.ops[0]["dims"]) == (["Reshape"], dims)


def test_a_size_that_is_not_known_is_worked_out() -> None:
    g = graph(viewed("i1", "i2", "i0"), ("batch", "length", "width"), **CONSTANTS)
    assert len(rewritten(g, shape_folding, X)) > 1  # three free sizes
    ops = [op("Shape", "x", "s"), op("GatherV2", "s i0", "g"), binary("MUL", "g k", "m"),
           op("Unsqueeze", "m", "u", squeezeDims=(0,)), op("Concat", "u n3", "w", axis=0), op("Reshape", "x w", "y")]
    g = graph(ops, ("batch", 12), k=np.array(4), **CONSTANTS)
    assert rewritten(g, shape_folding, {"x": random(2, 12)}) == ["Reshape"]
    assert g.ops[0]["dims"] == (-1, 3)


def test_fixed_sizes_are_constants() -> None:
    """Half of the channels, as torch.chunk leaves it; the root of a head's size, as attention does."""
    ops = [op("Shape", "x", "s"), op("GatherV2", "s i2", "c"), binary("REALDIV", "c two", "half"),
           op("Cast", "c", "f", dstT="DT_FLOAT"), unary("SQRT", "f", "r"), binary("REALDIV", "x r", "a"),
           op("Unsqueeze", "half", "e", squeezeDims=(0,)), op("StridedSlice", "a zero e axis", "y", fromType=1)]
    g = graph(ops, ("batch", "length", 12), two=np.array(2), zero=np.array([0]), axis=np.array([-1]), **CONSTANTS)
    assert rewritten(g, shape_folding, X) == ["BinaryOp", "StridedSlice"]
    free = graph(ops, ("batch", "length", "width"), two=np.array(2), zero=np.array([0]), axis=np.array([-1]), **CONSTANTS)
    assert len(rewritten(free, shape_folding, X)) > 2


def test_outputs_stay() -> None:
    g = graph([op("Shape", "x", "y")], (2, 5, 12))
    assert rewritten(g, shape_folding, X) == ["Shape"]


def test_broadcasts_of_nothing() -> None:
    """torch's expand_as writes where(equal(shape, -1), ones, shape)."""
    ops = [op("Shape", "x", "s"), binary("EQUAL", "s all", "e"), op("Select", "e one s", "w"), op("BroadcastTo", "x w", "y")]
    g = graph(ops, ("batch", "length", 12), one=np.array([1]), **CONSTANTS)
    assert rewritten(g, shape_folding, X) == ["Identity"]
    wider = graph([op("BroadcastTo", "x w", "y")], (2, 5, 12), w=np.array([3, 2, 5, 12]))
    assert rewritten(wider, shape_folding, X) == ["BroadcastTo"]


def test_bodies_of_control_flow_are_left_alone() -> None:
    body = graph([op("Shape", "x", "y0"), unary("ABS", "y0", "y")], (2, 5, 12))
    root = graph([unary("ABS", "x", "y")], (2, 5, 12))
    root.subgraphs["body"] = body
    optimize(root)
    assert body.ops[0].type == "Shape"


def test_names_of_sizes() -> None:
    ops = [op("Permute", "x", "p", dims=(1, 0, 2)), op("MatMul", "x k", "m"), binary("ADD", "x row", "a"),
           op("Reshape", "x", "r", dims=(0, 0, 3, -1)), op("Reduction", "x", "s", operation="SUM", dim=(1,), keepDims=False),
           op("Concat", "x x", "c", axis=-1), op("Slice", "x", "h1 h2", axis=2, slicePoints=(5,)),
           op("Reshape", "r", "back", dims=(0, 0, -1)), op("Convolution", "i w b", "v", kernelX=3, kernelY=3, outputCount=4),
           op("Unsqueeze", "x", "i", squeezeDims=(1,))]
    ops.insert(8, ops.pop())
    s = Shapes(graph(ops, ("n", "t", 12), k=random(12, 7), row=random(12), w=random(4, 1, 3, 3), b=random(4))).shapes
    want = {"p": ("=t", "=n", 12), "m": ("=n", "=t", 7), "a": ("=n", "=t", 12), "r": ("=n", "=t", 3, 4), "s": ("=n", 12),
            "c": ("=n", "=t", 24), "h1": ("=n", "=t", 5), "h2": ("=n", "=t", 7), "back": ("=n", "=t", 12)}
    assert {k: s[k] for k in want} == want
    assert (s["v"][:2], len(s["v"])) == (("=n", 4), 4)


@pytest.mark.parametrize(("axis", "found"), [(2, True), (1, False)])
def test_softmax_between_reshapes(axis: int, found: bool) -> None:
    """Softmax of operator sets before 13."""
    ops = [op("Flatten", "x", "f", axis=axis), op("Softmax", "f", "p", axis=1), op("Shape", "x", "s"),
           op("Reshape", "p s", "y")]
    g = graph(ops, ("batch", "length", 12))
    assert (rewritten(g, softmax, X) == ["Softmax"]) is found


def test_neutral_scale() -> None:
    ones, zeros = np.ones(5, F), np.zeros(5, F)
    assert rewritten(graph([op("Scale", "x a b", "y")], (2, 5, 12), a=ones, b=zeros), algebra, X) == ["Identity"]
    assert rewritten(graph([op("Scale", "x a b", "y")], (2, 5, 12), a=ones, b=ones), algebra, X) == ["Scale"]
