"""If, Loop and data-dependent shapes: branches and bodies planned when what decides them is known."""

import numpy as np
import pytest
from graphs import I32, I64, graph, info

import mnn_core as mnn
from mnn_core import Op

INT = [info(n, (), I32) for n in "ics"]


def loop(body_ops, body_outputs, n_scans=1, *, more=(), trips=True, subgraphs=None, constants=None):
    """A model of one ONNX Loop: state s, trip count M, condition cond."""
    body = graph(body_ops, [*INT, *more], body_outputs, constants, subgraphs, name="body")
    outs = ["final", *(m.name + "_out" for m in more), *(f"scan{k}" for k in range(n_scans))]
    ins = ["M" if trips else "", "cond", "s0", *(m.name + "_in" for m in more)]
    op = Op("While", ins, outs, {"body_graph": "body"}, name="loop")
    inputs = [info("M", (), I64)] * trips + [info("cond", (), np.bool_), info("s0", (), I64)]
    return graph([op], [*inputs, *(info(m.name + "_in", m.shape, m.dtype) for m in more)], outs, subgraphs={"body": body})


def test_loop_sums_scans_and_stops():
    model = mnn.load(loop(["s1 = Add(s, i)"], ["c", "s1", "s1"]), "numpy")
    out = model.run({"M": 5, "cond": True, "s0": 10})
    assert (out["final"], out["scan0"].tolist()) == (20, [10, 11, 13, 16, 20])
    for none in ({"M": 0, "cond": True}, {"M": 5, "cond": False}):
        out = model.run({**none, "s0": 10})
        assert out["final"] == 10
        assert (out["scan0"].shape, out["scan0"].dtype) == ((0,), I32)


def test_loop_without_trip_count_ends_by_its_condition():
    model = mnn.load(loop(["s1 = Add(s, s)", "c1 = Less(s1, limit)"], ["c1", "s1", "s"], trips=False,
                          constants={"limit": np.array(100, I32)}), "numpy")
    out = model.run({"cond": True, "s0": 3})
    assert (out["final"], out["scan0"].tolist()) == (192, [3, 6, 12, 24, 48, 96])


def test_scan_of_no_iterations_has_the_width_of_one():
    model = mnn.load(loop(["w = Add(x, x)"], ["c", "s", "x", "w"], more=[info("x", (None, 3))]), "numpy")
    x = np.ones((2, 3), np.float32)
    out = model.run({"M": 0, "cond": True, "s0": 0, "x_in": x})
    assert (out["scan0"].shape, out["scan0"].dtype) == ((0, 2, 3), np.float32)
    np.testing.assert_array_equal(out["x_out"], x)
    out["x_out"][:] = 0
    assert x.all()
    assert model.run({"M": 4, "cond": True, "s0": 0, "x_in": x})["scan0"].shape == (4, 2, 3)


def test_names_of_a_body_hide_nothing_outside():
    body = graph(["x = Add(s, s)"], INT, ["c", "x"], name="body")
    repeat = Op("While", ["M", "cond", "s0"], ["s"], {"body_graph": "body"})
    g = graph(["x = Neg(a)", repeat, "y = Add(x, s)"],
              [info("a", (), I32), info("M", (), I32)], ["y", "x"],
              {"cond": np.array(1, I32), "s0": np.array(1, I32)}, {"body": body})
    out = mnn.load(g, "numpy").run({"a": 5, "M": 3})
    assert (out["y"], out["x"]) == (3, -5)


def test_a_name_that_is_input_and_constant_of_a_body_is_refused():
    model = mnn.load(loop(["s1 = Add(s, i)"], ["c", "s1", "s1"], constants={"s": np.array(1, I32)}), "numpy")
    with pytest.raises(mnn.GraphError, match=r"'s' is both an input and a constant of its body"):
        model.run({"M": 1, "cond": True, "s0": 0})


def test_a_body_that_does_not_fit_its_loop_is_refused():
    model = mnn.load(loop(["s1 = Add(s, i)"], ["c", "s1"], n_scans=2), "numpy")
    with pytest.raises(mnn.GraphError, match=r"'loop'.*has 3 inputs and 3 outputs; its body 'body' has 3 and 2"):
        model.run({"M": 1, "cond": True, "s0": 0})


def test_state_may_grow_from_trip_to_trip():
    """The body's shapes change in every iteration."""
    body = graph(["s1 = Add(s, i)", "n = NonZero(x)", "x1 = Add(n, n)", "k = Shape(x1)"], [*INT, info("x", None, I32)],
                 ["c", "s1", "x1", "k"], name="body")
    g = graph([Op("While", ["M", "cond", "s0", "x0"], ["s", "x", "ks"], {"body_graph": "body"})],
              [info("M", (), I32), info("x0", (None,), I32)], ["x", "ks"],
              {"cond": np.array(1, I32), "s0": np.array(0, I32)}, {"body": body})
    model = mnn.load(g, "numpy")
    x, shapes = np.array([3, 0, 5, 7], I32), []
    for _ in range(2):
        x = (np.stack(np.nonzero(x)) * 2).astype(I32)
        shapes.append(list(x.shape))
    out = model.run({"M": 2, "x0": np.array([3, 0, 5, 7], I32)})
    np.testing.assert_array_equal(out["x"], x)
    assert out["ks"].tolist() == shapes


def test_loop_in_loop():
    inner = graph(["s1 = Add(s, one)"], INT, ["c", "s1"], {"one": np.array(1, I32)}, name="inner")
    outer = graph([Op("While", ["i", "c", "s"], ["s1"], {"body_graph": "inner"}, name="inside")], INT, ["c", "s1", "s1"],
                  subgraphs={"inner": inner}, name="outer")
    g = graph([Op("While", ["M", "c", "s0"], ["s", "scan"], {"body_graph": "outer"})], [info("M", (), I32)], ["s", "scan"],
              {"c": np.array(1, I32), "s0": np.array(0, I32)}, {"outer": outer})
    assert mnn.load(g, "numpy").run({"M": 5})["scan"].tolist() == [0, 1, 3, 6, 10]


def choice(cond_ops=("c = Less(a, b)",), *, then, other, feeds, outputs, inputs, aliases_outputs=None, n=1):
    attrs = {"then_graph": "then", "else_graph": "else", "aliases_inputs": ({"data": ()}, *({"data": f} for f in feeds))}
    if aliases_outputs:
        attrs["aliases_outputs"] = tuple({"data": d} for d in aliases_outputs)
    op = Op("If", ["c", *inputs], outputs, attrs, name="if")
    return graph([*cond_ops, op], [info("a", ()), info("b", ()), *map(info, inputs)], outputs,
                 subgraphs={"then": then, "else": other})


def test_branches_of_different_shapes():
    then = graph(["r = Add(p, p)"], ["p"], ["r"], name="then")
    other = graph(["n = NonZero(q)"], ["q"], ["n"], name="else")
    model = mnn.load(choice(then=then, other=other, feeds=[("p", "q")], outputs=["y"], inputs=["x"]), "numpy")
    x = np.float32([0, 1, 0, 2])
    for _ in range(2):
        np.testing.assert_array_equal(model.run({"a": 1, "b": 2, "x": x})["y"], x + x)
        np.testing.assert_array_equal(model.run({"a": 2, "b": 1, "x": x})["y"], [[1, 3]])


def test_only_the_branch_taken_is_planned():
    then = graph(["r = Add(p, p)"], ["p"], ["r"], name="then")
    other = graph([Op("acme.Nothing", ["p"], ["r"])], ["p"], ["r"], name="else")
    model = mnn.load(choice(then=then, other=other, feeds=[("p",)], outputs=["y"], inputs=["x"]), "numpy")
    assert model.run({"a": 1, "b": 2, "x": [1.0]})["y"] == 2
    with pytest.raises(mnn.UnsupportedOpError, match=r"acme\.Nothing"):
        model.run({"a": 2, "b": 1, "x": [1.0]})


def test_a_branch_that_passes_inputs_and_constants_through_and_swaps():
    then = graph([], ["p", "q"], ["q", "p"], {"k": np.float32([7])}, name="then")
    other = graph(["m = Neg(p)"], ["p", "q"], ["m", "m"], {"k": np.float32([8])}, name="else")
    model = mnn.load(choice(then=then, other=other, feeds=[("p",), ("q",)], outputs=["y", "z"], inputs=["u", "v"],
                            aliases_outputs=[("q", "m"), ("k", "k")]), "numpy")
    u, v = np.float32([1]), np.float32([2])
    one = model.run({"a": 1, "b": 2, "u": u, "v": v})
    two = model.run({"a": 2, "b": 1, "u": u, "v": v})
    assert (one["y"], one["z"], two["y"], two["z"]) == (2, 7, -1, 8)


def test_branch_names_that_the_graph_uses_as_well():
    then = graph(["x = Neg(p)", "c = Neg(x)", "r = Neg(c)"], ["p"], ["r"], name="then")
    other = graph(["a = Add(p, p)", "r = Add(a, a)"], ["p"], ["r"], name="else")
    model = mnn.load(choice(then=then, other=other, feeds=[("p",)], outputs=["y"], inputs=["x"]), "numpy")
    assert model.run({"a": 1, "b": 2, "x": [3.0]})["y"] == -3
    assert model.run({"a": 2, "b": 1, "x": [3.0]})["y"] == 12


def test_if_in_loop_and_loop_in_if():
    """Adds while the sum is small, then takes a branch with a loop that doubles."""
    double = graph(["s1 = Add(s, s)"], INT, ["c", "s1"], name="double")
    grow = graph([Op("While", ["two", "yes", "v"], ["w"], {"body_graph": "double"})], [info("v", (), I32)], ["w"],
                 {"two": np.array(2, I32), "yes": np.array(1, I32)}, {"double": double}, name="grow")
    plus = graph(["w = Add(v, one)"], [info("v", (), I32)], ["w"], {"one": np.array(1, I32)}, name="plus")
    pick = Op("If", ["small", "s"], ["s1"], {"then_graph": "plus", "else_graph": "grow",
                                             "aliases_inputs": ({"data": ()}, {"data": ("v",)})}, name="pick")
    g = loop(["small = Less(s, limit)", pick], ["c", "s1", "s1"], constants={"limit": np.array(3, I32)},
             subgraphs={"grow": grow, "plus": plus})
    assert mnn.load(g, "numpy").run({"M": 6, "cond": True, "s0": 0})["scan0"].tolist() == [1, 2, 3, 12, 48, 192]


def test_tensorflow_while():
    condition = graph(["go = Less(n, top)"], [info("n", (), I32), info("top", (), I32)], ["go"], name="cond")
    body = graph(["n1 = Add(n, one)", "acc1 = Add(acc, n)"], [info("n", (), I32), info("acc", (), I32)], ["n1", "acc1"],
                 {"one": np.array(1, I32)}, name="body")
    op = Op("While", ["n0", "acc0", "limit"], ["count", "sum"], {
        "cond_graph": "cond", "body_graph": "body",
        "aliases_inputs": ({"data": ("n",)}, {"data": ("acc",)}, {"data": ("top",)}),
        "aliases_updates": ({"data": ("n1", "n")}, {"data": ("acc1", "acc")}), "aliases_outputs": ("n1", "acc1")}, name="while")
    g = graph([op], [info("n0", (), I32), info("acc0", (), I32), info("limit", (), I32)], ["count", "sum"],
              subgraphs={"cond": condition, "body": body})
    model = mnn.load(g, "numpy")
    out = model.run({"n0": 0, "acc0": 100, "limit": 5})
    assert (out["count"], out["sum"]) == (5, 110)
    out = model.run({"n0": 9, "acc0": 100, "limit": 5})
    assert (out["count"], out["sum"]) == (9, 100)


def test_stages_follow_each_other():
    """Each NonZero's result decides the next shapes."""
    g = graph(["n = NonZero(x)", "k = Shape(n)", "m = Add(n, n)", "o = NonZero(m)", "t = Sum(o)", "v = Int(x)", "j = Sum(v)",
               "r = Add(o, j)"], ["x"], ["k", "o", "t", "r"])
    model = mnn.load(g, "numpy")
    for x in (np.float32([0, 1, 2, 0]), np.float32([[1, 1], [0, 1]]), np.float32([0]), np.float32([0, 1, 2, 0])):
        n = np.stack(np.nonzero(x))
        o = np.stack(np.nonzero(n * 2))
        out = model.run({"x": x})
        assert out["k"].tolist() == list(n.shape)
        np.testing.assert_array_equal(out["o"], o)
        assert out["t"] == o.sum()
        np.testing.assert_array_equal(out["r"], o + int(x.sum()))


def test_a_shape_computed_from_data_splits_the_plan():
    g = graph(["s = Sum(x)", "d = Int(s)", "e = Reshape(d, one)", "y = Reshape(z, e)"], ["x", "z"], ["y"],
              {"one": np.array([1], I32)})
    model = mnn.load(g, "numpy")
    assert model.run({"x": np.float32([2, 4]), "z": np.zeros((2, 3), np.float32)})["y"].shape == (6,)
    assert model.run({"x": np.float32([4, 4]), "z": np.zeros((2, 4), np.float32)})["y"].shape == (8,)
    with pytest.raises(mnn.ShapeError, match=r"test\.Reshape 'y'"):
        model.run({"x": np.float32([4, 4]), "z": np.zeros((2, 3), np.float32)})
