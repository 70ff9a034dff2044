"""Each pass: what it makes of a graph, and that results stay the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from mnn_core import Graph, Op, TensorInfo, load
from mnn_core.passes.common_subexpressions import common_subexpressions
from mnn_core.passes.constant_folding import constant_folding
from mnn_core.passes.convolution_activation import convolution_activation
from mnn_core.passes.convolution_affine import convolution_affine
from mnn_core.passes.convolution_pad import convolution_pad
from mnn_core.passes.dead_code import dead_code
from mnn_core.passes.identity import identity
from mnn_core.passes.layer_norm import layer_norm
from mnn_core.passes.matmul_bias import matmul_bias
from mnn_core.passes.permute import permute
from mnn_core.passes.pipeline import optimize
from mnn_core.passes.reshape import reshape
from mnn_core.passes.squeeze import squeeze

F = np.float32


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(F)


def op(op_type: str, inputs: str, output: str, **attrs: Any) -> Op:
    return Op(op_type, inputs.split(), output.split(), attrs, name=output)


def binary(kind: str, inputs: str, output: str) -> Op:
    return op("BinaryOp", inputs, output, opType=kind)


def unary(kind: str, x: str, output: str) -> Op:
    return op("UnaryOp", x, output, opType=kind)


def graph(ops: Sequence[Op], inputs: Mapping[str, np.ndarray], outputs: str = "y", **constants: Any) -> Graph:
    infos = [TensorInfo(n, v.dtype, v.shape) for n, v in inputs.items()]
    return Graph(list(ops), infos, [TensorInfo(n, None, None) for n in outputs.split()],
                 {n: np.asarray(v) for n, v in constants.items()})


def run(g: Graph, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    return list(load(g, backend="numpy").run(dict(feeds)).values())


def rewritten(g: Graph, run_pass: Any, feeds: Mapping[str, np.ndarray], rounds: int = 1) -> list[str]:
    """Types of the ops that are left after a pass and dead-code removal; results must not change."""
    before = run(deepcopy(g), feeds)
    for _ in range(rounds):
        run_pass.run(g)
        dead_code.run(g)
    g.check()
    for a, b in zip(run(g, feeds), before):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)
    return [o.type for o in g.ops]


X = {"x": random(1, 3, 6, 7)}


def test_dead_code_keeps_what_outputs_need() -> None:
    g = graph([unary("ABS", "x", "y"), unary("NEG", "x", "unused"), unary("EXP", "unused", "too")], X, w=F(1))
    assert rewritten(g, dead_code, X) == ["UnaryOp"]
    assert not g.constants


def test_identity_keeps_names_of_outputs() -> None:
    g = graph([op("Identity", "x", "a"), unary("ABS", "a", "b"), op("Dropout", "b", "y"), unary("NEG", "b", "z")], X, "y z")
    assert rewritten(g, identity, X) == ["UnaryOp", "UnaryOp"]
    assert g.ops[0].outputs == ["y"]
    assert g.ops[1].inputs == ["y"]


def test_identity_of_an_input_that_is_an_output_stays() -> None:
    g = graph([op("Identity", "x", "y")], X)
    assert rewritten(g, identity, X) == ["Identity"]


def test_identity_of_one_tensor_under_two_output_names_stays() -> None:
    g = graph([unary("ABS", "x", "y"), op("Identity", "y", "z")], X, "y z")
    assert rewritten(g, identity, X) == ["UnaryOp", "Identity"]


def test_constant_folding() -> None:
    g = graph([binary("ADD", "a b", "c"), binary("MUL", "x c", "y")], X, a=F(1), b=F(2))
    assert rewritten(g, constant_folding, X) == ["BinaryOp"]
    huge = graph([op("Fill", "s v", "c"), binary("MUL", "x c", "y")], X, s=np.int32([1 << 14, 1, 1, 1]), v=F(2))
    assert rewritten(huge, constant_folding, X) == ["Fill", "BinaryOp"] or huge.constants["c"].nbytes <= 1 << 16
    random_numbers = graph([op("RandomUniform", "s", "r"), op("Shape", "r", "y")], X, s=np.int32([2]))
    constant_folding.run(random_numbers)
    assert random_numbers.ops[0].type == "RandomUniform"


def test_common_subexpressions() -> None:
    ops = [unary("ABS", "x", "a"), unary("ABS", "x", "b"), binary("ADD", "a k", "c"), binary("ADD", "b l", "d"),
           binary("MUL", "c d", "y")]
    assert rewritten(graph(ops, X, k=F(1), l=F(1)), common_subexpressions, X) == ["UnaryOp", "BinaryOp", "BinaryOp"]
    both = graph([unary("ABS", "x", "y"), unary("ABS", "x", "z")], X, "y z")
    assert rewritten(both, common_subexpressions, X) == ["UnaryOp", "UnaryOp"]


CONV = {"kernelX": 3, "kernelY": 3, "pads": (1, 1, 1, 1)}
AFFINE = {
    "scale": (op("Scale", "c s t", "y"), {"s": random(4), "t": random(4, seed=1)}),
    "add": (binary("ADD", "c s", "y"), {"s": random(4, 1, 1)}),
    "sub": (binary("SUB", "s c", "y"), {"s": random(1, 4, 1, 1)}),
    "mul": (binary("MUL", "c s", "y"), {"s": F(3)}),
    "div": (binary("REALDIV", "c s", "y"), {"s": F([2])}),
}


@pytest.mark.parametrize("kind", AFFINE)
@pytest.mark.parametrize("conv", ["Convolution", "grouped", "ConvolutionDepthwise", "Deconvolution", "grouped deconvolution"])
def test_convolution_affine(kind: str, conv: str) -> None:
    x = {"x": random(1, 4, 6, 7)}
    group = {"Convolution": 1, "Deconvolution": 1, "ConvolutionDepthwise": 4}.get(conv, 2)
    attrs = {**CONV, "group": group, "outputCount": 4, "inputCount": 4}
    op_type = {"grouped": "Convolution", "grouped deconvolution": "Deconvolution"}.get(conv, conv)
    weight = random(4, 4 // group, 3, 3, seed=2)
    last, constants = AFFINE[kind]
    ops = [op(op_type, "x w b", "c", **attrs), deepcopy(last)]
    g = graph(ops, x, w=weight, b=random(4, seed=3), **constants)
    assert rewritten(g, convolution_affine, x) == [op_type]


def test_convolution_affine_needs_constants_per_channel_and_one_reader() -> None:
    conv = op("Convolution", "x w b", "c", **CONV, outputCount=3, inputCount=3)
    constants = {"w": random(3, 3, 3, 3), "b": random(3)}
    per_column = graph([deepcopy(conv), binary("ADD", "c s", "y")], X, s=random(7), **constants)
    assert rewritten(per_column, convolution_affine, X) == ["Convolution", "BinaryOp"]
    read_twice = graph([deepcopy(conv), binary("MUL", "c s", "y")], X, "y c", s=F(2), **constants)
    assert rewritten(read_twice, convolution_affine, X) == ["Convolution", "BinaryOp"]
    after_relu = graph([op("Convolution", "x w b", "c", **CONV, outputCount=3, inputCount=3, relu=True),
                        binary("SUB", "c s", "y")], X, s=F(2), **constants)
    assert rewritten(after_relu, convolution_affine, X) == ["Convolution", "BinaryOp"]


def test_convolution_pad() -> None:
    conv = op("Convolution", "p w b", "y", **CONV, outputCount=3, inputCount=3)
    constants = {"w": random(3, 3, 3, 3), "b": random(3)}
    pads = np.int32([0, 0, 0, 0, 1, 2, 0, 3])
    g = graph([op("Padding", "x k", "p", mode="CONSTANT"), deepcopy(conv)], X, k=pads, **constants)
    assert rewritten(g, convolution_pad, X) == ["Convolution"]
    assert g.ops[0]["pads"] == (2, 1, 3, 4)
    for mode, k in (("REFLECT", [0, 0, 0, 0, 1, 2, 0, 3]), ("CONSTANT", [0, 0, 1, 0, 0, 0, 0, 0])):
        x = X if mode == "REFLECT" else {"x": random(1, 2, 6, 7)}
        other = graph([op("Padding", "x k", "p", mode=mode), deepcopy(conv)], x, k=np.int32(k), **constants)
        assert rewritten(other, convolution_pad, x) == ["Padding", "Convolution"]
    nonzero = graph([op("Padding", "x k v", "p", mode="CONSTANT"), deepcopy(conv)], X, k=pads, v=F(1), **constants)
    assert rewritten(nonzero, convolution_pad, X) == ["Padding", "Convolution"]


def test_convolution_activation() -> None:
    constants = {"w": random(3, 3, 3, 3), "b": random(3)}
    conv = op("Convolution", "x w b", "c", **CONV, outputCount=3, inputCount=3)
    for activation, fused in ((op("ReLU", "c", "y"), True), (op("ReLU6", "c", "y"), True),
                              (op("ReLU", "c", "y", slope=0.1), False), (op("ReLU6", "c", "y", maxValue=1.0), False)):
        kinds = rewritten(graph([deepcopy(conv), activation], X, **constants), convolution_activation, X)
        assert (kinds == ["Convolution"]) is fused


def test_matmul_bias() -> None:
    x = {"x": random(2, 5, 4)}
    g = graph([op("MatMul", "x w", "m"), binary("ADD", "b m", "y")], x, w=random(4, 3), b=random(3))
    assert rewritten(g, matmul_bias, x) == ["MatMul"]
    broadcast = graph([op("MatMul", "x w", "m"), binary("ADD", "m b", "y")], x, w=random(4, 3), b=random(7, 1, 1, 3))
    assert rewritten(broadcast, matmul_bias, x) == ["MatMul", "BinaryOp"]


@pytest.mark.parametrize("square", ["POW", "MUL", "SQUARE"])
@pytest.mark.parametrize("division", ["REALDIV", "RSQRT"])
def test_layer_norm(square: str, division: str) -> None:
    squares = {"POW": binary("POW", "d two", "q"), "MUL": binary("MUL", "d d", "q"), "SQUARE": unary("SQUARE", "d", "q")}
    ops = [op("Reduction", "x", "m", operation="MEAN", dim=(-1,), keepDims=True), binary("SUB", "x m", "d"), squares[square],
           op("Reduction", "q", "v", operation="MEAN", dim=(-1,), keepDims=True), binary("ADD", "v eps", "e")]
    if division == "RSQRT":
        ops += [unary("RSQRT", "e", "r"), binary("MUL", "d r", "n")]
    else:
        ops += [unary("SQRT", "e", "r"), binary("REALDIV", "d r", "n")]
    ops += [binary("MUL", "n g", "s"), binary("ADD", "s b", "y")]
    x = {"x": random(3, 4, 8)}
    g = graph(ops, x, two=F(2), eps=F(1e-5), g=random(8), b=random(8, seed=1))
    assert rewritten(g, layer_norm, x) == ["LayerNorm"]


def test_rms_norm() -> None:
    ops = [unary("SQUARE", "x", "q"), op("Reduction", "q", "v", operation="MEAN", dim=(-1,), keepDims=True),
           binary("ADD", "v eps", "e"), unary("RSQRT", "e", "r"), binary("MUL", "x r", "n"), binary("MUL", "g n", "y")]
    x = {"x": random(3, 8)}
    g = graph(ops, x, eps=F(1e-6), g=random(8))
    assert rewritten(g, layer_norm, x) == ["LayerNorm"]
    assert g.ops[0]["useRMSNorm"]


def test_reshape() -> None:
    g = graph([op("Reshape", "x", "a", dims=(0, 3, -1)), op("Reshape", "a", "y", dims=(3, 42))], X)
    assert rewritten(g, reshape, X) == ["Reshape"]
    x = {"x": random(2, 3)}
    ops = [op("Unsqueeze", "x", "a", squeezeDims=(1,)), op("Squeeze", "a", "b", squeezeDims=(1,)), unary("ABS", "b", "y")]
    g = graph(ops, x)
    assert rewritten(g, reshape, x)[0] == "Identity"


NHWC, NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


def test_permutes_cancel_across_a_residual_block() -> None:
    ops = [op("Permute", "x", "a", dims=NHWC), binary("MUL", "a s", "b"), op("ReLU", "b", "c"),
           op("Permute", "c", "d", dims=NCHW),
           op("Pooling", "d", "e", kernelX=1, kernelY=1, strideX=1, strideY=1, type="MAXPOOL"),
           op("Permute", "e", "f", dims=NHWC), binary("ADD", "c f", "g"), op("Permute", "g", "y", dims=NCHW)]
    g = graph(ops, X, s=random(3))
    before = run(deepcopy(g), X)
    optimize(g)
    assert "Permute" not in [o.type for o in g.ops]
    np.testing.assert_allclose(run(g, X)[0], before[0], rtol=1e-6)


@pytest.mark.parametrize("last", [
    op("Reduction", "a", "y", operation="MEAN", dim=(1, 2), keepDims=False),
    op("Reduction", "a", "y", operation="SUM", dim=(-1,), keepDims=True),
    op("Padding", "a k", "y", mode="CONSTANT"), op("Softmax", "a", "y", axis=-1), op("Concat", "a a", "y", axis=3),
    binary("ADD", "a t", "y"),
])
def test_permutes_move_down(last: Op) -> None:
    g = graph([op("Permute", "x", "a", dims=NHWC), deepcopy(last)], X, k=np.int32([0, 0, 1, 0, 0, 2, 0, 0]), t=random(7, 3))
    assert rewritten(g, permute, X)[0] != "Permute" or last.type == "Concat"


def test_squeeze_moves_past_elementwise_ops() -> None:
    x = {"x": random(1, 3, 9)}
    ops = [op("Unsqueeze", "x", "w1", squeezeDims=(2,)),
           op("Convolution", "w1 k b", "c", kernelX=3, kernelY=1, outputCount=4, inputCount=3),
           op("Squeeze", "c", "s", squeezeDims=(2,)), op("ReLU", "s", "r"), binary("MUL", "r t", "m"),
           op("Unsqueeze", "m", "w2", squeezeDims=(2,)), unary("ABS", "w2", "y")]
    g = graph(ops, x, k=random(4, 3, 1, 3), b=random(4), t=random(4, 1))
    assert rewritten(g, squeeze, x, rounds=3).count("Squeeze") == 1
    optimize(g)
    assert [o.type for o in g.ops] == ["Unsqueeze", "Convolution", "BinaryOp", "UnaryOp"]


def test_optimize_leaves_level_0_and_skipped_passes_alone() -> None:
    def made() -> Graph:
        return graph([op("Identity", "x", "a"), unary("ABS", "a", "y")], X)

    assert optimize(made(), 0) == 0
    g = made()
    optimize(g, 1, skip=("identity",))
    assert [o.type for o in g.ops] == ["Identity", "UnaryOp"]
    optimize(g)
    assert [o.type for o in g.ops] == ["UnaryOp"]
