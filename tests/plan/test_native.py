"""Plans with native kernels: layouts, conversions, in-place work and the NumPy kernels between them."""

import random
import subprocess

import numpy as np
import pytest
from graphs import graph, info

import mnn_core as mnn
from mnn_core import plugins
from mnn_core.ops import definition

SOURCE = __file__.replace("test_native.py", "toy_kernels.c")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("toy") / "toy.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", f"-I{mnn.get_include()}", SOURCE, "-o", path, "-lm"], check=True)
    return str(path)


@pytest.fixture
def toy(library, monkeypatch):
    class Toy(mnn.NativeBackend):
        id = "toy"
        library_path = library

    found = {"toy": Toy, "numpy": plugins.backend_class("numpy")}
    monkeypatch.setattr(plugins, "open_backend", lambda name: (found[name], found[name].probe()))
    return Toy


def load(lines, outputs, constants=None):
    return mnn.load(graph(lines, [info("x", None)], outputs, constants), "toy")


X = np.random.default_rng(0).standard_normal((2, 6, 3, 5)).astype(np.float32)


def kernels(model):
    return [(s.op, s.kernel) for s in model.profile({"x": X}).steps]


def test_followers_stay_blocked_and_results_come_out_plain(toy):
    model = load(["a = Mul(x, x)", "b = Neg(a)", "c = Add(b, a)", "y = Mul(c, b)"], ["y"])
    with np.errstate(all="ignore"):
        a = X * X
        np.testing.assert_array_equal(model(X), (-a + a) * -a)
    assert kernels(model) == [("x", "to_blocks"), ("a", "mul_b"), ("b", "neg_f"), ("c", "add_f"), ("y", "mul_b"),
                              ("y", "from_blocks")]


def test_plain_work_is_not_converted(toy):
    model = load(["a = Neg(x)", "y = Add(a, x)"], ["y"])
    np.testing.assert_array_equal(model(X), np.zeros_like(X))
    assert kernels(model) == [("a", "neg_f"), ("y", "add_f")]


def test_in_place_chain_needs_no_arena(toy):
    model = load(["a = Neg(x)", "b = Neg(a)", "y = Neg(b)"], ["y"])
    kept = X.copy()
    np.testing.assert_array_equal(model(X), -X)
    np.testing.assert_array_equal(X, kept)
    assert model.memory().arena == 0


@pytest.mark.filterwarnings("ignore::mnn_core.PlacementWarning")
def test_what_kernels_decline_runs_on_numpy_with_the_reason(toy):
    model = load(["a = Mul(x, x)", "y = Add(a, k)"], ["y"], {"k": np.float32([2])})
    np.testing.assert_array_equal(model(X), X * X + 2)
    placed = model.placement()
    assert [(p.backend, p.kernel) for p in placed] == [("toy", "mul_b"), ("numpy", "python")]
    assert placed[1].reasons == {"toy": "add_f: ranks differ"}


def test_a_tensor_in_both_layouts_is_converted_once(toy):
    model = load(["a = Mul(x, x)", "s = Sum(a)", "t = Sum(a)", "y = Mul(a, x)"], ["y", "s", "t", "a"])
    with pytest.warns(mnn.PlacementWarning, match=r"2 test\.Sum on numpy"):
        out = model.run({"x": X})
    np.testing.assert_array_equal(out["y"], X * X * X)
    assert [k for _, k in kernels(model)].count("from_blocks") == 2  # a, and y
    assert [k for _, k in kernels(model)].count("to_blocks") == 1


def test_wrong_isa_is_refused(toy):
    with pytest.raises(mnn.BackendError, match=r"toy.*no instruction set 'avx9'"):
        mnn.load(graph(["y = Neg(x)"], ["x"], ["y"]), "toy", options={"isa": "avx9"})


@pytest.mark.filterwarnings("ignore::mnn_core.PlacementWarning")
@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_agree_with_numpy(toy, seed):
    rng = random.Random(seed)
    names, lines = ["x", "k"], []
    for i in range(rng.randint(1, 12)):
        kind = rng.choice(["Mul", "Mul", "Add", "Neg", "Reshape"])
        args = [rng.choice(names) for _ in range(1 if kind in ("Neg", "Reshape") else 2)]
        if kind == "Reshape":
            lines += [f"r{i} = Reshape({args[0]}, flat)", f"w{i} = Reshape(r{i}, full)"]
        else:
            lines.append(f"w{i} = {kind}({', '.join(args)})")
        names.append(f"w{i}")
    outputs = rng.sample(names, rng.randint(1, min(3, len(names))))
    constants = {"k": X[::-1].copy(), "flat": np.array([-1], np.int32), "full": np.array(X.shape, np.int32)}
    g = graph(lines, [info("x")], outputs, constants)
    env = {**constants, "x": X}
    with np.errstate(all="ignore"):
        for op in g.ops:
            env[op.outputs[0]] = definition(op).compute(op, *(env[n] for n in op.inputs))
    kept = X.copy()
    model = mnn.load(g, "toy")
    for _ in range(2):
        out = model.run({"x": X})
        for name in outputs:
            np.testing.assert_array_equal(out[name], env[name])
            out[name][:] = 0
    np.testing.assert_array_equal(X, kept)
