"""Placement over several backends, one of which takes whole segments."""

import warnings
from typing import ClassVar

import numpy as np
import pytest
from graphs import graph, info

import mnn_core as mnn
from mnn_core import plugins
from mnn_core.backends import select
from mnn_core.ops import definition


class Wave(mnn.Backend):
    """A backend for segments that only multiplies and negates, and keeps account of what it compiled."""

    id = "wave"
    priority = 50
    option_names: ClassVar = {"depth": "how deep"}
    compiled: ClassVar[list[list[str]]] = []

    @classmethod
    def probe(cls):
        return [mnn.Device("wave", "a wave")]

    def supports(self, op, inputs, outputs):
        if op.type in ("test.Mul", "test.Neg"):
            return mnn.Support(True)
        return mnn.Support(False, f"a wave cannot {op.type}")

    def compile(self, segment):
        self.compiled.append([op.outputs[0] for op in segment.ops])
        return Waves(segment)


class Waves(mnn.Executable):
    def __init__(self, segment):
        self.segment = segment

    def run(self, inputs):
        env = {**self.segment.constants, **dict(zip(self.segment.inputs, inputs, strict=True))}
        for op in self.segment.ops:
            env[op.outputs[0]] = definition(op).compute(op, *(env[n] for n in op.inputs))
        return [env[n] for n in self.segment.outputs]


@pytest.fixture
def wave(monkeypatch):
    found = {"wave": Wave, "numpy": plugins.backend_class("numpy")}
    monkeypatch.setattr(plugins, "open_backend", lambda name: (found[name], found[name].probe()))
    monkeypatch.setattr(plugins, "cpu_backends", lambda: ([], "no CPU backend: pip install mnn-cpu-x86"))
    Wave.compiled = []
    return Wave


LINES = ["a = Mul(x, x)", "b = Add(x, x)", "c = Neg(a)", "d = Neg(b)", "y = Mul(c, d)"]


def test_segments_are_as_long_as_can_be_and_agree(wave):
    g = graph(LINES, ["x"], ["y"])
    model = mnn.load(g, "wave")
    with pytest.warns(mnn.PlacementWarning, match=r"1 of 5 ops.*'wave'.*test.Add on numpy.*a wave cannot test\.Add") as told:
        y = model(np.float32([1, 2]))
    assert told[0].filename == __file__
    np.testing.assert_array_equal(y, [2, 16])
    assert wave.compiled == [["a", "c"], ["d", "y"]]
    assert {p.op: (p.backend, p.reasons) for p in model.placement()}["b"] == ("numpy", {"wave": "a wave cannot test.Add"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is told once
        model(np.float32([1, 2, 3]))


def test_strict_makes_it_an_error(wave):
    model = mnn.load(graph(LINES, ["x"], ["y"]), "wave", strict=True)
    with pytest.raises(mnn.BackendError, match=r"test\.Add on numpy.*strict=True"):
        model(np.float32([1]))
    whole = mnn.load(graph(["y = Mul(x, x)"], ["x"], ["y"]), "wave", strict=True)
    assert whole(np.float32([3])) == 9


def test_options_go_to_the_backend_that_was_asked_for(wave):
    mnn.load(graph(LINES, ["x"], ["y"]), "wave", options={"depth": 3})
    with pytest.raises(mnn.BackendError, match=r"wave.*'height'.*'depth': how deep"):
        mnn.load(graph(LINES, ["x"], ["y"]), "wave", options={"height": 3})


def test_a_list_is_an_order(wave):
    model = mnn.load(graph(LINES, ["x"], ["y"]), ["numpy", "wave"])
    model(np.float32([1]))
    assert {p.backend for p in model.placement()} == {"numpy"}
    assert wave.compiled == []


def test_outputs_and_constants_of_a_foreign_segment_are_the_callers_own(wave):
    k = np.float32([5])
    g = graph(["a = Mul(x, k)", "b = Neg(a)"], [info("x")], ["a", "b", "k"], {"k": k})
    model = mnn.load(g, "wave")
    one = model.run({"x": np.float32([1])})
    two = model.run({"x": np.float32([2])})
    for out in two.values():
        out += 100
    assert (one["a"], one["b"], one["k"], k) == (5, -5, 5, 5)


def test_profile_has_foreign_segments_too(wave):
    model = mnn.load(graph(["a = Mul(x, x)", "y = Neg(a)"], ["x"], ["y"]), "wave")
    assert [s.backend for s in model.profile({"x": np.float32([1])}).steps] == ["wave"]


def test_without_a_cpu_backend_numpy_runs_and_one_warning_names_the_package(wave, monkeypatch):
    monkeypatch.setattr(select, "_told", set())
    g = graph(["y = Neg(x)"], ["x"], ["y"])
    with pytest.warns(RuntimeWarning, match="pip install mnn-cpu-x86"):
        mnn.load(g)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mnn.load(g).backends == ["numpy"]
