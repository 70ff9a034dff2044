"""What users give: every kind of array, and every kind of mistake."""

import numpy as np
import pytest
from graphs import I32, I64, graph, info

import mnn_core as mnn


def echo(shape=None, dtype=np.float32, dims=()):
    """A model that gives back its input, negated twice."""
    return mnn.load(graph(["n = Neg(x)", "y = Neg(n)"], [info("x", shape, dtype, dims)], ["y"]), "numpy")


BASE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("array", [
    BASE, BASE.T, BASE[::2], BASE[:, ::-1], np.asfortranarray(BASE), BASE.transpose(0, 2, 1),
    np.broadcast_to(BASE[0], (5, 3, 4)),
    BASE.astype(">f4"), np.frombuffer(b"\0" + BASE.tobytes(), np.uint8)[1:].view(np.float32), BASE.astype(np.float64),
    BASE.astype(np.float16), BASE.astype(np.uint8), BASE.astype(np.int64), BASE[:0], np.float32(3), np.ma.array(BASE),
    BASE > 3], ids=range(17))
def test_any_array_of_the_same_values_gives_the_same(array):
    model = echo()
    kept = np.array(array)
    for _ in range(2):
        out = model.run({"x": array})["y"]
        assert out.dtype == np.float32
        np.testing.assert_array_equal(out, kept.astype(np.float32))
    np.testing.assert_array_equal(array, kept)


def test_read_only_arrays_and_lists():
    x = BASE.copy()
    x.flags.writeable = False
    np.testing.assert_array_equal(echo().run({"x": x})["y"], BASE)
    np.testing.assert_array_equal(echo().run({"x": [[0.1, 2], [3, 4]]})["y"], np.float32([[0.1, 2], [3, 4]]))
    assert echo(()).run({"x": 2.5})["y"] == 2.5
    assert echo((), I64).run({"x": 3})["y"] == 3


@pytest.mark.parametrize(("dtype", "value", "got"), [
    (np.float32, np.array([0.1]), "float64"),
    (np.float32, np.array([2 ** 24 + 1]), "int64"),
    (np.float32, np.array([1e300]), "float64"),
    (np.int64, np.array([1.5], np.float32), "float32"),
    (np.int64, np.array([2 ** 40]), "int64"),
    (np.int32, np.array([2 ** 31], np.uint32), "uint32"),
    (np.uint8, np.array([-1]), "int64"),
    (np.uint8, np.array([255, 256]), "int64"),
    (np.int8, np.array([255], np.uint8), "uint8"),
    (np.bool_, np.array([0.5]), "float64"),
    (np.int32, np.array([np.nan], np.float32), "float32"),
    (np.int32, np.array([np.inf], np.float32), "float32"),
    (np.float32, np.array(["a"]), "<U1"),
    (np.float32, np.array([1j]), "complex128"),
    (np.int32, [1.5], "float64"),
    (np.float32, [None], "object"),
    (np.bool_, np.array([2]), "int64"),
    (np.int16, np.array([40000], np.int32), "int32"),
    (np.int64, [2 ** 40], "int64"),
])
def test_a_dtype_that_would_change_values_is_refused(dtype, value, got):
    with pytest.raises(mnn.InputTypeError, match=rf"input 'x' got {got}; expected {np.dtype(dtype).name}"):
        echo(dtype=dtype).run({"x": value})


@pytest.mark.parametrize(("dtype", "value"), [
    (np.float32, np.array([0.5, np.nan, -np.inf])), (np.int64, np.array([3.0])), (np.uint8, np.array([255, 0])),
    (np.int32, np.array([True])), (np.bool_, np.array([1, 0], np.uint8)), (np.float32, np.array([2 ** 24])),
    (np.float16, np.array([0.1], np.float32)), (np.float16, np.array([0.1], np.float16)), (np.int16, np.array([-3])),
])
def test_a_dtype_that_keeps_all_values_is_converted(dtype, value):
    np.testing.assert_array_equal(echo(dtype=dtype).run({"x": value})["y"], value)


@pytest.mark.parametrize(("inputs", "says"), [
    ({}, "missing: x, z.*takes: x"), ({"x": BASE, "z": BASE, "k": 1}, "unknown: k"),
    ({"x": BASE, "zz": BASE}, "missing: z; unknown: zz"),
])
def test_names_are_checked(inputs, says):
    model = mnn.load(graph(["y = Add(x, z)"], ["x", "z"], ["y"]), "numpy")
    with pytest.raises(mnn.InputError, match=says):
        model.run(inputs)


@pytest.mark.parametrize(("shape", "value", "says"), [
    ((None, 3), np.zeros(3, np.float32), r"input 'x' got shape \[3\], 1 dimensions; expected 2: x: float32\[\?,3\]"),
    ((None, 3), np.zeros((3, 4), np.float32), "dimension 1 is 4 instead of 3"),
    ((), np.zeros(1, np.float32), "expected 0"),
])
def test_shapes_are_checked(shape, value, says):
    model = echo(shape)
    with pytest.raises(mnn.InputError, match=says):
        model.run({"x": value})


def test_named_dimensions_are_equal_everywhere_in_one_call():
    a, b = info("a", (None, 2), np.float32, ("batch", None)), info("b", (None, 2), np.float32, ("batch", None))
    model = mnn.load(graph(["y = Neg(a)", "z = Neg(b)"], [a, b], ["y", "z"]), "numpy")
    zeros = lambda *s: np.zeros(s, np.float32)  # noqa: E731
    model.run({"a": zeros(3, 2), "b": zeros(3, 2)})
    model.run({"a": zeros(5, 2), "b": zeros(5, 2)})
    with pytest.raises(mnn.InputError, match=r"'batch'.*input 'a' has 3, input 'b' has 5"):
        model.run({"a": zeros(3, 2), "b": zeros(5, 2)})


@pytest.mark.parametrize(("settings", "says"), [
    ({"backend": "abacus"}, "abacus"), ({"backend": []}, "at least one"), ({"threads": 0}, "threads=0"),
    ({"precision": "half"}, "precision='half'.*'low'"), ({"backend": "qnn"}, "pip install mnn-qnn"),
])
def test_wrong_settings_are_backend_errors(settings, says):
    with pytest.raises(mnn.BackendError, match=says):
        mnn.load(graph(["y = Neg(x)"], ["x"], ["y"]), **{"backend": "numpy", **settings})


def test_options_are_checked():
    with pytest.raises(mnn.BackendError, match=r"numpy.*'speed'"):
        mnn.load(graph(["y = Neg(x)"], ["x"], ["y"]), "numpy", options={"speed": 11})


def test_int32_input_of_an_int64_model():
    assert echo(dtype=I64).run({"x": np.array([1], I32)})["y"].tolist() == [1]


def test_declared_doubles_are_rounded_as_the_engine_computes_in_single():
    out = echo(dtype=np.float64).run({"x": np.array([0.1])})["y"]
    assert out == np.float32(0.1)
