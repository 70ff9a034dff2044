"""Operators against onnxruntime, one model each."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_cases import check, model, node, ours, random

F = np.float32
UNARY = ["Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Neg", "Reciprocal", "Round", "Sigmoid", "Sign", "Sin", "Tanh", "Relu",
         "Softplus", "Softsign", "HardSigmoid", "HardSwish", "LeakyRelu", "Elu", "Selu", "Celu", "ThresholdedRelu", "Mish",
         "Shrink", "Identity"]


@pytest.mark.parametrize("op_type", UNARY)
def test_unary(op_type: str) -> None:
    check(node(op_type, "x"), {"x": np.concatenate([random(3, 4) * 3, F([[0.5, 1.5, 2.5, -0.5]])])}, opset=22)


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min"])
def test_binary_broadcast(op_type: str) -> None:
    check(node(op_type, "a b"), {"a": np.abs(random(2, 3, 4)) + 0.5, "b": random(3, 1, seed=1)})


@pytest.mark.parametrize("op_type", ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
def test_comparison_gives_bool(op_type: str) -> None:
    check(node(op_type, "a b"), {"a": np.array([1, 2, 3], np.int64), "b": np.array([2, 2, 2], np.int64)})


@pytest.mark.parametrize("op_type", ["And", "Or", "Xor"])
def test_logic(op_type: str) -> None:
    check(node(op_type, "a b"), {"a": np.array([True, True, False, False]), "b": np.array([True, False, True, False])})


def test_not_of_a_cast_is_a_truth_value() -> None:
    nodes = [node("Cast", "x", "b", to=9), node("Not", "b")]
    assert check(nodes, {"x": F([2, 0, -0.5, np.nan])})[0].tolist() == [False, True, False, False]


def test_integer_division_and_remainders() -> None:
    x, y = np.array([-7, 7, -7], np.int32), np.array([2, -2, -2], np.int32)
    assert check(node("Div", "a b"), {"a": x, "b": y})[0].tolist() == [-3, -3, 3]
    x, y = np.array([-7, 7, -7], np.int64), np.array([3, -3, -3], np.int64)
    assert check(node("Mod", "a b"), {"a": x, "b": y})[0].tolist() == [2, -2, -1]
    assert check(node("Mod", "a b", fmod=1), {"a": x, "b": y})[0].tolist() == [-1, 1, -1]
    assert check(node("Mul", "a b"), {"a": np.uint8([22]), "b": np.uint8([21])})[0].tolist() == [206]


def test_quantize_rounds_to_even_and_saturates() -> None:
    x = F([0.5, 1.5, 2.5, -0.5, 300, -300])
    got = check(node("QuantizeLinear", "x s z"), {"x": x}, constants={"s": F(1), "z": np.int8(0)})
    assert got[0].tolist() == [0, 2, 2, 0, 127, -128]


@pytest.mark.parametrize(("low", "high"), [(0, 6), (-1, None), (None, 0.5), (0, None)])
def test_clip(low: float | None, high: float | None) -> None:
    constants = {k: F(v) for k, v in (("low", low), ("high", high)) if v is not None}
    names = " ".join(["x", "low" if low is not None else "_", "high" if high is not None else "_"])
    check(node("Clip", names), {"x": random(4, 5) * 4}, constants=constants)
    check(node("Clip", "x", **{k: float(v) for k, v in (("min", low), ("max", high)) if v is not None}),
          {"x": random(4, 5) * 4}, opset=10)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize(("opset", "axis"), [(11, None), (11, 0), (11, 2), (12, -1), (12, -2), (13, None), (13, 1)])
def test_softmax_flattens_before_opset_13(op_type: str, opset: int, axis: int | None) -> None:
    check(node(op_type, "x", **({} if axis is None else {"axis": axis})), {"x": random(2, 3, 4)}, opset=opset)


def test_softmax_values() -> None:
    x = F([[[0, 1], [2, 3]]])
    np.testing.assert_allclose(check(node("Softmax", "x"), {"x": x}, opset=11)[0].ravel(),
                               [0.032059, 0.087144, 0.236883, 0.643914], atol=1e-6)


def test_pad_negative_and_axes() -> None:
    x = F([[[1, 2, 3, 4]]])
    got = check(node("Pad", "x p"), {"x": x}, constants={"p": np.array([0, 0, -1, 0, 0, 1])})
    assert got[0].tolist() == [[[2, 3, 4, 0]]]
    got = check(node("Pad", "x p v a"), {"x": np.ones((1, 2, 2, 2), F)}, opset=18,
                constants={"p": np.array([1, 1]), "v": F(0), "a": np.array([-1])})
    assert got[0][0, 0, 0].tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(("mode", "opset", "pads", "want"), [("wrap", 19, [0, 1, 0, 2], [3, 1, 2, 3, 1, 2]),
                                                             ("reflect", 18, [0, 2, 0, 1], [3, 2, 1, 2, 3, 2]),
                                                             ("edge", 13, [0, 1, 0, 1], [1, 1, 2, 3, 3])])
def test_pad_modes(mode: str, opset: int, pads: list[int], want: list[float]) -> None:
    got = check(node("Pad", "x p", mode=mode), {"x": F([[1, 2, 3]])}, opset=opset, constants={"p": np.array(pads)})
    assert got[0].tolist() == [want]


def test_pad_amount_from_an_input() -> None:
    check(node("Pad", "x p"), {"x": random(2, 3), "p": np.array([0, 1, 2, 0])})
    check(node("Pad", "x p _ a"), {"x": random(2, 3, 4), "p": np.array([2, 1]), "a": np.array([-2])}, opset=18)


@pytest.mark.parametrize(("start", "end", "step", "want"), [
    (9, 0, -1, [9, 8, 7, 6, 5, 4, 3, 2, 1]), (9, 0, -3, [9, 6, 3]), (7, 0, -1, [7, 6, 5, 4, 3, 2, 1]), (0, 5, -1, []),
    (2, 2**63 - 1, 3, [2, 5, 8]), (-3, 2**63 - 1, 1, [7, 8, 9]), (-1, -2**63, -1, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
])
def test_slice(start: int, end: int, step: int, want: list[float]) -> None:
    constants = {"s": np.array([start]), "e": np.array([end]), "a": np.array([0]), "t": np.array([step])}
    got = check(node("Slice", "x s e a t"), {"x": np.arange(10, dtype=F)}, constants=constants)
    assert got[0].tolist() == want


def test_slice_of_an_empty_axis_and_old_form() -> None:
    constants = {"s": np.array([-1]), "e": np.array([-2**63]), "a": np.array([0]), "t": np.array([-1])}
    check(node("Slice", "x s e a t"), {"x": np.zeros((0, 3), F)}, constants=constants)
    check(node("Slice", "x", starts=[2, -3], ends=[2**31 - 1, -1], axes=[0, 1]), {"x": random(4, 5)}, opset=9)


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_split(opset: int) -> None:
    x = {"x": random(7, 4)}
    if opset < 13:
        check(node("Split", "x", "a b", split=[2, 5]), x, ("a", "b"), opset)
    else:
        check(node("Split", "x s", "a b"), x, ("a", "b"), opset, {"s": np.array([2, 5])})
    if opset >= 18:
        check(node("Split", "x", "a b c", num_outputs=3), x, ("a", "b", "c"), opset)
    check(node("Split", "x", "a b", axis=1), x, ("a", "b"), 11)


@pytest.mark.parametrize("opset", [11, 13])
def test_squeeze_and_unsqueeze(opset: int) -> None:
    x = random(1, 3, 1)
    for op_type, axes in (("Squeeze", [0, -1]), ("Unsqueeze", [0, 4]), ("Unsqueeze", [-1, 1])):
        if opset < 13:
            check(node(op_type, "x", axes=axes), {"x": x}, opset=opset)
        else:
            check(node(op_type, "x a"), {"x": x}, opset=opset, constants={"a": np.array(axes)})
    assert check(node("Squeeze", "x"), {"x": np.ones((1, 1, 1), F)}, opset=opset)[0].shape == ()


@pytest.mark.parametrize("op_type", ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"])
@pytest.mark.parametrize("keep", [0, 1])
def test_reductions(op_type: str, keep: int) -> None:
    x = {"x": np.abs(random(2, 3, 4)) + 0.1}
    name = f"Reduce{op_type}"
    check(node(name, "x", axes=[0, -1], keepdims=keep), x, opset=11)
    check(node(name, "x", keepdims=keep), x, opset=11)
    check(node(name, "x a", keepdims=keep), x, opset=18, constants={"a": np.array([1])})
    check(node(name, "x", keepdims=keep, noop_with_empty_axes=1), x, opset=18)


def test_scatter_and_gather() -> None:
    got = check(node("ScatterND", "x i u"), {"x": np.zeros((3, 4), F), "u": F([5, 7])},
                constants={"i": np.array([[0, 1], [2, -1]])})
    assert got[0][0, 1] == 5
    assert got[0][2, 3] == 7
    eight = np.arange(8, dtype=F).reshape(2, 2, 2)
    got = check(node("ScatterND", "x i u", reduction="max"), {"x": eight, "u": F([[[100, 101]]])}, opset=18,
                constants={"i": np.array([[[0, 0]]])})
    assert got[0][0, 0].tolist() == [100, 101]
    got = check(node("ScatterND", "x i u", reduction="add"), {"x": np.zeros(4, F), "u": F([1, 2, 4])}, opset=16,
                constants={"i": np.array([[1], [1], [-1]])})
    assert got[0].tolist() == [0, 3, 0, 4]
    got = check(node("ScatterElements", "x i u", axis=1, reduction="min"), {"x": F([[1, 2, 3, 4]]), "u": F([[5, 0, -2]])},
                opset=18, constants={"i": np.array([[1, 1, -1]])})
    assert got[0].tolist() == [[1, 0, 3, -2]]
    got = check(node("GatherND", "x i", batch_dims=1), {"x": eight}, constants={"i": np.array([[1], [0]])})
    assert got[0].tolist() == [[2, 3], [4, 5]]
    check(node("GatherElements", "x i", axis=1), {"x": random(2, 3)}, constants={"i": np.array([[0, -1], [2, 1]])})


def test_zero_size_and_rank_0() -> None:
    check(node("MatMul", "a b"), {"a": np.zeros((1, 0, 4), F), "b": random(4, 3)})
    assert not check(node("MatMul", "a b"), {"a": np.zeros((2, 0), F), "b": np.zeros((0, 3), F)})[0].any()
    assert check(node("Add", "a b"), {"a": F(1), "b": F(2)})[0].shape == ()
    assert check(node("Gather", "x i", axis=1), {"x": random(2, 3)}, constants={"i": np.array(-1)})[0].shape == (2,)
    check(node("Reshape", "x s", allowzero=1), {"x": np.zeros((0, 3), F)}, constants={"s": np.array([3, 0])})


@pytest.mark.parametrize("equation", ["bik,bjk->bji", "ij,jk->ik", "ii_,j->j", "abc,cd->abd", "ij,ij->", "i,j->ij", "bij->bji",
                                      "bhqd,bhkd->bhqk"])
def test_einsum(equation: str) -> None:
    if "_" in equation:
        equation = "ij,j->i"
    sizes = {ch: 2 + i for i, ch in enumerate("abcdhijkq")}
    terms = equation.split("->")[0].split(",")
    feeds = {f"x{i}": random(*(sizes[ch] for ch in term), seed=i) for i, term in enumerate(terms)}
    check(node("Einsum", " ".join(feeds), equation=equation), feeds)


def test_gemm_and_matmul() -> None:
    feeds = {"a": random(4, 3), "b": random(5, 4, seed=1)}
    check(node("Gemm", "a b c", transA=1, transB=1, alpha=0.5, beta=2.0), feeds, constants={"c": random(5)})
    check(node("MatMul", "a b"), {"a": random(2, 1, 3, 4), "b": random(5, 4, 2, seed=1)})
    check(node("MatMul", "a b"), {"a": random(4), "b": random(4, 2, seed=1)})


def test_top_k_arg_one_hot_cumsum() -> None:
    x = {"x": random(3, 5)}
    check(node("TopK", "x k", "v i", axis=1, largest=0), x, ("v", "i"), constants={"k": np.array([2])})
    check(node("ArgMax", "x", axis=1, keepdims=0), x)
    check(node("ArgMin", "x", axis=-1, select_last_index=1), {"x": F([[1, 0, 0], [2, 2, 2]])})
    check(node("OneHot", "i d v", axis=0), {"i": np.array([0, -1, 2, 9])}, constants={"d": np.array(4), "v": F([2, 5])})
    check(node("CumSum", "x a", exclusive=1, reverse=1), x, constants={"a": np.array(1)})


def test_shapes_and_ranges() -> None:
    check(node("Shape", "x", start=1, end=-1), {"x": random(2, 3, 4, 5)})
    check(node("ConstantOfShape", "s"), {"s": np.array([2, 3])})
    check(node("Range", "a b c"), {"a": F(1), "b": F(5), "c": F(1.5)})
    check(node("Expand", "x s"), {"x": random(3, 1), "s": np.array([2, 1, 4])})
    check(node("Tile", "x r"), {"x": random(2, 3)}, constants={"r": np.array([2, 2])})
    check(node("Trilu", "x k", upper=0), {"x": random(2, 4, 5)}, constants={"k": np.array(1)})
    check(node("EyeLike", "x", k=1), {"x": random(3, 4)})
    check(node("NonZero", "x"), {"x": F([[1, 0], [0, 2]])})
    check(node("Compress", "x c", axis=1), {"x": random(2, 3), "c": np.array([True, False, True])})
    check(node("Unique", "x", "u i v n"), {"x": F([2, 1, 1, 3])}, ("u", "i", "v", "n"))
    check(node("Where", "c a b"), {"c": np.array([[True], [False]]), "a": random(3), "b": F(1)})


def test_normalisations() -> None:
    x = {"x": random(2, 4, 3, 5)}
    vectors = {"s": random(4), "b": random(4, seed=1), "m": random(4, seed=2), "v": np.abs(random(4, seed=3)) + 0.1}
    check(node("BatchNormalization", "x s b m v", epsilon=1e-3), x, constants=vectors)
    check(node("BatchNormalization", "x s b m v"), {**x, **vectors})
    check(node("InstanceNormalization", "x s b"), x, constants={k: vectors[k] for k in "sb"})
    check(node("LayerNormalization", "x g b"), x, constants={"g": random(5), "b": random(5, seed=1)})
    check(node("LayerNormalization", "x g", "y m i", axis=2), x, ("y", "m", "i"), constants={"g": random(3, 5)})
    check(node("GroupNormalization", "x s b", num_groups=2), x, opset=21, constants={k: vectors[k] for k in "sb"})
    check(node("GroupNormalization", "x s b", num_groups=2), x, opset=18, constants={"s": random(2), "b": random(2, seed=1)})
    check(node("LRN", "x", size=3), x)
    check(node("LpNormalization", "x", axis=1, p=2), x)


@pytest.mark.parametrize(("threshold", "count", "rows"), [(0.0, 2, 8), (0.99, 2, 0), (0.0, None, 0)])
def test_non_max_suppression(threshold: float, count: int | None, rows: int) -> None:
    boxes = F([[0, 0, .3, .3], [0, 0, .4, .4], [0, 0, .5, .5], [.5, .5, .9, .9], [.5, .5, 1, 1]])
    scores = F([.6, .7, .8, .9, .5])
    feeds = {"boxes": np.stack([boxes, boxes]), "scores": np.broadcast_to(scores, (2, 2, 5)).copy()}
    constants = {"iou": F(0.5), "thr": F(threshold), **({} if count is None else {"n": np.array(count)})}
    got = check(node("NonMaxSuppression", f"boxes scores {'_' if count is None else 'n'} iou thr"), feeds, constants=constants)
    assert got[0].shape == (rows, 3)


@pytest.mark.parametrize(("op_type", "want"), [("ReduceL2", 5), ("ReduceLogSum", 1), ("ReduceLogSumExp", 4)])
def test_reductions_of_integers_are_those_of_floats_cut(op_type: str, want: int) -> None:
    x = np.array([3, 4], np.int32)
    assert ours(model(node(op_type, "x", axes=[0], keepdims=0), {"x": x}, opset=13), {"x": x})[0] == want


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("axes", [[], [1], [-1, 0]])
def test_axes_from_an_input_may_be_none(axes: list[int], keep: int) -> None:
    check(node("ReduceL2", "x a", keepdims=keep, noop_with_empty_axes=1),
          {"x": random(2, 3), "a": np.array(axes, np.int64)}, opset=18)


def test_scale_of_one_number_in_a_normalisation() -> None:
    x, scale = random(2, 3, 4), np.array([[2.5]], np.float32)
    for op_type, opset in (("RMSNormalization", 23), ("LayerNormalization", 17)):
        check(node(op_type, "x s", axis=1), {"x": x}, opset=opset, constants={"s": scale})


def test_shrink_of_integers() -> None:
    got = check(node("Shrink", "x", lambd=1.5, bias=1.5), {"x": np.array([-3, -1, 0, 1, 3, 7], np.int32)}, opset=9)
    assert got[0].tolist() == [-1, 0, 0, 0, 1, 5]


def test_bits_of_wide_unsigned_numbers() -> None:
    x = np.array([0, 3], np.uint32)
    nodes = [node("BitwiseNot", "x", "n"), node("BitwiseAnd", "n m")]
    assert check(nodes, {"x": x}, opset=18, constants={"m": np.array(7, np.uint32)})[0].tolist() == [7, 4]


def test_slice_with_steps_and_without_axes() -> None:
    ends = {"s": np.array([0, 3]), "e": np.array([2, 0]), "t": np.array([1, -2])}
    check(node("Slice", "x s e _ t"), {"x": random(3, 4, 2), **ends})


def test_softmax_of_nothing_in_the_old_form() -> None:
    for shape, axis in (((0, 3, 4), 0), ((2, 3, 0, 4), 1), ((2, 0, 3), 2)):
        check(node("Softmax", "x", axis=axis), {"x": np.zeros(shape, F)}, opset=9)
