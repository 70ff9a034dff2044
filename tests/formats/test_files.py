"""Graph -> .mnn or JSON -> the same graph."""

from __future__ import annotations

from pathlib import Path

import models
import numpy as np
import pytest
from same import assert_same, assert_same_value

import mnn_core as mnn
from mnn_core import Graph, Op, TensorInfo
from mnn_core.formats import HalfConstant, QuantizedWeight, half, read_json, read_mnn, write_json, write_mnn
from mnn_core.formats.encoder import Encoder
from mnn_core.formats.tables import Decoder
from mnn_core.ir import decoded

GRAPHS = [models.convolutions, models.branches, models.copies]
F32 = np.dtype(np.float32)


@pytest.mark.parametrize("make", GRAPHS)
def test_what_was_written_reads_back(make):
    graph = read_mnn(write_mnn(make()))
    assert_same(read_mnn(write_mnn(graph)), graph)
    wanted = make()
    assert graph.inputs == wanted.inputs
    assert [o.name for o in graph.outputs] == [o.name for o in wanted.outputs]
    assert graph.metadata == wanted.metadata
    assert [op.type for op in graph.ops] == [op.type for op in wanted.ops]


@pytest.mark.parametrize("make", GRAPHS)
def test_json_is_lossless(make, tmp_path):
    graph = read_mnn(write_mnn(make()))
    write_json(graph, tmp_path / "m.json")
    assert_same(read_json(tmp_path / "m.json"), graph)
    assert_same(read_json(write_json(graph)), graph)


def test_json_of_names_that_are_no_text(tmp_path):
    name = b"\xff\xfe".decode("utf-8", errors="surrogateescape")
    graph = Graph([Op("ReLU", ["x"], [name])], [TensorInfo("x", F32, (1,))], [TensorInfo(name, F32, None)])
    graph = read_mnn(write_mnn(graph))
    assert graph.outputs[0].name == name
    write_json(graph, tmp_path / "m.json")
    assert_same(read_json(tmp_path / "m.json"), graph)


def test_packed_weights_keep_their_bytes():
    graph = models.convolutions()
    again = read_mnn(write_mnn(graph))
    for op, source in zip(again.ops, graph.ops):
        if "Convolution" in op.type and source.inputs[1] != "w0":
            before, after = graph.constants[source.inputs[1]], again.constants[op.inputs[1]]
            assert type(before) is type(after) in (HalfConstant, QuantizedWeight)
            np.testing.assert_array_equal(decoded(before), decoded(after))
            if isinstance(before, QuantizedWeight):
                assert_same_value(dict(before.quan), {k: v for k, v in after.quan.items() if k in before.quan}, op.name)


def test_external_weights(tmp_path: Path):
    graph = models.convolutions()
    graph.constants["table"] = models.weights(40, 50)
    write_mnn(graph, tmp_path / "m.mnn", save_external_data=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.mnn", "m.mnn.weight"]
    inline, outside = read_mnn(write_mnn(graph)), read_mnn(tmp_path / "m.mnn")
    assert (tmp_path / "m.mnn").stat().st_size < len(write_mnn(graph)) - 8000
    assert_same_value({k: decoded(v) for k, v in outside.constants.items()},
                      {k: decoded(v) for k, v in inline.constants.items()}, "constants")
    assert all(not isinstance(c, np.ndarray) or c.flags.aligned for c in outside.constants.values())


def test_options_pack_weights():
    graph = models.convolutions()
    graph.constants["table"] = models.weights(4, 5)
    kinds = {}
    for options in ({"fp16": True}, {"weight_quant_bits": 4, "weight_quant_block": 16}, {}):
        read = read_mnn(write_mnn(graph, **options))
        kinds[tuple(options)] = [type(read.constants[op.inputs[1]]).__name__ for op in read.ops
                                 if op.type == "Convolution" or op.name == "custom"]
    packed = ["QuantizedWeight", "QuantizedWeight"]
    assert kinds == {("fp16",): ["HalfConstant", *packed, "HalfConstant"], (): ["ndarray", *packed, "ndarray"],
                     ("weight_quant_bits", "weight_quant_block"): ["QuantizedWeight", *packed, "ndarray"]}


def node(kind: str | int, inputs: tuple[int, ...], outputs: tuple[int, ...], **fields) -> dict:
    return {"type": kind, "name": f"{kind}{outputs}", "inputIndexes": inputs, "outputIndexes": outputs, **fields}


def net(*nodes: dict, tensors: int, dims=(1, 4), dformat="NCHW", **fields) -> bytes:
    """A file of one input, tensor 0, and ops as their tables; tensors are called t0, t1, ..."""
    main = {"dims": dims, "dtype": "DT_FLOAT", "dformat": dformat}
    first = node("Input", (), (0,), main_type="Input", main=main)
    return Encoder().finish("Net", {"oplists": (first, *nodes), "tensorName": tuple(f"t{i}" for i in range(tensors)), **fields})


def test_unknown_parts_survive():
    """An op of an unknown number, a custom op, and what only the file knows, come out as they went in."""
    extra = {"type": "Mine", "engine": "strange", "info": np.arange(3, dtype=np.int8),
             "attr": ({"key": "a", "i": 7}, {"key": "b", "list": {"f": np.array([1.5], np.float32)}})}
    describe = {"index": 1, "quantInfo": {"scale": np.float32(0.5), "zero": 3.0}}
    data = net(node(4242, (0,), (1,), main_type="Relu", main={"slope": 0.5}),
               node("Extra", (1,), (2,), main_type="Extra", main=extra), tensors=3, mnn_uuid="u-u", bizCode="mine",
               sourceType="TORCH", extraTensorDescribe=(describe,), outputName=("t2",))
    graph = read_mnn(data)
    assert [op.type for op in graph.ops] == ["Unknown<4242>", "Extra"]
    written = Decoder(write_mnn(graph), "m").root("Net")
    first, second = (n for n in written["oplists"] if n["type"] != "Input")
    assert (first["type"], first["main_type"], first["main"]) == (4242, "Relu", {"slope": 0.5})
    assert_same_value(second["main"], extra, "extra")
    assert (written["mnn_uuid"], written["bizCode"], written["sourceType"]) == ("u-u", "mine", "TORCH")
    assert_same_value(written["extraTensorDescribe"][0], {**describe, "index": written["tensorName"].index("t1")}, "describe")


def test_activations_quantised_after_training_survive():
    quan = {"type": 1, "scaleIn": 0.25, "scaleOut": 0.5, "quantScale": 1.0, "alpha": np.ones(4, np.float32),
            "buffer": np.concatenate([np.array([2, 4, 0, 4, 0, 0], np.uint8), np.arange(256).astype(np.uint8),
                                      np.arange(16, dtype=np.uint8)]).view(np.int8)}
    data = net(node("Convolution", (0,), (1,), main_type="Convolution2D",
                    main={"common": {"outputCount": 4, "inputCount": 4}, "quanParameter": quan, "bias": np.zeros(4, np.float32),
                          "symmetricQuan": {"nbits": 8, "zeroPoint": 3}}), tensors=2, dims=(1, 4, 2, 2))
    op = next(n for n in Decoder(write_mnn(read_mnn(data)), "m").root("Net")["oplists"] if n["type"] == "Convolution")
    assert op["main"]["symmetricQuan"] == {"nbits": 8, "zeroPoint": 3}
    assert_same_value(op["main"]["quanParameter"], quan, "quan")


def test_outputs_are_derived_where_none_are_named():
    data = net(node("ReLU", (0,), (1,)), node("ReLU", (1,), (2,)), node("ReLU", (1,), (3,)), tensors=4)
    assert [o.name for o in read_mnn(data).outputs] == ["t2", "t3"]


def test_equal_tensor_names_are_told_apart():
    first = node("Input", (), (0,), main_type="Input", main={"dims": (2,)})
    data = Encoder().finish("Net", {"oplists": (first, node("ReLU", (0,), (1,)), node("ReLU", (1,), (2,))),
                                    "tensorName": ("x", "same", "same"), "outputName": ("same",)})
    graph = read_mnn(data)
    assert len({n for op in graph.ops for n in op.outputs}) == 2


def test_wide_integers_of_constants_are_narrowed():
    data = net({**node("Const", (), (1,)), "main_type": "Blob",
                "main": {"dims": (2,), "dataType": "DT_INT64", "int64s": np.array([2**40, -5])}}, tensors=2)
    constant = read_mnn(data).constants["t1"]
    assert constant.dtype == np.int32
    assert constant.tolist() == [2**31 - 1, -5]


@pytest.mark.parametrize(("kind", "values"), [("DT_HALF", np.array([1.5, -2], np.float16)),
                                              ("DT_BFLOAT16", np.array([0x3FC0, 0xC000], np.uint16))])
def test_16_bit_constants(kind, values):
    data = net({**node("Const", (), (1,)), "main_type": "Blob",
                "main": {"dims": (2,), "dataType": kind, "uint8s": values.view(np.uint8)}}, tensors=2)
    constant = read_mnn(data).constants["t1"]
    np.testing.assert_array_equal(decoded(constant), np.array([1.5, -2], np.float32))
    graph = Graph([Op("BinaryOp", ["x", "c"], ["y"], {"opType": "MUL"})], [TensorInfo("x", F32, (2,))],
                  [TensorInfo("y", F32, None)], {"c": constant})
    assert_same_value(read_mnn(write_mnn(graph)).constants["c"], constant, kind)


def test_halves_beyond_their_range_are_clipped():
    np.testing.assert_array_equal(half(np.array([1e6, -1e6, 0.1], np.float32)).decode(),
                                  np.array([65504, -65504, np.float16(0.1)], np.float32))


def convert(source: str, dest: str, tensors: tuple[int, int]) -> dict:
    return node("ConvertTensor", tensors[:1], tensors[1:], main_type="TensorConvertInfo", main={"source": source, "dest": dest})


X = np.random.default_rng(0).standard_normal((2, 5, 3, 4)).astype(np.float32)


def result(*nodes: dict, x: np.ndarray, last: int, **fields) -> np.ndarray:
    """What a file of ops on tensor 0 gives, straight and after it was written by us."""
    graph = read_mnn(net(*nodes, tensors=last + 1, dims=x.shape, outputName=(f"t{last}",), **fields))
    straight, again = (mnn.load(g, backend="numpy").run({"t0": x})[f"t{last}"] for g in (graph, read_mnn(write_mnn(graph))))
    np.testing.assert_array_equal(straight, again)
    return straight


BLOCKED, PLAIN = ("NCHW", "NC4HW4"), ("NC4HW4", "NCHW")


def test_formats_vanish():
    """Conversions between NCHW and NC4HW4 leave no op, whatever stands between them; names stay."""
    data = net(convert(*BLOCKED, (0, 1)), node("ReLU", (1,), (2,)), node("Pooling", (2,), (3,), main_type="Pool", main={}),
               convert(*PLAIN, (3, 4)), node("Flatten", (4,), (5,)), convert(*PLAIN, (3, 6)), tensors=7, dims=(1, 3, 4, 4),
               outputName=("t5", "t6"))
    graph = read_mnn(data)
    assert [(op.type, op.inputs, op.outputs) for op in graph.ops] == [
        ("ReLU", ["t0"], ["t2"]), ("Pooling", ["t2"], ["t6"]), ("Flatten", ["t6"], ["t5"])]
    assert read_mnn(write_mnn(graph)).ops == graph.ops


@pytest.mark.parametrize(("shape", "order"), [((2, 7, 8, 5), (0, 3, 1, 2)), ((2, 7, 5), (0, 2, 1)), ((2, 5), (0, 1))])
def test_channels_move_from_last_to_second(shape, order):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    got = result(convert("NHWC", "NCHW", (0, 1)), x=x, last=1, dformat="NHWC")
    np.testing.assert_array_equal(got, x.transpose(order))


def test_image_ops_on_tensors_with_channels_last():
    x = X.transpose(0, 2, 3, 1)
    pool = node("Pooling", (0,), (1,), main_type="Pool", main={"isGlobal": True})
    got = result(pool, convert("NC4HW4", "NHWC", (1, 2)), x=np.ascontiguousarray(x), last=2, dformat="NHWC")
    np.testing.assert_array_equal(got, x.max((1, 2), keepdims=True))


def test_shape_of_a_blocked_tensor_seen_with_channels_last():
    shape = node("Shape", (1,), (2,), defaultDimentionFormat="NHWC")
    assert result(convert(*BLOCKED, (0, 1)), shape, x=X, last=2).tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize("attribute", [True, False])
def test_reshape_of_a_blocked_tensor_seen_with_channels_last(attribute):
    target = {"dims": (2, 5, 12, 1)} if attribute else {}
    shape = {**node("Const", (), (4,)), "main_type": "Blob",
             "main": {"dims": (4,), "dataType": "DT_INT32", "int32s": np.array([2, 12, 1, 5], np.int32)}}
    reshape = node("Reshape", (1,) if attribute else (1, 4), (2,), main_type="Reshape", main={"dimType": "NHWC", **target})
    got = result(shape, convert(*BLOCKED, (0, 1)), reshape, convert(*PLAIN, (2, 5)), x=X, last=5)
    np.testing.assert_array_equal(got, X.reshape(2, 5, 12, 1))


def test_argmax_of_a_blocked_tensor_is_that_of_caffe():
    arg = node("ArgMax", (1,), (2,), main_type="ArgMax", main={"axis": 1})
    got = result(convert(*BLOCKED, (0, 1)), arg, convert(*PLAIN, (2, 3)), x=X, last=3)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, X.argmax(1)[:, None])
    assert result({**arg, "inputIndexes": (0,)}, x=X, last=2).dtype == np.int32


def test_layer_norm_of_a_blocked_sum():
    """Two outputs: the sum, and the sum normalised over the channels, whatever axis the file names."""
    x = X[:, :, :1, :1]
    main = {"axis": (-1,), "epsilon": 1e-5, "useRMSNorm": True, "gamma": np.full(5, 2, np.float32)}
    norm = node("LayerNorm", (1, 1), (2, 3), main_type="LayerNorm", main=main, defaultDimentionFormat="NC4HW4")
    got = result(convert(*BLOCKED, (0, 1)), norm, convert(*PLAIN, (3, 4)), x=x, last=4)
    total = 2 * x.astype(np.float64)
    np.testing.assert_allclose(got, 2 * total / np.sqrt(np.square(total).mean(1, keepdims=True) + 1e-5), rtol=1e-5)
