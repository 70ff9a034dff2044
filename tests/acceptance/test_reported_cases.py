"""Forms of ONNX operators that users of other engines reported to be wrong there; the values are from the reports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_op import check, model, node, random, results

import mnn_core as mnn

F, LONG = np.float32, np.int64
LAST, FIRST = 2**63 - 1, -2**63


@pytest.mark.parametrize("opset", [11, 13, 19])
def test_resize_to_the_nearest_by_a_fraction(opset: int) -> None:
    want = F([[0, 0, 1, 2], [0, 0, 1, 2], [3, 3, 4, 5], [6, 6, 7, 8]])[None, None]
    check(node("Resize", "x _ s", mode="nearest", nearest_mode="round_prefer_floor",
               coordinate_transformation_mode="half_pixel"),
          {"x": np.arange(9, dtype=F).reshape(1, 1, 3, 3)}, [want], {"s": F([1, 1, 1.5, 1.5])}, opset=opset, oracle=opset > 11)


@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("transform", ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"])
def test_resize_to_the_nearest_in_all_ways(transform: str, nearest: str) -> None:
    operator = node("Resize", "x _ s", mode="nearest", nearest_mode=nearest, coordinate_transformation_mode=transform)
    for scales in ([1, 1, 2.5, 0.6], [1, 1, 2, 3], [1, 1, 0.5, 1]):
        check(operator, {"x": random(1, 2, 5, 7)}, constants={"s": F(scales)})


@pytest.mark.parametrize(("inputs", "opset"), [("x s", 10), ("x r s", 11), ("x r s", 13), ("x _ s", 13), ("x r s n", 11),
                                               ("x r e n", 13), ("x _ _ n", 13), ("x _ e n", 13), ("x r s _", 13)])
def test_resize_with_any_number_of_inputs(inputs: str, opset: int) -> None:
    """(x, scales), (x, roi, scales) or (x, roi, scales, sizes); absent ones are empty tensors, or have no name."""
    x = np.arange(1, 10, dtype=F).reshape(1, 1, 3, 3)
    given = {"r": F([]), "e": F([]), "s": F([1, 1, 2, 2]), "n": np.array([1, 1, 6, 6], LONG)}
    if inputs == "x r s n":
        given["n"] = np.array([], LONG)
    check(node("Resize", inputs, mode="nearest"), {"x": x}, [x.repeat(2, 2).repeat(2, 3)],
          {n: given[n] for n in inputs.split()[1:] if n != "_"}, opset=opset, also_fed=False, oracle=inputs != "x r s n")


@pytest.mark.parametrize(("x", "pads", "mode", "opset", "axes", "want"), [
    ([[[1, 2, 3, 4]]], [0, 0, -1, 0, 0, 1], "constant", 13, None, [[[2, 3, 4, 0]]]),
    ([[[1, 2, 3, 4]]], [0, 0, 2, 0, 0, -3], "constant", 13, None, [[[0, 0, 1]]]),
    ([[1, 2, 3, 4]], [0, -1, 0, 2], "edge", 13, None, [[2, 3, 4, 4, 4]]),
    ([[1, 2, 3, 4]], [0, 2, 0, -1], "reflect", 13, None, [[3, 2, 1, 2, 3]]),
    ([[1, 2, 3]], [0, 2, 0, 1], "reflect", 18, None, [[3, 2, 1, 2, 3, 2]]),
    ([[1, 2, 3]], [0, 1, 0, 2], "wrap", 19, None, [[3, 1, 2, 3, 1, 2]]),
    ([[1, 2, 3]], [2, 1], "wrap", 19, [-1], [[2, 3, 1, 2, 3, 1]]),
    ([[1, 2], [3, 4]], [1, 0, 0, 1], "edge", 18, [-1, 0], [[1, 1, 2], [3, 3, 4], [3, 3, 4]]),
    ([[1, 2], [3, 4]], [-1, 1], "constant", 18, [-2], [[3, 4], [0, 0]]),
])
def test_pad(x: Any, pads: list[int], mode: str, opset: int, axes: list[int] | None, want: Any) -> None:
    constants = {"p": np.array(pads, LONG), **({} if axes is None else {"a": np.array(axes, LONG)})}
    check(node("Pad", "x p" if axes is None else "x p _ a", mode=mode), {"x": F(x)}, [F(want)], constants, opset=opset)


def test_pad_of_one_axis_with_a_value() -> None:
    x, constants = np.ones((1, 2, 2, 2), F), {"p": np.array([1, 1]), "v": F(0), "a": np.array([-1])}
    check(node("Pad", "x p v a"), {"x": x}, [np.pad(x, [(0, 0)] * 3 + [(1, 1)])], constants, opset=18)
    constants["v"] = F(-2)
    check(node("Pad", "x p v a"), {"x": x}, [np.pad(x, [(0, 0)] * 3 + [(1, 1)], constant_values=-2)], constants, opset=18)


def test_pad_with_what_wraps_is_of_opset_19() -> None:
    proto = model(node("Pad", "x p", mode="wrap"), {"x": F([[1, 2]])}, opset=18, constants={"p": np.array([0, 1, 0, 1])})
    with pytest.raises(mnn.ConversionError, match="mode 'wrap' is not supported.*opset 18"):
        mnn.convert(proto, converter="onnx")


@pytest.mark.parametrize(("start", "end", "step", "want"), [
    (9, 0, -1, [9, 8, 7, 6, 5, 4, 3, 2, 1]), (9, 0, -3, [9, 6, 3]), (7, 0, -1, [7, 6, 5, 4, 3, 2, 1]), (0, 5, -1, []),
    (-1, -4, -1, [9, 8, 7]), (100, -100, -4, [9, 5, 1]), (-3, LAST, 1, [7, 8, 9]), (LAST, FIRST, -5, [9, 4]), (5, 5, 1, []),
    (7, 2, 1, []), (FIRST, 2, 1, [0, 1])])
def test_slice(start: int, end: int, step: int, want: list[int]) -> None:
    constants = {"s": np.array([start]), "e": np.array([end]), "a": np.array([0]), "t": np.array([step])}
    check(node("Slice", "x s e a t"), {"x": np.arange(10, dtype=F)}, [F(want)], constants,
          also_fed=not {start, end} & {LAST, FIRST})  # fed integers must fit in 32 bits


def test_slice_backwards_of_rows_and_of_nothing() -> None:
    x = np.arange(12, dtype=F).reshape(3, 4)
    constants = {"s": np.array([2]), "e": np.array([0]), "a": np.array([0]), "t": np.array([-1])}
    check(node("Slice", "x s e a t"), {"x": x}, [x[2:0:-1]], constants)
    constants = {"s": np.array([-1]), "a": np.array([0]), "t": np.array([-1])}
    for end in (np.array([FIRST]), np.array([-9])):
        check(node("Slice", "x s e a t"), {"x": np.zeros((0, 3), F)}, [np.zeros((0, 3), F)], {**constants, "e": end},
              also_fed=end[0] != FIRST)


def test_slice_by_steps_of_nothing_is_refused() -> None:
    constants = {"s": np.array([0]), "e": np.array([3]), "a": np.array([0]), "t": np.array([0])}
    feeds = {"x": np.arange(4, dtype=F)}
    with pytest.raises(mnn.MNNError, match="step is 0"):
        mnn.convert(model(node("Slice", "x s e a t"), feeds, constants=constants), converter="onnx")
    with pytest.raises(mnn.MNNError, match="step"):
        list(results(model(node("Slice", "x s e a t"), {**feeds, **constants}), {**feeds, **constants}))


@pytest.mark.parametrize("opset", [11, 18, 19, 22])
def test_pools_with_partial_windows(opset: int) -> None:
    """What lies outside of the padded image counts as nothing; a window that starts there is none."""
    x = np.arange(1, 17, dtype=F).reshape(1, 1, 4, 4)
    pool = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}
    check(node("AveragePool", "x", pads=[1, 1, 1, 1], count_include_pad=1, **pool), {"x": x},
          [F([[[[14 / 9, 10 / 3, 2], [19 / 3, 11, 6], [4.5, 7.5, 4]]]])], opset=opset, oracle=opset >= 19)
    check(node("AveragePool", "x", **pool), {"x": x}, [F([[[[6, 7.5], [12, 13.5]]]])], opset=opset)
    check(node("AveragePool", "x", pads=[1, 1, 1, 1], **pool), {"x": x}, opset=opset)
    check(node("MaxPool", "x", pads=[1, 1, 1, 1], **pool), {"x": x}, opset=opset)
    row = {"kernel_shape": [2], "strides": [2], "pads": [1, 1], "ceil_mode": 1}
    check(node("MaxPool", "x", **row), {"x": F([[[1, 2, 3, 4]]])}, [F([[[1, 3, 4]]])], opset=opset)
    check(node("AveragePool", "x", **row), {"x": F([[[1, 2, 3, 4]]])}, [F([[[1, 2.5, 4]]])], opset=opset)
    check(node("AveragePool", "x", count_include_pad=1, **row), {"x": F([[[1, 2, 3, 4]]])}, [F([[[.5, 2.5, 2]]])],
          opset=opset, oracle=opset >= 19)


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, -2])
@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("opset", [7, 11, 12, 13])
def test_softmax_of_what_is_flattened(operator: str, axis: int | None, opset: int) -> None:
    """Up to opset 12 all dimensions from the axis on, 1 if not given, are normalised together."""
    if axis is not None and axis < 0 and opset < 11:
        return
    x = random(2, 3, 4)
    place = axis if axis is not None else 1 if opset < 13 else -1
    flat = x if opset >= 13 else x.reshape(int(np.prod(x.shape[:place])), -1)
    over = place if opset >= 13 else 1
    shifted = np.exp(flat - flat.max(over, keepdims=True))
    want = shifted / shifted.sum(over, keepdims=True)
    if operator == "Hardmax":
        want = (flat == flat.max(over, keepdims=True)).astype(F)
    want = np.log(want) if operator == "LogSoftmax" else want
    check(node(operator, "x", **({} if axis is None else {"axis": axis})), {"x": x}, [want.reshape(x.shape)], opset=opset)


def test_softmax_values() -> None:
    x = F([[[0, 1], [2, 3]]])
    check(node("Softmax", "x"), {"x": x}, [F([[[.032059, .087144], [.236883, .643914]]])], opset=11)
    check(node("Softmax", "x"), {"x": x}, [F([[[.268941, .731059]] * 2])], opset=13)


EIGHT = np.arange(8, dtype=F).reshape(2, 2, 2)


@pytest.mark.parametrize(("x", "indices", "updates", "reduction", "places"), [
    (np.zeros((3, 4), F), [[0, 1], [2, -1]], [5, 7], "none", {(0, 1): 5, (2, 3): 7}),
    (np.zeros(4, F), [[1], [1], [-1]], [1, 2, 4], "add", {1: 3, 3: 4}),
    (EIGHT, [[[0, 0]]], [[[100, 101]]], "max", {(0, 0): [100, 101]}),
    (EIGHT, [[[1, -2, -1]]], [[-3]], "min", {(1, 0, 1): -3}),
    (np.ones((2, 2), F), [[-1], [1], [0]], [[2, 3], [4, 5], [6, 7]], "mul", {0: [6, 7], 1: [8, 15]}),
])
def test_scatter_by_tuples(x: np.ndarray, indices: Any, updates: Any, reduction: str, places: dict[Any, Any]) -> None:
    """Tuples may be shorter than the rank, count from the end, and come twice."""
    want = x.copy()
    for place, value in places.items():
        want[place] = value
    check(node("ScatterND", "x i u", reduction=reduction), {"x": x}, [want], {"i": np.array(indices, LONG), "u": F(updates)},
          opset=18)


@pytest.mark.parametrize(("axis", "indices", "updates", "reduction", "want"), [
    (1, [[1, 1, -1]], [[5, 0, -2]], "min", [[1, 0, 3, -2]]), (1, [[1, 1, -1]], [[5, 0, -2]], "add", [[1, 7, 3, 2]]),
    (-1, [[-4, 2]], [[9, 8]], "none", [[9, 2, 8, 4]]), (0, [[-1, 0, 0, 0]], [[5, 6, 7, 8]], "mul", [[5, 12, 21, 32]]),
    (1, [[0, -4, 3]], [[-1, 7, 4]], "max", [[7, 2, 3, 4]])])
def test_scatter_along_an_axis(axis: int, indices: Any, updates: Any, reduction: str, want: Any) -> None:
    check(node("ScatterElements", "x i u", axis=axis, reduction=reduction), {"x": F([[1, 2, 3, 4]])}, [F(want)],
          {"i": np.array(indices, LONG), "u": F(updates)}, opset=18)


@pytest.mark.parametrize(("batch", "indices"), [(1, [[1], [0]]), (1, [[-1], [-2]]), (1, [[[0, 1]], [[1, -1]]]), (0, [[0, -1]]),
                                                (2, [[[1], [0]], [[-1], [-1]]]), (0, [[-1, 0, 1], [0, -2, -1]])])
def test_gather_by_tuples(batch: int, indices: Any) -> None:
    places = np.array(indices, LONG)
    inner = EIGHT.reshape(-1, *EIGHT.shape[batch:])
    rows = places.reshape(-1, *places.shape[batch:])
    want = np.stack([part[tuple(np.moveaxis(row, -1, 0))] for part, row in zip(inner, rows)])
    want = want.reshape(*places.shape[:-1], *want.shape[places.ndim - batch:])
    check(node("GatherND", "x i", batch_dims=batch), {"x": EIGHT}, [want], {"i": places})


BOXES = F([[0, 0, .3, .3], [0, 0, .4, .4], [0, 0, .5, .5], [.5, .5, .9, .9], [.5, .5, 1, 1]])


@pytest.mark.parametrize(("most", "threshold", "found"), [
    (2, 0, (3, 2)), (1, 0, (3,)), (2, .85, (3,)), (2, .99, ()), (0, 0, ()), (None, 0, ()), (5, .75, (3, 2))])
def test_boxes_of_batches_and_classes(most: int | None, threshold: float, found: tuple[int, ...]) -> None:
    """Rows for each batch and class; of nothing there are 0."""
    want = np.array([(n, c, box) for n in range(2) for c in range(2) for box in found], LONG).reshape(-1, 3)
    constants = {"m": np.array([most or 0]), "i": F([.5]), "t": F([threshold])}
    if most is None:
        del constants["m"]
    check(node("NonMaxSuppression", f"b s {'_' if most is None else 'm'} i t"),
          {"b": np.stack([BOXES, BOXES]), "s": np.broadcast_to(F([.6, .7, .8, .9, .5]), (2, 2, 5)).copy()}, [want], constants)
