"""Running models: shapes that change, outputs that last, many threads."""

import gc
import threading
import weakref

import numpy as np
import pytest
from graphs import F32, I32, I64, graph, info

import mnn_core as mnn
from mnn_core import Op


def arange(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


def flat() -> mnn.Graph:
    """y = reshape(x * x + x, shape of z); shapes from other inputs."""
    return graph(["q = Mul(x, x)", "s = Add(q, x)", "d = Shape(z)", "y = Reshape(s, d)"],
                 [info("x", (None, 2)), info("z")], ["y"])


def test_sizes_a_b_a_give_the_same_as_a_fresh_model():
    model = mnn.load(flat(), "numpy")
    a, b = {"x": arange(4, 2), "z": arange(8)}, {"x": arange(3, 2), "z": arange(1, 6, 1)}
    first, other, again = model.run(a)["y"], model.run(b)["y"], model.run(a)["y"]
    x = a["x"]
    np.testing.assert_array_equal(first, (x * x + x).reshape(8))
    np.testing.assert_array_equal(again, first)
    np.testing.assert_array_equal(other, (b["x"] ** 2 + b["x"]).reshape(1, 6, 1))


def test_shapes_that_do_not_fit_name_the_op_and_both_sizes_and_the_model_still_works():
    model = mnn.load(flat(), "numpy")
    with pytest.raises(mnn.ShapeError, match=r"test.Reshape 'y'.*float32\[4,2\].*"):
        model.run({"x": arange(4, 2), "z": arange(7)})
    assert model.run({"x": arange(4, 2), "z": arange(8)})["y"].shape == (8,)


def test_a_value_that_decides_a_shape_may_come_from_an_input():
    model = mnn.load(graph(["y = Reshape(x, shape)"], ["x", info("shape", (None,), I64)], ["y"]), "numpy")
    for shape in ((2, 6), (3, 4), (12,), (2, 6), (1, 1, 12)):
        assert model.run({"x": arange(12), "shape": np.array(shape)})["y"].shape == shape


def test_many_shapes_are_planned_and_forgotten():
    model = mnn.load(graph(["y = Neg(x)"], ["x"], ["y"]), "numpy")
    for n in range(40):
        assert model.run({"x": arange(n)})["y"].shape == (n,)
    assert len(model.memory().plans) <= 8


def test_outputs_own_their_memory_and_outlive_the_model():
    model = mnn.load(graph(["y = Neg(x)"], ["x"], ["y", "x", "c"], {"c": arange(3)}), "numpy")
    x = arange(3)
    one, two = model.run({"x": x}), model.run({"x": x + 1})
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
    np.testing.assert_array_equal(one["y"], [0, -1, -2])
    np.testing.assert_array_equal(two["y"], [-1, -2, -3])
    for out in one.values():
        out += 1  # writing to outputs changes nothing else
    np.testing.assert_array_equal(x, [0, 1, 2])
    np.testing.assert_array_equal(two["c"], [0, 1, 2])


def test_one_tensor_may_be_two_outputs_only_under_two_names():
    model = mnn.load(graph(["y = Neg(x)", Op("Identity", ["y"], ["z"])], ["x"], ["y", "z"]), "numpy")
    out = model.run({"x": arange(3)})
    out["y"][:] = 7
    np.testing.assert_array_equal(out["z"], [0, -1, -2])


def test_outputs_can_be_chosen_even_among_inner_tensors():
    model = mnn.load(flat(), "numpy")
    feeds = {"x": arange(2, 2), "z": arange(4)}
    assert list(model.run(feeds, ["q"])) == ["q"]
    np.testing.assert_array_equal(model.run(feeds, ["q", "y"])["q"], feeds["x"] ** 2)
    with pytest.raises(mnn.InputError, match=r"no output or tensor 'nothing'.*y"):
        model.run(feeds, ["nothing"])


def test_calling_takes_positions_and_names():
    model = mnn.load(graph(["y = Add(a, b)", "z = Neg(y)"], ["a", "b"], ["y", "z"]), "numpy")
    y, z = model(arange(2), b=arange(2))
    np.testing.assert_array_equal(y, [0, 2])
    np.testing.assert_array_equal(z, [0, -2])
    with pytest.raises(mnn.InputError, match="given twice"):
        model(arange(2), a=arange(2))
    with pytest.raises(mnn.InputError, match="3 inputs given"):
        model(arange(2), arange(2), arange(2))


def test_noise_is_not_folded_and_not_shared():
    model = mnn.load(graph(["y = Noise(c)", "z = Noise(c)"], [], ["y", "z"], {"c": arange(50)}), "numpy")
    one, two = model.run({}), model.run({})
    assert (one["y"] != one["z"]).any()
    assert (one["y"] != two["y"]).any()


def test_constants_are_folded_once():
    model = mnn.load(graph(["a = Add(c, c)", "b = Mul(a, a)", "y = Add(x, b)"], ["x"], ["y"], {"c": arange(3)}), "numpy")
    np.testing.assert_array_equal(model(arange(3)), [0, 5, 18])
    assert [p.type for p in model.placement()] == ["test.Add"]


def test_output_that_is_known_at_plan_time():
    model = mnn.load(graph(["s = Shape(x)"], ["x"], [info("s", (None,), I64)]), "numpy")
    for _ in range(2):
        out = model.run({"x": arange(2, 3)})["s"]
        assert (out.tolist(), out.dtype) == ([2, 3], I64)
        out += 1


def test_unknown_ops_are_an_error_only_when_they_are_run():
    model = mnn.load(graph(["y = Neg(x)", Op("acme.Nothing", ["x"], ["z"], name="odd")], ["x"], ["y", "z"]), "numpy")
    np.testing.assert_array_equal(model.run({"x": arange(2)}, ["y"])["y"], [0, -1])
    with pytest.raises(mnn.UnsupportedOpError, match=r"acme.Nothing 'odd'"):
        model.run({"x": arange(2)})


def test_a_failing_kernel_names_its_op():
    model = mnn.load(graph(["y = Fail(x)"], ["x"], ["y"]), "numpy")
    with pytest.raises(mnn.KernelError, match=r"y.*no luck"):
        model.run({"x": arange(2)})


def test_eight_threads_share_a_model():
    model = mnn.load(graph(["q = Mul(x, x)", "n = NonZero(q)", "s = Sum(n)", "y = Add(q, x)"], ["x"], ["y", "s"]), "numpy")
    wrong: list[object] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(40):
            x = rng.integers(-3, 4, rng.integers(1, 6)).astype(np.float32)
            try:
                out = model.run({"x": x})
                if not ((out["y"] == x * x + x).all() and out["s"] == np.stack(np.nonzero(x)).sum()):
                    wrong.append((x, out))
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_prepare_plans_ahead():
    model = mnn.load(graph(["y = Neg(x)"], [info("x", (None, 3))], ["y"]), "numpy")
    model.prepare({"x": (4, 3)})
    assert len(model.memory().plans) == 1
    model.run({"x": arange(4, 3)})
    assert len(model.memory().plans) == 1
    with pytest.raises(mnn.InputError, match="prepare"):
        model.prepare()


def test_declared_dtypes_come_out():
    model = mnn.load(graph(["y = Add(x, x)"], [info("x", (None,), I64)], [info("y", (None,), I64)]), "numpy")
    for _ in range(2):
        out = model.run({"x": np.array([1, 2])})["y"]
        assert (out.dtype, out.tolist()) == (I64, [2, 4])
    assert model.run({"x": np.array([1, 2], I32)})["y"].dtype == I64
    assert model.run({"x": [1, 2]})["y"].tolist() == [2, 4]


def test_placement_profile_and_memory_tell_what_happened():
    model = mnn.load(graph(["q = Mul(x, x)", "y = Add(q, x)"], ["x"], ["y"]), "numpy")
    profile = model.profile({"x": arange(1000)})
    assert [(s.op, s.type, s.backend) for s in profile.steps] == [("q", "test.Mul", "numpy"), ("y", "test.Add", "numpy")]
    assert 0 < sum(s.ms for s in profile.steps) <= profile.total_ms
    assert "test.Mul" in str(profile)
    assert [(p.op, p.backend) for p in model.placement()] == [("q", "numpy"), ("y", "numpy")]
    assert model.memory().arena == 4032  # q, rounded up to 64 bytes; y lies in output memory
    assert model.memory().weights == 0


def test_callbacks_see_every_op_of_the_graph_by_its_names():
    model = mnn.load(graph(["q = Mul(x, x)", Op("Identity", ["q"], ["r"], name="copy"), "n = NonZero(r)", "y = Add(n, n)"],
                           ["x"], ["y"]), "numpy")
    seen = []
    x = np.float32([2, 0, 3])

    def note(when):
        return lambda op, tensors: seen.append((when, op.type, {name: a.tolist() for name, a in tensors.items()}))

    out = model.run_with_callback({"x": x}, before=note("before"), after=note("after"))
    assert seen == [("before", "test.Mul", {"x": [2, 0, 3]}), ("after", "test.Mul", {"q": [4, 0, 9]}),
                    ("before", "Identity", {"q": [4, 0, 9]}), ("after", "Identity", {"r": [4, 0, 9]}),
                    ("before", "test.NonZero", {"r": [4, 0, 9]}), ("after", "test.NonZero", {"n": [[0, 2]]}),
                    ("before", "test.Add", {"n": [[0, 2]]}), ("after", "test.Add", {"y": [[0, 4]]})]
    assert out["y"].tolist() == [[0, 4]]
    with pytest.raises(mnn.CancelledError):
        model.run_with_callback({"x": x}, after=lambda op, t: False)


def test_models_come_and_go_without_growing_memory():
    import resource

    g = graph(["q = Mul(x, c)", "y = Add(q, x)"], [info("x", (None,), F32)], ["y"], {"c": arange(1000)})
    x = arange(1000)
    for _ in range(100):
        mnn.load(g, "numpy").run({"x": x})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(1000):
        mnn.load(g, "numpy").run({"x": x})
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4 * 1024
