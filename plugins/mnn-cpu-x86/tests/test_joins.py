"""Concatenations of blocked images, which are computed in place where they can be: random networks against NumPy."""

from __future__ import annotations

import random

import numpy as np
import pytest

import mnn_core as mnn
from mnn_core import Graph, Op, TensorInfo

F = np.dtype(np.float32)


def _network(seed: int) -> Graph:
    """Convolutions, activations, sums and concatenations, whose results are read again and again."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    graph = Graph(inputs=[TensorInfo("x", F, (1, 16, 6, 5))])
    channels = {"x": 16}

    def add(op_type: str, inputs: list[str], size: int, **attrs: object) -> None:
        name = f"t{len(channels)}"
        graph.ops.append(Op(op_type, inputs, [name], attrs, name))
        channels[name] = size

    def conv(source: str, size: int) -> None:
        kernel = rng.choice([1, 3])
        names = [f"w{len(channels)}", f"b{len(channels)}"]
        graph.constants[names[0]] = numbers.standard_normal((size, channels[source], kernel, kernel)).astype(F) / 10
        graph.constants[names[1]] = numbers.standard_normal(size).astype(F)
        add("Convolution", [source, *names], size, kernelX=kernel, kernelY=kernel, padX=kernel // 2, padY=kernel // 2,
            outputCount=size, inputCount=channels[source])

    conv("x", 32)
    for _ in range(rng.randint(4, 12)):
        kind, source = rng.choice(["conv", "conv", "relu", "concat", "concat", "add"]), rng.choice(list(channels)[1:])
        if kind == "conv":
            conv(source, rng.choice([16, 32, 48, 20]))
        elif kind == "relu":
            add("ReLU", [source], channels[source])
        elif kind == "add":
            other = rng.choice([n for n in channels if channels[n] == channels[source]])
            add("BinaryOp", [source, other], channels[source], opType="ADD")
        else:
            parts = rng.choices(list(channels), k=rng.randint(2, 3))
            if sum(channels[p] for p in parts) < 200:
                add("Concat", parts, sum(channels[p] for p in parts), axis=1)
    for name in rng.sample(list(channels)[1:], 2) + list(channels)[-1:]:
        if name not in [o.name for o in graph.outputs]:
            graph.outputs.append(TensorInfo(name, F, None))
    return graph


@pytest.mark.parametrize("seed", range(60))
def test_random_networks(seed: int) -> None:
    graph = _network(seed)
    x = np.random.default_rng(seed).standard_normal((1, 16, 6, 5)).astype(F)
    want, model = mnn.load(graph, "numpy").run({"x": x}), mnn.load(graph, "cpu-x86")
    for _ in range(2):
        for name, got in model.run({"x": x}).items():
            np.testing.assert_allclose(got, want[name], rtol=1e-4, atol=1e-4 * np.abs(want[name]).max())


def test_branches_write_into_their_concatenation() -> None:
    graph = Graph(inputs=[TensorInfo("x", F, (1, 16, 4, 4))], outputs=[TensorInfo("y", F, None)])
    for name, source, inputs, outputs in (("a", "x", 16, 32), ("b", "x", 16, 16), ("y", "c", 48, 16)):
        graph.constants[f"w{name}"] = np.ones((outputs, inputs, 1, 1), F)
        op = Op("Convolution", [source, f"w{name}"], [name], {"outputCount": outputs, "inputCount": inputs}, name)
        graph.ops.append(op)
    graph.ops.insert(2, Op("Concat", ["a", "b"], ["c"], {"axis": 1}, "c"))
    model = mnn.load(graph, "cpu-x86")
    steps = [step.kernel for step in model.profile({"x": np.ones((1, 16, 4, 4), F)}).steps]
    assert not [k for k in steps if "raster" in k]
    assert ("c", "join") in [(p.op, p.kernel) for p in model.placement()]
