"""Ops that tell shapes or make tensors, against onnxruntime and NumPy."""

import numpy as np
import pytest
from ops.definitions import apply
from ops.ort import run

from mnn_core.errors import ShapeError
from mnn_core.ir import Op, Spec
from mnn_core.ops import definition

X = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


@pytest.mark.parametrize(("start", "end"), [(None, None), (1, None), (None, -1), (-2, 9), (3, 1), (-9, 2)])
def test_shape(start: int | None, end: int | None) -> None:
    ours = {"hasStart": start is not None, "start": start or 0, "hasEnd": end is not None, "end": end or 0}
    theirs = {k: v for k, v in (("start", start), ("end", end)) if v is not None}
    np.testing.assert_array_equal(apply("Shape", ours, X), run("Shape", [X], **theirs))


def test_values_are_known_from_shapes_alone() -> None:
    for op_type, want in {"Shape": [2, 0, 3], "Rank": 3, "Size": 0}.items():
        spec = definition(Op(op_type, [], [])).infer(Op(op_type, ["x"], ["y"]), [Spec((2, 0, 3), np.dtype(np.float32))])[0]
        assert spec.value is not None
        np.testing.assert_array_equal(spec.value, want)
    with pytest.raises(ShapeError, match="int32 cannot hold"):
        definition(Op("Size", [], [])).infer(Op("Size", ["x"], ["y"]), [Spec((2**20, 2**20), np.dtype(np.float32))])


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
@pytest.mark.parametrize("values", [(2, 11, 3), (5, 5, 1), (5, 2, 1), (5, 0, -2), (1, -1, -1)])
def test_range(dtype: type, values: tuple[int, ...]) -> None:
    parts = [np.array(v, dtype) for v in values]
    np.testing.assert_array_equal(apply("Range", {}, *parts), run("Range", parts))


def test_range_and_linspace_corners() -> None:
    parts = [np.array(v, np.float32) for v in (0, 1, 0.1)]
    np.testing.assert_allclose(apply("Range", {}, *parts), run("Range", parts), rtol=1e-6)
    with pytest.raises(ShapeError, match="steps of 0"):
        apply("Range", {}, ints(0), ints(3), ints(0))
    start, stop = np.array(-1, np.float32), np.array(2, np.float32)
    for n in (0, 1, 2, 7):
        np.testing.assert_allclose(apply("LinSpace", {}, start, stop, ints(n)), np.linspace(-1, 2, n), rtol=1e-6)


def test_fill() -> None:
    np.testing.assert_array_equal(apply("Fill", {}, ints(2, 3), np.array([1.5], np.float32)), np.full((2, 3), 1.5, np.float32))
    assert apply("Fill", {}, ints(), np.array(2, np.int32)).shape == ()
    assert apply("Fill", {}, ints(0, 3), np.array(2, np.int32)).shape == (0, 3)
    with pytest.raises(ShapeError, match=r"\[-1, 2\]"):
        apply("Fill", {}, ints(-1, 2), np.array(0, np.int32))


@pytest.mark.parametrize("axis", [-1, 0, 1, -2])
def test_one_hot(axis: int) -> None:
    index = ints(0, -1, 3, 4, -5, 2).reshape(2, 3)
    want = run("OneHot", [index, ints(4), np.array([-1, 2], np.float32)], axis=axis)
    got = apply("OneHot", {"axis": axis}, index, ints(4), np.array(2, np.float32), np.array(-1, np.float32))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("k", [-1, 0, 2, 9])
def test_eye_like(k: int) -> None:
    x = X[0, 0]
    np.testing.assert_array_equal(apply("EyeLike", {}, x, np.array(k, np.int32)), run("EyeLike", [x], k=k))


def test_unravel_index() -> None:
    index = ints(0, 5, 23, 12)
    np.testing.assert_array_equal(apply("UnravelIndex", {}, index, ints(2, 3, 4)), np.array(np.unravel_index(index, (2, 3, 4))))
    np.testing.assert_array_equal(apply("UnravelIndex", {}, np.array(7, np.int32), ints(2, 4)), [1, 3])


def test_random() -> None:
    uniform = apply("RandomUniform", {"seed": 3, "low": -1.0, "high": 2.0}, ints(100, 100))
    assert uniform.min() >= -1
    assert uniform.max() <= 2
    np.testing.assert_allclose([uniform.mean(), uniform.std()], [0.5, 3 / 12 ** 0.5], atol=0.02)
    normal = apply("RandomNormal", {"seed": 3, "low": 5.0, "high": 2.0}, ints(100, 100))
    np.testing.assert_allclose([normal.mean(), normal.std()], [5, 2], atol=0.05)
    again = apply("RandomNormal", {"seed": 3, "low": 5.0, "high": 2.0}, ints(100, 100))
    np.testing.assert_array_equal(normal, again)
    free = [apply("RandomUniform", {}, ints(50)) for _ in range(2)]
    assert (free[0] != free[1]).any()
    assert not definition(Op("RandomUniform", [], [])).pure
