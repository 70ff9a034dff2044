"""Padding, repeating, reversing, gathering and scattering against onnxruntime and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, mutually_broadcastable_shapes
from ops.definitions import apply
from ops.ort import run
from ops.test_lowering import run_lowered
from ops.test_move import i32, i64, same, x_of

from mnn_core.errors import KernelError, MNNError, ShapeError
from mnn_core.ir import schema
from mnn_core.ops import all_ops

MODES = {"CONSTANT": "constant", "REFLECT": "reflect", "SYMMETRIC": "symmetric", "EDGE": "edge"}


def both(op_type: str, attrs: dict, *inputs: np.ndarray) -> np.ndarray:
    """An op's output, after checking that lowering it, all inputs but the first being known, gives the same."""
    direct, rastered = run_lowered(all_ops()[op_type], attrs, list(inputs), [False] + [True] * (len(inputs) - 1))
    same(rastered[0], direct[0])
    return direct[0]


def pads_of(x: np.ndarray, before: list[int], after: list[int]) -> np.ndarray:
    return np.array(list(zip(before, after)), np.int32).reshape(-1)


@pytest.mark.parametrize(("mode", "x", "before", "after", "want"), [
    ("CONSTANT", [[[1, 2, 3, 4]]], [0, 0, -1], [0, 0, 1], [[[2, 3, 4, 0]]]),
    ("REFLECT", [[1, 2, 3]], [0, 2], [0, 1], [[3, 2, 1, 2, 3, 2]]),
    ("SYMMETRIC", [[1, 2, 3]], [0, 2], [0, 1], [[2, 1, 1, 2, 3, 3]]),
    ("EDGE", [[1, 2, 3]], [1, -1], [0, 2], [[2, 3, 3, 3], [2, 3, 3, 3]]),
])
def test_padding_values(mode: str, x: list, before: list[int], after: list[int], want: list) -> None:
    data = np.array(x, np.float32)
    assert both("Padding", {"mode": mode}, data, pads_of(data, before, after)).tolist() == want


@settings(max_examples=100, deadline=None)
@given(array_shapes(min_dims=1, max_dims=3, max_side=4), st.sampled_from(list(MODES)), st.data())
def test_padding_like_numpy(shape: tuple[int, ...], mode: str, data: st.DataObject) -> None:
    pair = st.tuples(st.integers(0, 9), st.integers(0, 9))
    widths = data.draw(st.lists(pair, min_size=len(shape), max_size=len(shape)))
    x = 1 + x_of(*shape)
    same(both("Padding", {"mode": mode}, x, i32(*np.ravel(widths))), np.pad(x, widths, mode=MODES[mode]))


@settings(max_examples=60, deadline=None)
@given(array_shapes(min_dims=1, max_dims=3, max_side=4), st.data())
def test_constant_padding_like_onnxruntime(shape: tuple[int, ...], data: st.DataObject) -> None:
    before = [data.draw(st.integers(-d // 2, 3)) for d in shape]
    after = [data.draw(st.integers(-d // 2, 3)) for d in shape]
    x, value = x_of(*shape), np.array(-2.5, np.float32)
    if any(d + a + b <= 0 for d, a, b in zip(shape, before, after)):
        return
    same(both("Padding", {}, x, pads_of(x, before, after), value), run("Pad", [x, i64(*before, *after), value]))


@settings(max_examples=60, deadline=None)
@given(array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4), st.data())
def test_tile(shape: tuple[int, ...], data: st.DataObject) -> None:
    repeats = data.draw(st.lists(st.integers(0, 3), min_size=len(shape), max_size=len(shape)))
    x = x_of(*shape)
    same(both("Tile", {}, x, i32(*repeats)), np.tile(x, repeats))


@settings(max_examples=60, deadline=None)
@given(mutually_broadcastable_shapes(num_shapes=2, min_dims=0, max_dims=4, min_side=0, max_side=4))
def test_broadcast_both_ways(shapes: object) -> None:
    first, second = shapes.input_shapes  # type: ignore[attr-defined]
    x = x_of(*first)
    same(both("BroadcastTo", {}, x, i32(*second)), x * np.ones(second, np.float32))


def test_exact_broadcast_does_not_enlarge_the_shape() -> None:
    with pytest.raises(ShapeError, match=r"\[1\]"):
        apply("BroadcastTo", {"axis": 1}, x_of(3), i32(1))


def test_reverse_of_two_axes_and_of_none() -> None:
    same(both("Reverse", {}, x_of(2, 3, 4), i32(-1, 0)), x_of(2, 3, 4)[::-1, :, ::-1])
    same(both("Reverse", {}, x_of(2, 3), i32()), x_of(2, 3))


@pytest.mark.parametrize(("batch", "time"), [(0, 1), (1, 0)])
def test_reverse_sequence(batch: int, time: int) -> None:
    x = x_of(4, 4, 2)
    want = run("ReverseSequence", [x, i64(1, 4, 2, 3)], batch_axis=batch, time_axis=time)
    same(both("ReverseSequence", {"batchDim": batch, "seqDim": time}, x, i32(1, 4, 2, 3)), want)


def test_reverse_sequence_refuses_lengths_beyond_the_axis() -> None:
    with pytest.raises(KernelError, match=r"\[2, 4\].*0\.\.3"):
        apply("ReverseSequence", {"seqDim": 1}, x_of(2, 3), i32(2, 4))


@settings(max_examples=80, deadline=None)
@given(array_shapes(min_dims=1, max_dims=3, max_side=5),
       array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=4), st.data())
def test_gather(shape: tuple[int, ...], index_shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    count = int(np.prod(index_shape))
    values = data.draw(st.lists(st.integers(-shape[axis], shape[axis] - 1), min_size=count, max_size=count))
    x, indices = x_of(*shape), np.array(values, np.int32).reshape(index_shape)
    want = run("Gather", [x, indices], axis=axis)
    same(both("GatherV2", {}, x, indices, np.array(axis, np.int32)), want)
    same(both("Gather", {"axis": axis}, x, indices), want)


@pytest.mark.parametrize(("op", "args"), [
    ("GatherV2", [x_of(3), i32(3)]), ("GatherND", [x_of(3, 2), i32(0, -3)]), ("GatherElements", [x_of(3), i32(-4)]),
    ("ScatterNd", [i32(3).reshape(1, 1), x_of(1), i32(3)]), ("ScatterElements", [x_of(3), i32(5), x_of(1)])])
def test_index_out_of_range_is_an_error(op: str, args: list) -> None:
    with pytest.raises(KernelError, match=r"out of range; the axis has [23] elements"):
        apply(op, {}, *args)


def test_gather_nd_values() -> None:
    got = both("GatherND", {"axis": 1}, x_of(2, 2, 2), np.array([[1], [0]], np.int32))
    assert got.tolist() == [[2, 3], [4, 5]]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_gather_nd_like_onnxruntime(shape: list[int], data: st.DataObject) -> None:
    batch = data.draw(st.integers(0, len(shape) - 1))
    depth = data.draw(st.integers(1, len(shape) - batch))
    lead = (*shape[:batch], *data.draw(st.lists(st.integers(1, 3), min_size=0, max_size=2)))
    indices = np.stack([np.array(data.draw(st.lists(st.integers(-d, d - 1), min_size=int(np.prod(lead)),
                                                    max_size=int(np.prod(lead)))), np.int64).reshape(lead)
                        for d in shape[batch:batch + depth]], -1)
    x = x_of(*shape)
    same(both("GatherND", {"axis": batch}, x, indices.astype(np.int32)), run("GatherND", [x, indices], batch_dims=batch))


def draw_elements(data: st.DataObject, unique: bool) -> tuple[np.ndarray, np.ndarray, int]:
    """Data, indices for an axis of it, and the axis; unique: no element is named twice."""
    shape = data.draw(array_shapes(min_dims=1, max_dims=3, max_side=4))
    axis = data.draw(st.integers(0, len(shape) - 1))
    index_shape = tuple(data.draw(st.integers(1, d)) for d in shape)
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    n = shape[axis]
    if unique:
        indices = rng.permuted(np.broadcast_to(np.arange(n), (*index_shape[:axis], *index_shape[axis + 1:], n)), axis=-1)
        indices = np.moveaxis(indices[..., :index_shape[axis]], -1, axis)
    else:
        indices = rng.integers(0, n, index_shape)
    return x_of(*shape), np.where(rng.random(index_shape) < 0.3, indices - n, indices), axis


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_gather_elements_like_onnxruntime(data: st.DataObject) -> None:
    x, indices, axis = draw_elements(data, unique=False)
    want = run("GatherElements", [x, indices], axis=axis)
    same(apply("GatherElements", {}, x, indices.astype(np.int32), np.array(axis, np.int32)), want)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([("none", -1), ("add", "ADD"), ("mul", "MUL"), ("max", "MAXIMUM"), ("min", "MINIMUM")]), st.data())
def test_scatter_elements_like_onnxruntime(reduction: tuple[str, str | int], data: st.DataObject) -> None:
    x, indices, axis = draw_elements(data, unique=reduction[0] == "none")
    updates = 3 - x_of(*indices.shape)
    want = run("ScatterElements", [x, indices, updates], axis=axis, reduction=reduction[0])
    got = apply("ScatterElements", {"opType": reduction[1]}, x, indices.astype(np.int32), updates, np.array(axis, np.int32))
    same(got, want)


def test_scatter_elements_minimum_with_duplicates() -> None:
    got = apply("ScatterElements", {"opType": "MINIMUM"}, np.array([[1, 2, 3, 4]], np.float32), i32(1, 1, -1).reshape(1, 3),
                np.array([[5, 0, -2]], np.float32), np.array(1, np.int32))
    assert got.tolist() == [[1, 0, 3, -2]]


def test_scatter_nd_values() -> None:
    zeros = np.zeros((3, 4), np.float32)
    updates = np.array([5, 7], np.float32)
    got = apply("ScatterNd", {}, np.array([[0, 1], [2, -1]], np.int32), updates, i32(3, 4), zeros)
    assert (got[0, 1], got[2, 3], got.sum()) == (5, 7, 12)
    got = apply("ScatterNd", {"opType": "MAXIMUM"}, np.array([[[0, 0]]], np.int32), np.array([[[100, 101]]], np.float32),
                i32(2, 2, 2), x_of(2, 2, 2))
    assert got[0, 0].tolist() == [100, 101]
    indices, three = np.array([[1], [1], [-1]], np.int32), np.array([1, 2, 4], np.float32)
    assert apply("ScatterNd", {"opType": "ADD"}, indices, three, i32(4), zeros[0]).tolist() == [0, 3, 0, 4]
    assert apply("ScatterNd", {}, indices, three, i32(4)).tolist() == [0, 3, 0, 4]
    assert apply("ScatterNd", {}, indices, three, i32(4), zeros[0]).tolist() == [0, 2, 0, 4]


@pytest.mark.parametrize(("reduction", "name"), [("add", "ADD"), ("mul", "MUL"), ("max", "MAXIMUM"), ("min", "MINIMUM")])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_scatter_nd_like_onnxruntime(reduction: str, name: str, depth: int) -> None:
    rng = np.random.default_rng(depth)
    shape = (3, 2, 4)
    x = x_of(*shape)
    indices = np.stack([rng.integers(-d, d, (2, 3)) for d in shape[:depth]], -1)
    updates = rng.integers(-4, 9, (2, 3, *shape[depth:])).astype(np.float32)
    want = run("ScatterND", [x, indices, updates], reduction=reduction)
    same(apply("ScatterNd", {"opType": name}, indices.astype(np.int32), updates, i32(*shape), x), want)


@pytest.mark.parametrize(("op", "attrs", "args", "words"), [
    ("Padding", {}, [x_of(2, 3), i32(1, 1)], "pair"),
    ("Padding", {}, [x_of(2), i32(-2, -1)], "cuts off"),
    ("Padding", {"mode": "EDGE"}, [x_of(0), i32(1, 0)], "empty axis"),
    ("Tile", {}, [x_of(2, 3), i32(2)], "repeats"),
    ("BroadcastTo", {}, [x_of(2, 3), i32(2, 2)], "[2, 2]"),
    ("ReverseSequence", {"seqDim": 1}, [x_of(2, 3), i32(1)], "length for each"),
    ("GatherND", {"axis": 1}, [x_of(2, 3), np.zeros((3, 1), np.int32)], "batch axes"),
    ("GatherND", {}, [x_of(2, 3), np.zeros((3, 3), np.int32)], "3 coordinates"),
    ("GatherElements", {}, [x_of(2, 3), np.zeros((2, 4), np.int32)], "axis but 0"),
    ("ScatterNd", {}, [np.zeros((2, 1), np.int32), x_of(3), i32(4)], "expected shape [2]"),
    ("ScatterElements", {}, [x_of(2, 3), np.zeros((1, 3), np.int32), x_of(1, 2)], "equal shapes"),
    ("ScatterElements", {"opType": "POW"}, [x_of(3), i32(1), x_of(1)], "POW"),
    ("Im2Col", {"kernelX": 5}, [x_of(1, 1, 4, 4)], "do not fit"),
    ("Col2Im", {"kernelX": 2}, [x_of(1, 3, 4), i32(2, 3)], "windows"),
])
def test_wrong_arguments_are_named(op: str, attrs: dict, args: list, words: str) -> None:
    with pytest.raises(MNNError) as caught:
        apply(op, attrs, *args)
    assert words in str(caught.value)
    assert "tested" in str(caught.value)


@settings(max_examples=60, deadline=None)
@given(st.tuples(*[st.integers(3, 7)] * 2), st.tuples(*[st.integers(1, 3)] * 2), st.tuples(*[st.integers(1, 3)] * 2),
       st.tuples(*[st.integers(1, 2)] * 2), st.tuples(*[st.integers(0, 2)] * 4))
def test_columns_and_back(size: tuple, kernel: tuple, stride: tuple, dilate: tuple, pads: tuple) -> None:
    attrs = {"kernelY": kernel[0], "kernelX": kernel[1], "strideY": stride[0], "strideX": stride[1],
             "dilateY": dilate[0], "dilateX": dilate[1], "pads": pads}
    x = 1 + x_of(1, 2, *size)
    if any(n + pads[a] + pads[a + 2] < dilate[a] * (kernel[a] - 1) + 1 for a, n in enumerate(size)):
        return
    columns = both("Im2Col", attrs, x)
    taps = 2 * kernel[0] * kernel[1]
    weight = np.zeros((taps, 2, *kernel), np.float32)  # one filter a tap: the convolution gives the columns
    weight.reshape(taps, taps)[np.diag_indices(taps)] = 1
    how = {"strides": list(stride), "dilations": list(dilate), "pads": list(pads)}
    want = run("Conv", [x, weight], **how)
    same(columns, want.reshape(taps, -1))
    back = run("Col2Im", [columns[None], i64(*size), i64(*kernel)], **how)
    np.testing.assert_allclose(apply("Col2Im", attrs, columns[None], i32(*size)), back, rtol=1e-6)


def test_reduction_of_a_scatter_is_stored_in_the_binary_op_table() -> None:
    for op_type, default in (("ScatterNd", None), ("ScatterElements", -1)):
        attribute = (schema.attributes(op_type) or {})["opType"]
        assert attribute.default == default
        assert attribute.field is not None
        assert attribute.field.type == "BinaryOpOperation"
