"""Layers, control flow and kinds of numbers that users of other engines reported to be wrong there."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest
from one_op import check, loaded, model, node, random, results, run, same, theirs
from onnx import TensorProto, helper

import mnn_core as mnn

F, LONG = np.float32, np.int64


def test_grouped_transposed_convolution_with_bias_and_output_padding() -> None:
    constants = {"w": np.arange(1, 9, dtype=F).reshape(2, 2, 1, 2), "b": F([.1, .2, .3, .4])}
    want = F([[1.1, 2.1, 2.1, 4.1, .1], [3.2, 4.2, 6.2, 8.2, .2], [15.3, 18.3, 20.3, 24.3, .3], [21.4, 24.4, 28.4, 32.4, .4]])
    check(node("ConvTranspose", "x w b", group=2, strides=[1, 2], output_padding=[0, 1], kernel_shape=[1, 2]),
          {"x": F([[1, 2], [3, 4]]).reshape(1, 2, 1, 2)}, [want.reshape(1, 4, 1, 5)], constants)


@pytest.mark.parametrize(("channels", "group", "out"), [(64, 64, 1), (6, 3, 2), (4, 2, 3), (3, 1, 5)])
def test_transposed_convolution_before_a_batch_norm(channels: int, group: int, out: int) -> None:
    """Whether it is folded into the weights or not."""
    made = group * out
    constants = {"w": random(channels, out, 4, 4) / 4, "b": random(made, seed=1), "s": random(made, seed=2),
                 "o": random(made, seed=3), "m": random(made, seed=4), "v": np.abs(random(made, seed=5)) + F(.5)}
    nodes = [node("ConvTranspose", "x w b", "t", group=group, strides=[2, 2], pads=[1, 1, 1, 1],
                  kernel_shape=[4, 4]),
             node("BatchNormalization", "t s o m v")]
    check(nodes, {"x": random(2, channels, 5, 3, seed=6)}, constants=constants, tolerance=2e-5)


def test_recurrence_from_the_end() -> None:
    constants = {"w": np.ones((1, 4, 1), F), "r": np.zeros((1, 4, 1), F)}
    wants = [F([.264502, .604343, .608283]).reshape(3, 1, 1, 1), F(.264502).reshape(1, 1, 1), F(.588761).reshape(1, 1, 1)]
    check(node("LSTM", "x w r", "y h c", hidden_size=1, direction="reverse"), {"x": F([0, 1, 2]).reshape(3, 1, 1)}, wants,
          constants, outputs=("y", "h", "c"))


@pytest.mark.parametrize("reset", [0, 1])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_recurrence_over_rows_of_own_lengths(direction: str, reset: int) -> None:
    """The reverse starts at each row's own end; what is beyond it is 0; the last state is that of the last valid step."""
    d, lengths = 1 + (direction == "bidirectional"), [4, 2]
    constants = {"w": random(d, 9, 2), "r": random(d, 9, 3, seed=1), "b": random(d, 18, seed=2), "l": np.int32(lengths)}
    x = random(4, 2, 2, seed=3)
    proto = node("GRU", "x w r b l", "y h", hidden_size=3, direction=direction, linear_before_reset=reset)
    y, h = np.zeros((4, d, 2, 3), F), np.zeros((d, 2, 3), F)
    for k in range(d):
        backward = direction == "reverse" or k == 1
        for row, length in enumerate(lengths):
            steps = range(length)[::-1] if backward else range(length)
            for t in steps:
                h[k, row] = y[t, k, row] = _gru(x[t, row], h[k, row], *(constants[n][k] for n in "wrb"), reset)
    check(proto, {"x": x}, [y, h], constants, outputs=("y", "h"))


def _gru(x: np.ndarray, h: np.ndarray, w: np.ndarray, r: np.ndarray, b: np.ndarray, reset: int) -> np.ndarray:
    """One step of a GRU of three units, by the text of the specification."""
    def sigmoid(v: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-v))

    wb, rb = b[:9], b[9:]
    z = sigmoid(x @ w[:3].T + h @ r[:3].T + wb[:3] + rb[:3])
    s = sigmoid(x @ w[3:6].T + h @ r[3:6].T + wb[3:6] + rb[3:6])
    inner = s * (h @ r[6:].T + rb[6:]) if reset else (s * h) @ r[6:].T + rb[6:]
    return (1 - z) * np.tanh(x @ w[6:].T + inner + wb[6:]) + z * h


@pytest.mark.parametrize("reset", [0, 1])
def test_wide_gru_with_relu_and_a_state(reset: int) -> None:
    """As Keras makes it: 48 units, of 90 numbers, one step at a time."""
    constants = {"w": random(1, 144, 90) / 8, "r": random(1, 144, 48, seed=1) / 8, "b": random(1, 288, seed=2) / 8}
    check(node("GRU", "x w r b _ h", "y yh", hidden_size=48, activations=["Sigmoid", "Relu"], linear_before_reset=reset),
          {"x": random(1, 1, 90, seed=3), "h": random(1, 1, 48, seed=4)}, constants=constants, outputs=("y", "yh"))


def _text(body: str, opset: int = 17) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {body}')


def agree(proto: onnx.ModelProto, feeds: list[dict[str, Any]], wants: list[list[Any]] | None = None) -> None:
    """Runs of one loaded model after each other give what is wanted; None for what onnxruntime gives."""
    rights = wants or [theirs(proto, feed) for feed in feeds]
    for way, ours in loaded(proto):
        for feed, right in zip(feeds, rights):
            same(run(ours, feed), right, way)


LOOP = """g (int64 m, float[n] x) => (float[n] y, float[k, n] steps, int64[k] turns) {
  yes = Constant <value = bool {1}> ()
  y, steps, turns = Loop (m, yes, x) <body = b (int64 i, bool c, float[n] s) => (bool d, float[n] t, float[n] u, int64 j) {
    limit = Constant <value = float {5.0}> ()  one = Constant <value = int64 {1}> ()  j = Add (i, one)
    f = Cast <to = 1> (j)  t = Add (s, f)  u = Mul (t, t)  top = ReduceMax <keepdims = 0> (t)  d = Less (top, limit) }> }"""


def test_loop_of_any_number_of_turns() -> None:
    """Scan outputs are the values of their own turn; a loop may be told to stop inside, or never to start."""
    feeds = [{"m": np.array(m), "x": F(x)} for m, x in ((3, [0, -1]), (0, [1, 2]), (10, [0, 1]), (2, [9, 9]), (0, []))]
    wants = []
    for feed in feeds:
        y, steps = feed["x"], []
        for i in range(int(feed["m"])):
            y = y + F(i + 1)
            steps.append(y * y)
            if y.max() >= 5:
                break
        wants.append([y, np.array(steps, F).reshape(len(steps), y.size), np.arange(1, len(steps) + 1)])
    agree(_text(LOOP), feeds, wants)


def test_branches_and_scans_of_no_rows() -> None:
    text = """g (float[a, 2] x, float[2] s) => (float[2] last, float[a, 2] all, float[p, q] z) {
      last, all = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] v) => (float[2] t, float[2] o) {
        t = Add (s, v)  o = Identity (t) }> (s, x)
      n = Shape <end = 1> (x)  zero = Constant <value_ints = [0]> ()  none = Equal (n, zero)  p = Squeeze (none)
      z = If (p) <then_branch = t () => (float[p, q] r) { r = Unsqueeze (s, zero) },
                  else_branch = e () => (float[p, q] r) { r = Concat <axis = 1> (x, all) }> }"""
    agree(_text(text), [{"x": random(n, 2), "s": F([1, 2])} for n in (3, 1)])
    agree(_text(text), [{"x": np.zeros((0, 2), F), "s": F([1, 2])}], [[F([1, 2]), np.zeros((0, 2), F), F([[1, 2]])]])


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_integer_division_and_remainders(dtype: type) -> None:
    x, y = np.array([-7, 7, -7, 7, 6, -6], dtype), np.array([2, -2, -2, 2, 3, 3], dtype)
    check(node("Div", "a b"), {"a": x}, [np.array([-3, -3, 3, 3, 2, -2], dtype)], {"b": y})
    x, y = np.array([-7, 7, -7, 7, 6, -6], dtype), np.array([3, -3, -3, 3, 3, 3], dtype)
    check(node("Mod", "a b"), {"a": x}, [np.array([2, -2, -1, 1, 0, 0], dtype)], {"b": y})
    check(node("Mod", "a b", fmod=1), {"a": x}, [np.array([-1, 1, -1, 1, 0, 0], dtype)], {"b": y})


@pytest.mark.parametrize(("operator", "a", "b"), [("Mul", 22, 21), ("Add", 200, 100), ("Sub", 3, 5), ("Pow", 3, 6)])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_small_integers_wrap(operator: str, a: int, b: int, dtype: type) -> None:
    x, y = np.array([a], LONG).astype(dtype), np.array([b], LONG).astype(dtype)
    with np.errstate(over="ignore"):
        want = {"Mul": np.multiply, "Add": np.add, "Sub": np.subtract, "Pow": np.power}[operator](x, y)
    check(node(operator, "a b"), {"a": x}, [want], {"b": y}, oracle=operator != "Pow", opset=14)


def test_quantisation_rounds_half_to_even_and_saturates() -> None:
    x = F([.5, 1.5, 2.5, -.5, 300, -300])
    check(node("QuantizeLinear", "x s z"), {"x": x}, [np.int8([0, 2, 2, 0, 127, -128])], {"s": F(1), "z": np.int8(0)})
    check(node("QuantizeLinear", "x s z"), {"x": x}, [np.uint8([3, 5, 5, 3, 255, 0])], {"s": F(1), "z": np.uint8(3)})


@pytest.mark.parametrize("to", [TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64])
def test_casts_of_what_does_not_fit_are_the_same_everywhere(to: int) -> None:
    x = F([300, np.nan, np.inf, -np.inf, -1.5, 3e9, -3e9])
    found = [got[0] for _, got in results(model(node("Cast", "x", to=to), {"x": x}), {"x": x})]
    for each in found:
        assert each.dtype == helper.tensor_dtype_to_np_dtype(to)
        np.testing.assert_array_equal(each, found[0])


HALF, BRAIN = TensorProto.FLOAT16, TensorProto.BFLOAT16


def _half(kind: int, raw: bool) -> onnx.TensorProto:
    """[0.25, 0.5, 1, 2] as bytes, or as bit patterns in the field of integers."""
    dtype = np.float16 if kind == HALF else ml_dtypes.bfloat16
    bits = np.array([.25, .5, 1, 2], dtype).view(np.uint16)
    tensor = TensorProto(name="k", data_type=kind, dims=[4])
    if raw:
        tensor.raw_data = bits.tobytes()
    else:
        tensor.int32_data.extend(int(v) for v in bits)
    return tensor


@pytest.mark.parametrize("as_node", [False, True])
@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("kind", [HALF, BRAIN])
def test_constants_of_16_bit_floats(kind: int, raw: bool, as_node: bool) -> None:
    """Of bytes or integers, given out as they are, in a product that is folded, and in one that is not."""
    tensor = _half(kind, raw)
    nodes = [node("Constant", "", "k", value=tensor)] if as_node else []
    nodes += [node("Identity", "k", "same"), node("Mul", "k k", "folded"), node("Cast", "k", "f", to=TensorProto.FLOAT),
              node("Mul", "x k", "y")]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT if n == "f" else kind, [4])
               for n in ("same", "folded", "f", "y")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", kind, [4])], outputs, [] if as_node else [tensor])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    dtype = np.dtype(np.float16 if kind == HALF else ml_dtypes.bfloat16)
    for way, ours in loaded(proto):
        got = ours.run({"x": np.array([2, 2, 3, -1], dtype)})
        assert [got[n].dtype for n in ("same", "folded", "f", "y")] == [dtype, dtype, np.float32, dtype], way
        assert got["same"].astype(F).tolist() == got["f"].tolist() == [.25, .5, 1, 2], way
        assert got["folded"].astype(F).tolist() == [.0625, .25, 1, 4], way
        assert got["y"].astype(F).tolist() == [.5, 1, 3, -2], way


def test_tensors_of_nothing_and_of_rank_0() -> None:
    check(node("MatMul", "a b"), {"a": np.zeros((1, 0, 4), F)}, [np.zeros((1, 0, 3), F)], {"b": random(4, 3)})
    check(node("MatMul", "a b"), {"a": np.zeros((2, 0), F)}, [np.zeros((2, 3), F)], {"b": np.zeros((0, 3), F)})
    check(node("Gemm", "a b c"), {"a": np.zeros((2, 0), F)}, [F([[1, 2]] * 2)], {"b": np.zeros((0, 2), F), "c": F([1, 2])})
    check(node("Add", "a b"), {"a": F(1)}, [F(3)], {"b": F(2)})
    check(node("Gather", "x i", axis=1), {"x": F([[1, 2, 3], [4, 5, 6]])}, [F([3, 6])], {"i": np.array(-1)})
    check(node("Squeeze", "x"), {"x": np.ones((1, 1, 1), F)}, [F(1)])
    check(node("Reshape", "x s", allowzero=1), {"x": np.zeros((0, 3), F)}, [np.zeros((3, 0), F)], {"s": np.array([3, 0])})
    check(node("Reshape", "x s"), {"x": np.zeros((0, 3), F)}, [np.zeros((0, 1, 3), F)], {"s": np.array([0, 1, 3])})
    check(node("ReduceSum", "x a"), {"x": np.zeros((2, 0, 3), F)}, [np.zeros((2, 1, 3), F)], {"a": np.array([1])})
    check(node("ReduceProd", "x", axes=[0], keepdims=0), {"x": np.zeros((0, 2), F)}, [F([1, 1])])
    check(node("Softmax", "x"), {"x": np.zeros((0, 3), F)}, [np.zeros((0, 3), F)])
    check(node("Concat", "x z", axis=0), {"x": np.zeros((0, 2), F)}, [F([[1, 2]])], {"z": F([[1, 2]])})
    check(node("Expand", "x s"), {"x": F(3)}, [np.zeros((0, 2), F)], {"s": np.array([0, 2])})
    check(node("Transpose", "x"), {"x": np.zeros((2, 0, 3), F)}, [np.zeros((3, 0, 2), F)])
    check(node("Where", "c a b"), {"c": np.array(True)}, [F(1)], {"a": F(1), "b": F(2)})
    check(node("NonZero", "x"), {"x": np.zeros((2, 2), F)}, [np.zeros((2, 0), LONG)])


def test_detector_stage_without_a_box() -> None:
    """Boxes are picked by score; each is cut out of the image, convolved, pooled and classified."""
    nodes = [node("NonMaxSuppression", "b s m i t", "rows"), node("Gather", "rows two", "n", axis=1),
             node("Gather", "flat n", "found"), node("Mul", "n zero", "images"),
             node("RoiAlign", "x found images", "parts", output_height=3, output_width=3, sampling_ratio=2),
             node("Conv", "parts k", "c"), node("Relu", "c", "r"), node("GlobalAveragePool", "r", "p"),
             node("Flatten", "p", "v"), node("Gemm", "v w", "y"), node("MaxPool", "parts", "q", kernel_shape=[2, 2]),
             node("Resize", "parts _ e", "big", mode="linear"), node("ReduceMax", "y", "best", axes=[1], keepdims=0)]
    boxes = F([[0, 0, 4, 4], [2, 2, 7, 7], [1, 0, 3, 6]])
    constants = {"m": np.array([3]), "i": F([.9]), "t": F([.5]), "two": np.array(2), "zero": np.array(0), "flat": boxes,
                 "k": random(4, 2, 2, 2), "w": random(4, 3, seed=1), "e": F([1, 1, 2, 2])}
    outputs = ("y", "found", "q", "big", "best")
    feeds = [{"x": random(1, 2, 8, 8), "b": boxes[None], "s": F([[scores]])}
             for scores in ([.9, .8, .1], [.1, .2, .3], [.6, .1, 1])]
    agree(model(nodes, feeds[0], outputs, constants=constants), feeds)


def test_one_name_of_two_dimensions_must_mean_one_number() -> None:
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", "k" if n == "a" else 2]) for n in ("a", "b")]
    graph = helper.make_graph([node("Identity", "a", "y"), node("Identity", "b", "z")], "g", inputs,
                              [onnx.ValueInfoProto(name=n) for n in ("y", "z")])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    for _, ours in loaded(proto):
        for n, k in ((3, 2), (5, 7)):
            got = ours.run({"a": random(n, k), "b": random(n, 2)})
            assert [v.shape for v in got.values()] == [(n, k), (n, 2)]
        with pytest.raises(mnn.InputError, match=r"'N'.*'a'.*3.*'b'.*5"):
            ours.run({"a": random(3, 2), "b": random(5, 2)})
        with pytest.raises(mnn.InputError, match="'b'"):
            ours.run({"a": random(3, 2), "b": random(3, 1)})
