"""Reshaping, permuting, joining and slicing against onnxruntime and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops.definitions import apply, run_lowered
from ops.ort import run

from mnn_core.errors import ShapeError
from mnn_core.ir import Op

I32_MAX = 2**31 - 1


def x_of(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.arange(np.prod(shape, dtype=int), dtype=dtype).reshape(shape)


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def same(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_array_equal(got, want, strict=True)


@pytest.mark.parametrize(("shape", "to", "allowzero"), [
    ((2, 3, 4), (0, -1), 0), ((2, 3, 4), (4, 0, -1), 0), ((0, 3), (3, 0), 1), ((0, 3), (0, 0), 0), ((1,), (), 0),
    ((), (1, -1), 0), ((2, 0), (0, 5, 0), 1)])
def test_reshape(shape: tuple[int, ...], to: tuple[int, ...], allowzero: int) -> None:
    x = x_of(*shape)
    want = run("Reshape", [x, i64(*to)], allowzero=allowzero)
    same(apply("Reshape", {"dimType": "NHWC"} if allowzero else {}, x, i32(*to)), want)
    same(apply("Reshape", {"dims": to, "dimType": "NHWC" if allowzero else "NCHW"}, x), want)


@pytest.mark.parametrize(("op", "attrs", "shapes", "extra", "words"), [
    ("Reshape", {"dims": (5, -1)}, [(2, 3)], [], "[5, -1]"),
    ("Reshape", {"dims": (-1, -1)}, [(2, 3)], [], "at most one"),
    ("Reshape", {"dims": (2, 3, 0)}, [(2, 3)], [], "dimension 2"),
    ("Squeeze", {"squeezeDims": (0,)}, [(2, 1)], [], "size 1"),
    ("Flatten", {"axis": 4}, [(2, 3)], [], "axis 4"),
    ("Unsqueeze", {"squeezeDims": (0, 0)}, [(2, 3)], [], "twice"),
    ("Permute", {"dims": (0, 0)}, [(2, 3)], [], "twice"),
    ("Permute", {"dims": (0,)}, [(2, 3)], [], "has 2"),
    ("Concat", {"axis": 1}, [(2, 3), (3, 3)], [], "input 1"),
    ("Concat", {"axis": 2}, [(2, 3), (2, 3)], [], "axis 2"),
    ("Pack", {"axis": 0}, [(2, 3), (2, 4)], [], "input 1"),
    ("Slice", {"axis": 1, "slicePoints": (2, 2), "sourceType": "ONNX"}, [(2, 3)], [], "[2, 2]"),
    ("SliceTf", {}, [(4,)], [i32(2), i32(3)], "leaves"),
    ("StridedSlice", {"fromType": 1}, [(4,)], [i32(0), i32(4), i32(0), i32(0)], "step is 0"),
    ("StridedSlice", {"shrinkAxisMask": 1}, [(4,)], [i32(4), i32(5), i32(1)], "axis 4"),
    ("DepthToSpace", {"blockSize": 2}, [(1, 6, 2, 2)], [], "6 channels"),
    ("SpaceToDepth", {"blockSize": 2}, [(1, 6, 3, 2)], [], "multiples"),
    ("SpaceToBatchND", {}, [(1, 1, 3, 4)], [i32(2, 2), i32(0, 0, 0, 0)], "multiple"),
    ("Crop", {"axis": 1, "offset": (2, 2)}, [(1, 3, 6), (1, 2, 4)], [], "leaves"),
])
def test_wrong_arguments_are_named(op: str, attrs: dict, shapes: list, extra: list, words: str) -> None:
    with pytest.raises(ShapeError) as caught:
        apply(op, attrs, *(x_of(*s) for s in shapes), *extra)
    assert words in str(caught.value)
    assert "tested" in str(caught.value)


@pytest.mark.parametrize("axis", [-3, -1, 0, 1, 3])
def test_flatten(axis: int) -> None:
    x = x_of(2, 3, 4)
    same(apply("Flatten", {"axis": axis}, x), run("Flatten", [x], axis=axis))


def test_flatten_of_a_range_of_axes() -> None:
    assert apply("Flatten", {"axis": 1, "endAxis": -2}, x_of(2, 3, 4, 5)).shape == (2, 12, 5)


def test_squeeze_and_unsqueeze() -> None:
    assert apply("Squeeze", {}, x_of(1, 1, 1)).shape == ()
    x = x_of(2, 1, 3, 1)
    same(apply("Squeeze", {}, x, i32(-3)), run("Squeeze", [x, i64(-3)]))
    same(apply("Unsqueeze", {}, x, i32(-1, 0)), run("Unsqueeze", [x, i64(-1, 0)]))
    same(apply("ExpandDims", {"axis": -2}, x), np.expand_dims(x, -2))


@pytest.mark.parametrize("perm", [(0, 1, 2), (2, 0, 1), (2, 1, 0), (-1, 0, 1)])
def test_permute_and_transpose(perm: tuple[int, ...]) -> None:
    x = x_of(2, 3, 4)
    want = run("Transpose", [x], perm=[p % 3 for p in perm])
    same(apply("Permute", {"dims": perm}, x), want)
    same(apply("Transpose", {}, x, i32(*perm)), want)


@pytest.mark.parametrize("shapes", [[(2, 3), (2, 0), (2, 4)], [(0, 3), (0, 2)], [(2, 1)]])
@pytest.mark.parametrize("axis", [1, -1])
def test_concat(shapes: list[tuple[int, ...]], axis: int) -> None:
    parts = [x_of(*s) for s in shapes]
    same(apply("Concat", {"axis": axis}, *parts), run("Concat", parts, axis=axis))


@pytest.mark.parametrize(("attrs", "length", "count", "sizes"), [
    ({"slicePoints": (2, 5)}, 9, 3, [2, 3, 4]),
    ({}, 9, 3, [3, 3, 3]),
    ({"slicePoints": (4,), "sourceType": "TENSORFLOW"}, 8, 4, [2, 2, 2, 2]),
    ({"slicePoints": (2, -1, 3), "sourceType": "TENSORFLOW"}, 9, 3, [2, 4, 3]),
    ({"slicePoints": (4,), "sourceType": "TORCH"}, 9, 3, [4, 4, 1]),
    ({"slicePoints": (4, 5), "sourceType": "TORCH"}, 9, 2, [4, 5]),
    ({"slicePoints": (9,), "sourceType": "TORCH"}, 9, 1, [9]),
])
def test_slice_sizes(attrs: dict, length: int, count: int, sizes: list[int]) -> None:
    x = x_of(2, length)
    want = [x[:, sum(sizes[:i]):sum(sizes[:i + 1])] for i in range(count)]
    got = apply("Slice", {"axis": -1, **attrs}, x, outputs=count)
    for a, b in zip(got if count > 1 else [got], want):
        same(a, b)


def test_split_with_sizes_input() -> None:
    x = x_of(7, 2)
    want = run("Split", [x, i64(3, 0, 4)], outputs=3, axis=0)
    for a, b in zip(apply("Slice", {"axis": 0}, x, i32(3, 0, 4), outputs=3), want):
        same(a, b)


def onnx_slice(x: np.ndarray, starts: list, ends: list, axes: list, steps: list) -> None:
    """Compares with onnxruntime, by definition and lowered."""
    want = run("Slice", [x, i64(*starts), i64(*ends), i64(*axes), i64(*steps)])
    ins = [x, i32(*starts), i32(*ends), i32(*axes), i32(*steps)]
    same(apply("StridedSlice", {"fromType": 1}, *ins), want)
    lowered = run_lowered(Op("StridedSlice", [f"x{i}" for i in range(5)], ["y"], {"fromType": 1}, "tested"), ins)
    assert lowered is not None
    same(lowered[0], want)


@pytest.mark.parametrize(("start", "end", "step", "want"), [
    (9, 0, -1, list(range(9, 0, -1))), (9, 0, -3, [9, 6, 3]), (7, 0, -1, [7, 6, 5, 4, 3, 2, 1]), (0, 5, -1, []),
    (-1, -I32_MAX, -1, list(range(9, -1, -1))), (-1, I32_MAX, -1, list(range(9, -1, -1))), (-100, 100, 4, [0, 4, 8])])
def test_onnx_slice_values(start: int, end: int, step: int, want: list[int]) -> None:
    got = apply("StridedSlice", {"fromType": 1}, x_of(10), i32(start), i32(end), i32(0), i32(step))
    assert got.tolist() == want


def test_onnx_slice_of_an_empty_axis() -> None:
    got = apply("StridedSlice", {"fromType": 1}, x_of(0, 3), i32(-1), i32(-I32_MAX - 1), i32(0), i32(-1))
    assert got.shape == (0, 3)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=3), st.data())
def test_onnx_slice_like_onnxruntime(shape: list[int], data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    many = st.sampled_from([*range(-7, 8), I32_MAX, -I32_MAX])
    steps = st.sampled_from([-3, -2, -1, 1, 2, 3])
    draw = [data.draw(st.lists(s, min_size=len(axes), max_size=len(axes))) for s in (many, many, steps)]
    onnx_slice(x_of(*shape), draw[0], draw[1], [a - len(shape) * data.draw(st.booleans()) for a in axes], draw[2])


TF_CASES = [
    ((6, 5), np.s_[1:5:2], {"begin": [1], "end": [5], "by": [2]}),
    ((6, 5), np.s_[::-1, 3::-2], {"begin": [9, 3], "end": [9, 9], "by": [-1, -2], "beginMask": 1, "endMask": 3}),
    ((6, 5, 2), np.s_[..., 1], {"begin": [7, 1], "end": [7, 7], "by": [1, 1], "ellipsisMask": 1, "shrinkAxisMask": 2}),
    ((6, 5), np.s_[-2, None, 1:-1], {"begin": [-2, 0, 1], "end": [0, 0, -1], "by": [1, 1, 1], "newAxisMask": 2,
                                     "shrinkAxisMask": 1}),
    ((6, 5, 3), np.s_[2:4, ..., None, :2], {"begin": [2, 0, 0, 0], "end": [4, 0, 0, 2], "by": [1, 1, 1, 1], "ellipsisMask": 2,
                                                "newAxisMask": 4}),
    ((6,), np.s_[4:2], {"begin": [4], "end": [2], "by": [1]}),
    ((6, 4), np.s_[5:0:-2, ::3], {"begin": [5, 0], "end": [0, 4], "by": [-2, 3]}),
    ((3,), np.s_[1], {"begin": [1], "end": [0], "by": [1], "shrinkAxisMask": 1}),
]


@pytest.mark.parametrize(("shape", "index", "how"), TF_CASES)
def test_tensorflow_slice_and_write(shape: tuple[int, ...], index: object, how: dict) -> None:
    x, how = x_of(*shape), dict(how)
    ins = [x, i32(*how.pop("begin")), i32(*how.pop("end")), i32(*how.pop("by"))]
    want = np.asarray(x[index])
    same(apply("StridedSlice", how, *ins), want)
    for value in (-1 - x_of(*want.shape), np.array(-5, np.float32)):
        written = x.copy()
        written[index] = value
        same(apply("StridedSlice", how, *ins, value), written)
        lowered = run_lowered(Op("StridedSlice", [f"x{i}" for i in range(5)], ["y"], how, "tested"), [*ins, value])
        assert lowered is not None
        same(lowered[0], written)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode: str) -> None:
    x = x_of(2, 18, 3, 2)
    y = run("DepthToSpace", [x], blocksize=3, mode=mode)
    same(apply("DepthToSpace", {"blockSize": 3, "mode": mode}, x), y)
    same(apply("SpaceToDepth", {"blockSize": 3, "mode": mode}, y), x)
    if mode == "DCR":
        same(run("SpaceToDepth", [y], blocksize=3), x)


def test_space_to_batch_as_tensorflow_documents_it() -> None:
    x = np.array([[[[1, 2], [3, 4]]]], np.float32)
    y = apply("SpaceToBatchND", {}, x, i32(2, 2), np.zeros((2, 2), np.int32))
    assert y.shape == (4, 1, 1, 1)
    assert y.ravel().tolist() == [1, 2, 3, 4]
    x = x_of(1, 1, 2, 4)
    y = apply("SpaceToBatchND", {}, x, i32(2, 2), np.array([[0, 0], [2, 0]], np.int32))
    assert y[:, 0, 0].tolist() == [[0, 0, 2], [0, 1, 3], [0, 4, 6], [0, 5, 7]]
    same(apply("BatchToSpaceND", {}, y, i32(2, 2), np.array([[0, 0], [2, 0]], np.int32)), x)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3), st.integers(0, 3), st.integers(1, 5)), min_size=1, max_size=2))
def test_space_to_batch_and_back(axes: list[tuple[int, int, int, int]]) -> None:
    blocks, pads, shape = [], [], [2, 2]
    for block, before, after, size in axes:
        blocks.append(block)
        shape.append(size)
        pads.append([before, after + -(size + before + after) % block])
    x = 1 + x_of(*shape)
    ins = [x, i32(*blocks), np.array(pads, np.int32)]
    y = apply("SpaceToBatchND", {}, *ins)
    lowered = run_lowered(Op("SpaceToBatchND", ["x", "b", "p"], ["y"], {}, "tested"), ins)
    back = run_lowered(Op("BatchToSpaceND", ["x", "b", "p"], ["y"], {}, "tested"), [y, *ins[1:]])
    assert lowered is not None
    assert back is not None
    same(lowered[0], y)
    same(back[0], x)
    same(apply("BatchToSpaceND", {}, y, *ins[1:]), x)
