"""Activations that are spelled out: what becomes one op, in which spellings, and what is left."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from test_passes import F, binary, graph, op, random, rewritten, unary

from mnn_core import Op
from mnn_core.passes.clip import clip
from mnn_core.passes.gelu import gelu
from mnn_core.passes.sigmoid import sigmoid
from mnn_core.passes.softplus import softplus
from mnn_core.passes.swish import swish

X = {"x": random(4, 5) * 3}


@pytest.mark.parametrize("order", ["(x*half)*gate", "(x*gate)*half", "x*(gate*half)"])
def test_gelu(order: str) -> None:
    head = [binary("REALDIV", "x root", "d"), unary("ERF", "d", "e"), binary("ADD", "e one", "g")]
    tail = {"(x*half)*gate": [binary("MUL", "x half", "h"), binary("MUL", "h g", "y")],
            "(x*gate)*half": [binary("MUL", "x g", "h"), binary("MUL", "h half", "y")],
            "x*(gate*half)": [binary("MUL", "g half", "h"), binary("MUL", "x h", "y")]}[order]
    g = graph([*head, *tail], X, root=F(np.sqrt(2)), one=F(1), half=F(0.5))
    assert rewritten(g, gelu, X) == ["UnaryOp"]


#: The argument of tanh, from x to "t".
CUBES = {
    "pow": [binary("POW", "x three", "p"), binary("MUL", "p small", "q"), binary("ADD", "x q", "s"),
            binary("MUL", "s root", "t")],
    "x*x*x": [binary("MUL", "x x", "p"), binary("MUL", "p x", "q"), binary("MUL", "small q", "r"), binary("ADD", "r x", "s"),
              binary("MUL", "root s", "t")],
    "fast": [binary("MUL", "x root", "u"), binary("MUL", "x small", "v"), binary("MUL", "v x", "w"),
             binary("ADD", "w one", "s"),
             binary("MUL", "u s", "t")],
    "square": [unary("SQUARE", "x", "p"), binary("MUL", "p small", "q"), binary("ADD", "one q", "r"), binary("MUL", "r x", "s"),
               binary("MUL", "s root", "t")],
}


def tanh_form(cube: str, **numbers: float) -> tuple[list, dict[str, np.ndarray]]:
    values = {"three": 3.0, "small": 0.044715, "root": 0.7978845608, "one": 1.0, "half": 0.5, **numbers}
    ops = [*CUBES[cube], unary("TANH", "t", "h"), binary("ADD", "one h", "g"), binary("MUL", "x half", "l"),
           binary("MUL", "l g", "y")]
    return ops, {k: F(v) for k, v in values.items()}


@pytest.mark.parametrize("cube", CUBES)
def test_gelu_by_tanh(cube: str) -> None:
    ops, numbers = tanh_form(cube)
    g = graph(ops, X, **numbers)
    assert rewritten(g, gelu, X) == ["UnaryOp"]
    assert g.ops[0]["opType"] == "GELU"


@pytest.mark.parametrize("number", [{"three": 2.0}, {"small": 0.04}, {"root": 0.8}, {"one": 1.5}, {"half": 1.0}], ids=str)
def test_other_numbers_are_no_gelu(number: dict[str, float]) -> None:
    ops, numbers = tanh_form("pow", **number)
    assert len(rewritten(graph(ops, X, **numbers), gelu, X)) == 8


def test_gelu_of_a_product() -> None:
    ops, numbers = tanh_form("x*x*x")
    g = graph([binary("MUL", "a b", "x"), *ops], {"a": random(4, 5), "b": random(4, 5, seed=1)}, **numbers)
    assert rewritten(g, gelu, {"a": random(4, 5), "b": random(4, 5, seed=1)}) == ["BinaryOp", "UnaryOp"]


def test_a_gate_that_is_an_output_is_no_gelu() -> None:
    ops, numbers = tanh_form("fast")
    assert len(rewritten(graph(ops, X, "y g", **numbers), gelu, X)) == 9


@pytest.mark.parametrize("form", ["(x*gate)/6", "x*(gate/6)", "hard sigmoid", "(sixth*x)*gate", "clip at 1 of all", "silu"])
def test_swish(form: str) -> None:
    gate = [binary("ADD", "x three", "a"), op("ReLU6", "a", "g")]
    tail = {"(x*gate)/6": [*gate, binary("MUL", "x g", "m"), binary("REALDIV", "m six", "y")],
            "x*(gate/6)": [*gate, binary("MUL", "g sixth", "m"), binary("MUL", "m x", "y")],
            "hard sigmoid": [binary("MUL", "x sixth", "l"), binary("ADD", "l half", "a"),
                             op("ReLU6", "a", "g", maxValue=1.0), binary("MUL", "x g", "y")],
            "(sixth*x)*gate": [*gate, binary("MUL", "sixth x", "m"), binary("MUL", "g m", "y")],
            "clip at 1 of all": [binary("ADD", "three x", "a"), binary("REALDIV", "a six", "l"),
                                 op("ReLU6", "l", "g", maxValue=1.0),
                                 binary("MUL", "g x", "y")],
            "silu": [unary("SIGMOID", "x", "g"), binary("MUL", "g x", "y")]}[form]
    x = {"x": random(4, 5) * 4}
    g = graph(tail, x, three=F(3), six=F(6), sixth=F(1 / 6), half=F(0.5))
    assert rewritten(g, swish, x) == ["UnaryOp"]


def test_a_gate_of_something_else_is_no_swish() -> None:
    x = {"x": random(4, 5), "z": random(4, 5, seed=1)}
    g = graph([unary("SIGMOID", "z", "g"), binary("MUL", "x g", "y")], x)
    assert rewritten(g, swish, x) == ["UnaryOp", "BinaryOp"]


@pytest.mark.parametrize("bad", [{"three": 2.5}, {"six": 5.0}, {"sixth": 0.2}], ids=str)
def test_other_numbers_are_no_hard_swish(bad: dict[str, float]) -> None:
    numbers = {k: F(v) for k, v in {"three": 3.0, "six": 6.0, "sixth": 1 / 6, **bad}.items()}
    last = binary("MUL", "m sixth", "y") if "sixth" in bad else binary("REALDIV", "m six", "y")
    ops = [binary("ADD", "x three", "a"), op("ReLU6", "a", "g"), binary("MUL", "x g", "m"), last]
    assert len(rewritten(graph(ops, X, **numbers), swish, X)) == 4


def test_gates_that_are_outputs_stay() -> None:
    g = graph([unary("SIGMOID", "x", "g"), binary("MUL", "g x", "y")], X, "y g")
    assert rewritten(g, swish, X) == ["UnaryOp", "BinaryOp"]
    ops = [binary("ADD", "x three", "a"), op("ReLU6", "a", "g"), binary("MUL", "x g", "m"), binary("REALDIV", "m six", "y")]
    assert len(rewritten(graph(ops, X, "y g", three=F(3), six=F(6)), swish, X)) == 4


@pytest.mark.parametrize(("ops", "found"), [
    ([binary("MAXIMUM", "x zero", "t"), binary("MINIMUM", "six t", "y")], ["ReLU6"]),
    ([binary("MINIMUM", "x six", "t"), binary("MAXIMUM", "t zero", "y")], ["ReLU6"]),
    ([op("ReLU", "x", "t"), binary("MINIMUM", "t six", "y")], ["ReLU6"]),
    ([binary("MINIMUM", "x six", "t"), op("ReLU", "t", "y")], ["ReLU6"]),
    ([binary("MAXIMUM", "zero x", "y")], ["ReLU"]),
    ([op("ReLU6", "x", "t", minValue=-1.0, maxValue=1.5), op("ReLU6", "t", "y", minValue=-2.0, maxValue=0.5)], ["ReLU6"]),
    ([binary("MAXIMUM", "x six", "t"), binary("MINIMUM", "zero t", "y")], ["ReLU6"]),
    ([binary("MAXIMUM", "x six", "y")], ["BinaryOp"]),
    ([binary("MINIMUM", "x zero", "y")], ["BinaryOp"]),
    ([op("ReLU", "x", "t", slope=0.1), binary("MINIMUM", "t six", "y")], ["ReLU", "BinaryOp"]),
    ([op("ReLU6", "x", "t", minValue=2.0, maxValue=1.0), binary("MINIMUM", "t six", "y")], ["ReLU6", "BinaryOp"]),
    ([binary("MAXIMUM", "x row", "y")], ["BinaryOp"]),
])
def test_clip(ops: list, found: list[str]) -> None:
    assert rewritten(graph(ops, X, zero=F(0), six=F(2.5), row=np.zeros(5, F)), clip, X) == found


def test_cuts_that_stay() -> None:
    whole = {"x": np.arange(-5, 5, dtype=np.int32)}
    assert rewritten(graph([binary("MAXIMUM", "x zero", "y")], whole, zero=np.int32(0)), clip, whole) == ["BinaryOp"]
    read_twice = [op("ReLU", "x", "t"), binary("MINIMUM", "t six", "y")]
    assert rewritten(graph(read_twice, X, "y t", six=F(2)), clip, X) == ["ReLU", "BinaryOp"]


SIGMOIDS = {
    "division": [unary("NEG", "x", "n"), unary("EXP", "n", "e"), binary("ADD", "one e", "d"), binary("REALDIV", "one d", "y")],
    "reciprocal": [binary("MUL", "x minus", "n"), unary("EXP", "n", "e"), binary("ADD", "e one", "d"),
                   unary("RECIPROCAL", "d", "y")],
    "silu": [unary("NEG", "x", "n"), unary("EXP", "n", "e"), binary("ADD", "e one", "d"), binary("REALDIV", "x d", "y")],
    "tanh": [binary("MUL", "x half", "n"), unary("TANH", "n", "e"), binary("ADD", "e one", "d"), binary("MUL", "half d", "y")],
}


@pytest.mark.parametrize("form", SIGMOIDS)
def test_sigmoid(form: str) -> None:
    numbers = {"one": F(1), "minus": F(-1), "half": F(0.5)}
    g = graph(deepcopy(SIGMOIDS[form]), X, **numbers)
    assert rewritten(g, sigmoid, X) == ["UnaryOp"]
    assert g.ops[0]["opType"] == ("SILU" if form == "silu" else "SIGMOID")
    for bad in ("one", "half" if form == "tanh" else "minus"):
        if bad != "minus" or form == "reciprocal":
            other = graph(deepcopy(SIGMOIDS[form]), X, **{**numbers, bad: F(0.75)})
            assert len(rewritten(other, sigmoid, X)) == 4
    assert len(rewritten(graph(deepcopy(SIGMOIDS[form]), X, "y e", **numbers), sigmoid, X)) == 4


SOFTPLUS = [unary("ABS", "x", "a"), unary("NEG", "a", "n"), unary("EXP", "n", "e"), unary("LOG1P", "e", "l")]


@pytest.mark.parametrize("positive", [binary("MAXIMUM", "zero x", "p"), op("ReLU", "x", "p")], ids=["maximum", "relu"])
def test_softplus(positive: Op) -> None:
    x = {"x": np.linspace(-60, 60, 77, dtype=F)}
    g = graph([*SOFTPLUS, positive, binary("ADD", "p l", "y")], x, zero=F(0))
    assert rewritten(g, softplus, x) == ["UnaryOp"]
    assert g.ops[0]["opType"] == "BNLL"


def test_other_sums_are_no_softplus() -> None:
    for positive, outputs in ((binary("MAXIMUM", "x half", "p"), "y"), (op("ReLU", "a", "p"), "y"),
(op("ReLU", "x", "p"), "y l")):
        g = graph([*SOFTPLUS, positive, binary("ADD", "p l", "y")], X, outputs, half=F(0.5))
        assert len(rewritten(g, softplus, X)) == 6


def test_softplus_with_a_straight_line() -> None:
    """torch.nn.functional.softplus as PyTorch's newer exporter writes it."""
    x = {"x": np.linspace(-60, 60, 77, dtype=F)}
    for limit, found in ((20, ["UnaryOp"]), (1, ["UnaryOp", "BinaryOp", "Select"])):
        ops = [unary("BNLL", "x", "s"), binary("GREATER", "x limit", "c"), op("Select", "c x s", "y")]
        assert rewritten(graph(ops, x, limit=F(limit)), softplus, x) == found
