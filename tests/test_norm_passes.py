"""Norms in groups of channels: as PyTorch's exporters spell them, in the real MNN too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import peers
import pytest
from test_passes import F, binary, op, random, rewritten, unary
from test_shape_passes import graph

from mnn_core import Graph, Op, load
from mnn_core.formats import write_mnn
from mnn_core.passes.group_norm import group_norm
from mnn_core.passes.group_norm_affine import group_norm_affine

X = {"x": random(2, 6, 3, 4)}
PER_CHANNEL = {"g": random(6, 1, 1, seed=1), "b": random(1, 6, 1, 1, seed=2)}


def spelled(groups: int, *last: Op, channels: int | str = 6, outputs: str = "y", back: str = "x") -> Graph:
    """LayerNorm between reshapes; its result is "n"."""
    ops = [op("Reshape", "x", "flat", dims=(0, groups, -1)), op("LayerNorm", "flat", "rows", axis=(-1,), epsilon=1e-5),
           op("Shape", back, "s"), op("Reshape", "rows s", "n"), *last]
    return graph(ops, ("batch", channels, "height", "width"), outputs, **PER_CHANNEL)


@pytest.mark.parametrize("groups", [1, 3, 6])
def test_groups(groups: int) -> None:
    g = spelled(groups, unary("ABS", "n", "y"))
    assert rewritten(g, group_norm, X) == ["LayerNorm", "UnaryOp"]
    assert g.ops[0]["group"] == groups


def test_what_is_no_group_norm() -> None:
    free = spelled(3, unary("ABS", "n", "y"), channels="channels")  # perhaps no multiple of 3
    seen = spelled(3, unary("ABS", "n", "y"), outputs="y rows")
    other = spelled(3, unary("ABS", "n", "y"), back="flat")  # another shape comes back
    for g in (free, seen, other):
        assert rewritten(g, group_norm, X).count("Reshape") >= 1
    rows = spelled(3, unary("ABS", "n", "y"))
    rows.ops[1].attrs["axis"] = (1,)
    assert "Reshape" in rewritten(rows, group_norm, X)
    scaled = spelled(3, unary("ABS", "n", "y"))  # factors for each place of a group
    scaled.ops[1].inputs += ["gamma", "beta"]
    scaled.constants.update(gamma=random(24), beta=random(24, seed=1))
    assert "Reshape" in rewritten(scaled, group_norm, X)





@pytest.mark.parametrize("form", ["product and sum", "Scale"])
def test_factors_and_silu(form: str) -> None:
    affine = [binary("MUL", "n g", "m"), binary("ADD", "b m", "a")] if form != "Scale" else [op("Scale", "n gv bv", "a")]
    g = spelled(3, *affine, unary("SILU", "a", "y"))
    g.constants.update(gv=random(6, seed=1), bv=random(6, seed=2))
    group_norm.run(g)
    assert rewritten(g, group_norm_affine, X, rounds=2) == ["GroupNorm"]


def test_factors_of_something_else_stay() -> None:
    columns = spelled(3, binary("MUL", "n k", "m"), binary("ADD", "m b", "y"))
    columns.constants["k"] = random(4, seed=1)
    seen = spelled(3, binary("MUL", "n g", "m"), binary("ADD", "m b", "y"), outputs="y n")
    for g in (columns, seen):
        group_norm.run(g)
        assert rewritten(g, group_norm_affine, X)[0] == "LayerNorm"


@pytest.mark.parametrize("groups", [1, 3, 6])
def test_in_the_real_mnn(groups: int, tmp_path: Path) -> None:
    """Between convolutions, whose layout there is another one."""
    convolution = {"kernelX": 1, "kernelY": 1, "outputCount": 6, "inputCount": 6}
    norm = spelled(groups, binary("MUL", "n g", "m"), binary("ADD", "m b", "a")).ops
    ops = [op("Convolution", "i w z", "x", **convolution), *norm,
           op("Convolution", "a w z", "y", **convolution)]
    g = graph(ops, ("batch", 6, "height", "width"), w=random(6, 6, 1, 1, seed=4), z=np.zeros(6, F), **PER_CHANNEL)
    g.inputs[0] = replace(g.inputs[0], name="i")
    feed = {"i": X["x"]}
    want = load(g, backend="numpy").run(feed)["y"]
    assert group_norm.run(g)
    write_mnn(g, tmp_path / "m.mnn")
    ((theirs,),) = peers.run(tmp_path / "m.mnn", [feed], ["y"], tmp_path)
    np.testing.assert_allclose(theirs, want, atol=1e-4)
    np.testing.assert_allclose(load(tmp_path / "m.mnn").run(feed)["y"], want, atol=1e-4)
