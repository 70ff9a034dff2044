"""Passes of arithmetic, folded layer norms, PReLU, joined slices and attention: what they make, and what they leave."""

from __future__ import annotations

import numpy as np
import pytest
from test_passes import F, binary, graph, op, random, rewritten, unary

from mnn_core.passes.algebra import algebra
from mnn_core.passes.attention import attention
from mnn_core.passes.layer_norm import layer_norm
from mnn_core.passes.layer_norm_folded import layer_norm_folded
from mnn_core.passes.prelu import prelu
from mnn_core.passes.slice_concat import slice_concat

I32 = np.int32


def test_powers_of_two_are_squares() -> None:
    g = graph([binary("POW", "x two", "y")], {"x": random(3, 4)}, two=F(2))
    assert rewritten(g, algebra, {"x": random(3, 4)}) == ["UnaryOp"]
    assert g.ops[0]["opType"] == "SQUARE"
    other = graph([binary("POW", "x three", "y")], {"x": random(3, 4)}, three=F(3))
    assert rewritten(other, algebra, {"x": random(3, 4)}) == ["BinaryOp"]


@pytest.mark.parametrize("form", ["division", "reciprocal"])
def test_reciprocal_roots(form: str) -> None:
    x = np.abs(random(3, 4)) + 1
    last = binary("REALDIV", "one r", "y") if form == "division" else unary("RECIPROCAL", "r", "y")
    g = graph([unary("SQRT", "x", "r"), last], {"x": x}, one=F(1))
    assert rewritten(g, algebra, {"x": x}) == ["UnaryOp"]
    assert g.ops[-1]["opType"] == "RSQRT"


def test_a_root_that_is_read_elsewhere_stays() -> None:
    x = np.abs(random(3, 4)) + 1
    g = graph([unary("SQRT", "x", "r"), unary("RECIPROCAL", "r", "y"), unary("EXP", "r", "z")], {"x": x}, "y z")
    assert rewritten(g, algebra, {"x": x}) == ["UnaryOp"] * 3


def test_neutral_numbers() -> None:
    x = random(2, 3)
    g = graph([binary("ADD", "x zero", "a"), binary("MUL", "one a", "b"), binary("REALDIV", "b one", "c"),
               binary("SUB", "c zero", "y")], {"x": x}, zero=F(0), one=F(1))
    assert rewritten(g, algebra, {"x": x}) == ["Identity"] * 4
    for kind, inputs in (("SUB", "zero x"), ("REALDIV", "one x")):
        assert rewritten(graph([binary(kind, inputs, "y")], {"x": x}, zero=F(0), one=F(1)), algebra, {"x": x}) == ["BinaryOp"]
    wide = graph([binary("ADD", "x zeros", "y")], {"x": x}, zeros=np.zeros((1, 1, 1), F))
    assert rewritten(wide, algebra, {"x": x}) == ["BinaryOp"]  # the result has one more dimension


def test_constants_in_a_row() -> None:
    x = random(2, 3)
    for kind in ("ADD", "MUL"):
        g = graph([binary(kind, "x a", "t"), binary(kind, "b t", "y")], {"x": x}, a=F(3), b=F(0.5))
        assert rewritten(g, algebra, {"x": x}) == ["BinaryOp"]
    mixed = graph([binary("ADD", "x a", "t"), binary("MUL", "b t", "y")], {"x": x}, a=F(3), b=F(0.5))
    assert rewritten(mixed, algebra, {"x": x}) == ["BinaryOp"] * 2
    whole = np.arange(6, dtype=I32).reshape(2, 3)
    wraps = graph([binary("MUL", "x a", "t"), binary("MUL", "b t", "y")], {"x": whole}, a=I32(3), b=I32(5))
    assert rewritten(wraps, algebra, {"x": whole}) == ["BinaryOp"] * 2


def test_twice_negated() -> None:
    g = graph([unary("NEG", "x", "t"), unary("NEG", "t", "y")], {"x": random(5)})
    assert rewritten(g, algebra, {"x": random(5)}) == ["Identity"]


@pytest.mark.parametrize("difference", ["squared", "subtracted"])
@pytest.mark.parametrize("order", [0, 1])
def test_folded_layer_norm(difference: str, order: int) -> None:
    """As TensorFlow's batch-norm arithmetic spells it."""
    squares = [binary("SquaredDifference", "x m", "q")] if difference == "squared" else \
        [binary("SUB", "x m", "d"), binary("MUL", "d d", "q")]
    last = binary("ADD", "xs shift" if order else "shift xs", "y")
    ops = [op("Reduction", "x", "m", operation="MEAN", dim=(-1,), keepDims=True), *squares,
           op("Reduction", "q", "v", operation="MEAN", dim=(-1,), keepDims=True), binary("ADD", "v eps", "e"),
           unary("RSQRT", "e", "r"), binary("MUL", "r gamma", "s"), binary("MUL", "m s", "ms"),
           binary("SUB", "beta ms", "shift"), binary("MUL", "x s", "xs"), last]
    feeds = {"x": random(2, 3, 8)}
    g = graph(ops, feeds, eps=F(1e-3), gamma=random(8, seed=1), beta=random(8, seed=2))
    assert rewritten(g, layer_norm_folded, feeds) == ["LayerNorm", "BinaryOp", "BinaryOp"]
    assert rewritten(g, layer_norm, feeds, rounds=2) == ["LayerNorm"]


def test_a_folded_norm_with_another_mean_is_none() -> None:
    ops = [op("Reduction", "x", "m", operation="MEAN", dim=(-1,), keepDims=True),
           op("Reduction", "x", "n", operation="MEAN", dim=(1,), keepDims=True), binary("SquaredDifference", "x n", "q"),
           op("Reduction", "q", "v", operation="MEAN", dim=(-1,), keepDims=True), binary("ADD", "v eps", "e"),
           unary("RSQRT", "e", "r"), binary("MUL", "r gamma", "s"), binary("MUL", "m s", "ms"),
           binary("SUB", "beta ms", "shift"), binary("MUL", "x s", "xs"), binary("ADD", "xs shift", "y")]
    feeds = {"x": random(2, 3, 8)}
    g = graph(ops, feeds, eps=F(1e-3), gamma=random(8, seed=1), beta=random(8, seed=2))
    assert "LayerNorm" not in rewritten(g, layer_norm_folded, feeds)


@pytest.mark.parametrize("kind", ["SUB", "ADD"])
def test_prelu(kind: str) -> None:
    feeds = {"x": random(2, 3, 4, 5)}
    for shape, found in (((3, 1, 1), True), ((3, 4, 1), False)):
        ops = [op("ReLU", "x", "p"), unary("NEG", "x", "n"), op("ReLU", "n", "q"), binary("MUL", "slope q", "c"),
               binary(kind, "p c", "y")]
        types = rewritten(graph(ops, feeds, slope=random(*shape, seed=1)), prelu, feeds)
        assert (types == ["PReLU"]) == found


def test_a_difference_of_other_parts_is_no_prelu() -> None:
    ops = [op("ReLU", "x", "p"), unary("NEG", "z", "n"), op("ReLU", "n", "q"), binary("MUL", "slope q", "c"),
           binary("SUB", "p c", "y")]
    feeds = {"x": random(2, 3, 4, 5), "z": random(2, 3, 4, 5, seed=3)}
    assert "PReLU" not in rewritten(graph(ops, feeds, slope=random(3, 1, 1, seed=1)), prelu, feeds)


def _slices(*bounds: tuple[int, int]) -> tuple[list, dict[str, np.ndarray]]:
    constants = {f"{w}{i}": np.array([v], I32) for i, pair in enumerate(bounds) for w, v in zip("se", pair)}
    ops = [op("StridedSlice", f"x s{i} e{i} axis", f"p{i}", fromType=1) for i in range(len(bounds))]
    return [*ops, op("Concat", " ".join(f"p{i}" for i in range(len(bounds))), "y", axis=1)], constants


def test_slices_that_continue_each_other() -> None:
    feeds = {"x": random(2, 7, 3)}
    end = 2**31 - 1
    for bounds, joined in ((((0, 2), (2, 5), (5, end)), True), (((0, 9), (9, end)), True), (((0, 2), (3, end)), False),
                           (((2, end), (0, 2)), False), (((0, 2), (2, 5)), False), (((-3, end), (0, 4)), False)):
        ops, constants = _slices(*bounds)
        types = rewritten(graph(ops, feeds, axis=np.array([1], I32), **constants), slice_concat, feeds)
        assert (types == ["Identity"]) == joined, bounds


def test_parts_of_a_split() -> None:
    feeds = {"x": random(2, 7, 3)}
    split = op("Slice", "x", "a b c", axis=1, slicePoints=(2, 5), sourceType="CAFFE")
    assert rewritten(graph([split, op("Concat", "a b c", "y", axis=1)], feeds), slice_concat, feeds) == ["Identity"]
    for concat in (op("Concat", "a c b", "y", axis=1), op("Concat", "a b", "y", axis=1)):
        assert "Identity" not in rewritten(graph([split, concat], feeds), slice_concat, feeds)



@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("scale", ["scores", "division", "query", "none"])
def test_attention(scale: str, masked: bool) -> None:
    feeds = {"q": random(2, 3, 5, 4), "k": random(2, 3, 4, 6, seed=1), "v": random(2, 3, 6, 4, seed=2),
             "m": random(2, 1, 5, 6, seed=3)}
    ops = [binary("MUL", "q c", "qs"), op("MatMul", "qs k", "t")] if scale == "query" else [op("MatMul", "q k", "t")]
    name = "t"
    if scale in ("scores", "division"):
        ops.append(binary("MUL" if scale == "scores" else "REALDIV", "t c", "s"))
        name = "s"
    if masked:
        ops.append(binary("ADD", f"{name} m", "a"))
        name = "a"
    ops += [op("Softmax", name, "w", axis=-1), op("MatMul", "w v", "y")]
    assert rewritten(graph(ops, feeds, c=F(0.5)), attention, feeds) == ["transformer.Attention"]


def test_weights_that_are_an_output_are_no_attention() -> None:
    feeds = {"q": random(2, 5, 4), "k": random(2, 4, 6, seed=1), "v": random(2, 6, 4, seed=2)}
    ops = [op("MatMul", "q k", "t"), op("Softmax", "t", "w", axis=-1), op("MatMul", "w v", "y")]
    assert rewritten(graph(ops, feeds, "y w"), attention, feeds) == ["MatMul", "Softmax", "MatMul"]
    across = [op("MatMul", "q k", "t"), op("Softmax", "t", "w", axis=1), op("MatMul", "w v", "y")]
    assert rewritten(graph(across, feeds), attention, feeds) == ["MatMul", "Softmax", "MatMul"]


Q, K, V = random(2, 3, 5, 4), random(2, 3, 4, 6, seed=1), random(2, 3, 6, 4, seed=2)
SEEN = np.random.default_rng(3).random((2, 1, 5, 6)) > 0.4
SEEN[0, 0, 2] = False  # a row that sees nothing


def test_attention_with_a_mask_that_chooses() -> None:
    """As GPT-2: where(mask, scores, the lowest number)."""
    for fill, fused in ((np.finfo(F).min, True), (-1e4, False)):
        for order in ("keep t low", "hide low t"):
            feeds = {"q": Q, "k": K, "v": V}
            ops = [op("MatMul", "q k", "p"), binary("REALDIV", "p c", "t"), op("Select", order, "s"),
                   op("Softmax", "s", "w", axis=3), op("MatMul", "w v", "y")]
            g = graph(ops, feeds, c=F(2), low=F(fill), keep=SEEN.astype(I32), hide=(~SEEN).astype(I32))
            types = rewritten(g, attention, feeds)
            assert (types == ["Select", "transformer.Attention"]) is fused


@pytest.mark.parametrize("guard", ["nan", "rows"])
def test_attention_with_guarded_rows(guard: str) -> None:
    """As PyTorch's exporters write scaled_dot_product_attention with a mask of truth values, and its ONNX operator."""
    feeds = {"q": Q, "k": K, "v": V, "m": np.where(SEEN, 0, -np.inf).astype(F)}
    ops = [op("MatMul", "q k", "p"), binary("ADD", "p m", "s"), op("Softmax", "s", "w", axis=-1)]
    ops += [binary("NOTEQUAL", "w w", "n")] if guard == "nan" else \
        [op("Reduction", "m", "r", operation="MAXIMUM", dim=(-1,), keepDims=True), binary("EQUAL", "r low", "n")]
    ops += [op("Select", "n zero w", "g"), op("MatMul", "g v", "y")]
    g = graph(ops, feeds, zero=F(0), low=F(-np.inf))
    types = rewritten(g, attention, feeds)
    around = {"nan": [[], []], "rows": [["Reduction", "BinaryOp"], ["Select"]]}[guard]
    assert types == [*around[0], "transformer.Attention", *around[1]]
    ones = graph([*ops[:-2], op("Select", "n one w", "g"), op("MatMul", "g v", "y")], feeds, one=F(1), low=F(-np.inf))
    assert "transformer.Attention" not in rewritten(ones, attention, feeds)
    seen = graph([*ops[:-1], op("MatMul", "g v", "y")], feeds, "y w", zero=F(0), low=F(-np.inf))
    assert "transformer.Attention" not in rewritten(seen, attention, feeds)
