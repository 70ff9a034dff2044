"""Custom ops that misbehave: the error names the op, and what they keep stays as it was."""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from graphs import F32, graph, info

import mnn_core as mnn
from mnn_core import Op
from mnn_core.ir import Spec

KEPT: list[np.ndarray] = []


def keep(op: Op, x: np.ndarray) -> np.ndarray:
    y = x + 1
    KEPT.extend((x, y))
    return y


def scribble(op: Op, x: np.ndarray) -> np.ndarray:
    x[...] = 9
    return x


FAULTS: dict[str, tuple[Callable[..., Any], str]] = {
    "Raise": (lambda op, x: x[0] / {}[0], "KeyError"), "Shape": (lambda op, x: x[:1], r"float32\[1, 3\].*float32\[2, 3\]"),
    "Dtype": (lambda op, x: x.astype(np.int32), "int32.*float32"), "Wide": (lambda op, x: x.astype(float), "float64.*float32"),
    "Nothing": (lambda op, x: None, "gave a NoneType, not an array"), "Scribble": (scribble, "read-only"),
}
GOOD: dict[str, tuple[Callable[..., Any], Any]] = {
    "Keep": (keep, lambda a: a + 1), "Same": (lambda op, x: x, lambda a: a),
    "Strided": (lambda op, x: x[:, ::-1], lambda a: a[:, ::-1]), "Fortran": (lambda op, x: np.asfortranarray(x), lambda a: a),
}


@pytest.fixture(scope="module", autouse=True)
def ops() -> None:
    for name, (compute, _) in {**FAULTS, **GOOD}.items():
        mnn.register_op(f"faulty.{name}", infer=lambda op, ins: [Spec(ins[0].shape, F32)])(compute)


def net(name: str) -> mnn.Graph:
    return graph(["a = Neg(x)", Op(f"faulty.{name}", ["a"], ["b"], name="odd"), "y = Neg(b)"],
                 [info("x", (None, 3))], ["y", "b"])


X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("name", FAULTS)
def test_faults_name_the_op(name):
    model = mnn.load(net(name), "numpy")
    for _ in range(2):
        with pytest.raises(mnn.KernelError, match=f"odd.*{FAULTS[name][1]}"):
            model.run({"x": X})


@pytest.mark.parametrize("name", GOOD)
def test_any_array_that_an_op_gives_is_taken(name):
    model = mnn.load(net(name), "numpy")
    for x in (X, X + 1):
        out = model.run({"x": x})
        np.testing.assert_array_equal(out["b"], GOOD[name][1](-x))
        np.testing.assert_array_equal(out["y"], -out["b"])


def test_arrays_that_an_op_keeps_outlive_run_and_model():
    KEPT.clear()
    model = mnn.load(net("Keep"), "numpy")
    first = model.run({"x": X})["b"]
    model.run({"x": X + 5})
    del model
    gc.collect()
    np.testing.assert_array_equal(KEPT[0], -X)
    np.testing.assert_array_equal(KEPT[1], 1 - X)
    first[:] = 7
    np.testing.assert_array_equal(KEPT[1], 1 - X)
    KEPT.clear()
