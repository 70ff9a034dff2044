"""Random graphs give what evaluating them op by op gives, whatever memory the planner shares and whatever it folds."""

import random

import numpy as np
import pytest
from graphs import graph, info

import mnn_core as mnn
from mnn_core.ops import definition


def evaluate(g: mnn.Graph, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    env = {**g.constants, **feeds}
    for op in g.ops:
        values = definition(op).compute(op, *(env[n] for n in op.inputs))
        env.update(zip(op.outputs, values if isinstance(values, tuple) else (values,)))
    return env


@pytest.mark.parametrize("seed", range(60))
def test_random_graph(seed):
    rng = random.Random(seed)
    names, ops = ["x", "k"], []
    for i in range(rng.randint(1, 14)):
        kind = rng.choice(["Add", "Mul", "Neg", "Neg", "Split", "Reshape"])
        if kind == "Split":
            ops.append(f"t{i}, u{i} = Split({rng.choice(names)})")
            ops.append(f"v{i} = Add(t{i}, u{i})")
            names += [f"t{i}", f"u{i}"] if rng.random() < 0.5 else []
            continue
        args = {"Neg": 1, "Reshape": 1}.get(kind, 2)
        picked = [rng.choice(names) for _ in range(args)] + ["flat"] * (kind == "Reshape")
        if kind == "Reshape":
            ops.append(f"r{i} = Reshape({picked[0]}, flat)")
            ops.append(f"o{i} = Neg(r{i})")
            ops.append(f"w{i} = Reshape(o{i}, full)")
            names.append(f"w{i}")
            continue
        ops.append(f"w{i} = {kind}({', '.join(picked)})")
        names.append(f"w{i}")
    made = [o for op in ops for o in op.split(" = ")[0].split(", ")]
    outputs = rng.sample([*made, "x", "k"], min(len(made), rng.randint(1, 4)))
    halved = {n for op in ops if "Split" in op for n in op.split(" = ")[0].split(", ")}
    ops = [op for op in ops if not (set(op.split("(")[1][:-1].split(", ")) & halved) or op.startswith("v")]
    there = {o for op in ops for o in op.split(" = ")[0].split(", ")} | {"x", "k"}
    while True:  # drop what lost its inputs
        kept = [op for op in ops if set(op.split("(")[1][:-1].split(", ")) <= there | {"flat", "full"}]
        there = {o for op in kept for o in op.split(" = ")[0].split(", ")} | {"x", "k"}
        if len(kept) == len(ops):
            break
        ops = kept
    outputs = [o for o in outputs if o in there] or ["x"]
    k = np.random.default_rng(seed).integers(-2, 3, (4, 6)).astype(np.float32)
    sizes = {"flat": np.array([-1], np.int32), "full": np.array([4, 6], np.int32)}
    g = graph(ops, [info("x", (None, 6))], outputs, {"k": k, **sizes})
    model = mnn.load(g, "numpy")
    for step in range(3):
        x = np.random.default_rng(seed + step).integers(-2, 3, (4, 6)).astype(np.float32)
        kept_x = x.copy()
        expected, got = evaluate(g, {"x": x}), model.run({"x": x})
        for name in outputs:
            np.testing.assert_array_equal(got[name], expected[name])
        np.testing.assert_array_equal(x, kept_x)
        np.testing.assert_array_equal(g.constants["k"], k)
