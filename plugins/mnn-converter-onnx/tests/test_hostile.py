"""Any .onnx file is hostile: damage ends in a ModelFormatError or a ConversionError, soon, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import tracemalloc
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import convert, model, node, random

import mnn_core as mnn

REFUSED = (mnn.ModelFormatError, mnn.ConversionError)


def small() -> onnx.ModelProto:
    nodes = [node("Conv", "x w", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), node("Relu", "c", "r"),
             node("Reshape", "r s", "f"), node("Gather", "f i", "g", axis=1), node("Softmax", "g", "y", axis=-1)]
    return model(nodes, {"x": random(1, 2, 4, 4)}, constants={
        "w": random(2, 2, 3, 3), "s": np.array([1, -1]), "i": np.array([0, 3, 5])})


def test_ten_thousand_flips_are_refused_or_converted_soon_and_leave_nothing(tmp_path: Path) -> None:
    good, dice = small().SerializeToString(), np.random.default_rng(0)
    target, refused = tmp_path / "m.mnn", 0
    for round_ in range(10_000):
        data = bytearray(good)
        for at in dice.integers(0, len(data), dice.integers(1, 4)):
            data[at] ^= int(dice.integers(1, 256))
        try:
            mnn.convert(bytes(data), target if round_ % 16 == 0 else None, converter="onnx")
        except mnn.MNNError:
            refused += 1
            assert not list(tmp_path.iterdir())
        target.unlink(missing_ok=True)
    assert 1000 < refused < 10_000


def test_memory_of_refused_files_is_bounded() -> None:
    big = [
        model(node("ConvTranspose", "x w", group=2**31 - 1), {"x": random(1, 2, 4, 4)}, constants={"w": random(2, 2, 3, 3)}),
        model(node("GRU", "x w r", hidden_size=2**31 - 1), {"x": random(3, 1, 2)},
              constants={"w": random(1, 6, 2), "r": random(1, 6, 2)}),
        model(node("LayerNormalization", "x s", axis=-(2**31)), {"x": random(3, 2)}, constants={"s": random(2)}),
        model(node("GatherND", "x i", batch_dims=-(2**31)), {"x": random(3, 2)}, constants={"i": np.array([[0, 1]])}),
    ]
    big[-1].graph.node.insert(0, node("Resize", "x _ scales", "unused", mode="linear"))  # asks for ONNX's shape inference
    tracemalloc.start()
    try:
        for proto in big:
            with contextlib.suppress(*REFUSED):
                convert(proto)
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("attributes", [{"axis": 2**40}, {"axis": -(2**31)}])
def test_axes_that_nothing_has_are_refused(attributes: dict[str, int]) -> None:
    with pytest.raises(REFUSED):
        convert(model([node("Resize", "x _ k", "r", mode="linear"), node("Softmax", "r", **attributes)],
                      {"x": random(1, 2, 4, 4)}, constants={"k": np.array([1, 1, 2, 2], np.float32)}))


def broken(change: str) -> onnx.ModelProto:
    proto = small()
    graph = proto.graph
    if change == "cycle":
        graph.node[0].input[0] = "g"
    elif change == "a node that needs itself":
        graph.node[1].input[0] = "r"
    elif change == "missing input":
        graph.node[1].input[0] = "nowhere"
    elif change == "two producers":
        graph.node[1].output[0] = "c"
    elif change == "string constant":
        graph.initializer[0].CopyFrom(helper.make_tensor("w", TensorProto.STRING, [1], [b"text"]))
    elif change == "string input":
        graph.input[0].type.tensor_type.elem_type = TensorProto.STRING
    elif change == "no nodes":
        del graph.node[:]
    elif change == "nothing":
        proto.ClearField("graph")
    elif change == "no outputs":
        del graph.output[:]
    elif change == "output from nowhere":
        graph.output[0].name = "nowhere"
    elif change == "short weights":
        graph.initializer[0].raw_data = graph.initializer[0].raw_data[:-1]
    elif change == "huge weights":
        graph.initializer[0].dims[:] = [2**62, 2**62, 2, 2]
    elif change == "negative weights":
        graph.initializer[0].dims[:] = [-2, -2, 3, 3]
    return proto


@pytest.mark.parametrize("change", [
    "cycle", "a node that needs itself", "missing input", "two producers", "string constant", "string input", "no nodes",
    "nothing", "no outputs", "output from nowhere", "short weights", "huge weights", "negative weights",
])
def test_graphs_that_make_no_sense(change: str, tmp_path: Path) -> None:
    source = tmp_path / "m.onnx"
    source.write_bytes(broken(change).SerializeToString())
    with pytest.raises(REFUSED):
        mnn.convert(source, tmp_path / "m.mnn")
    assert list(tmp_path.iterdir()) == [source]


def test_names_that_are_no_text_are_refused() -> None:
    data = small().SerializeToString()
    with pytest.raises(mnn.ModelFormatError, match="UTF-8|damaged"):
        mnn.convert(data.replace(b"Softmax", b"Softm\xff\xfe"), converter="onnx")


def test_two_outputs_of_one_name() -> None:
    proto = small()
    proto.graph.output.append(proto.graph.output[0])
    with contextlib.suppress(*REFUSED):
        assert {o.name for o in convert(proto).outputs} == {"y"}


def test_external_data_of_the_file_itself_is_read_only_as_far_as_it_goes(tmp_path: Path) -> None:
    proto = small()
    weight = proto.graph.initializer[0]
    (tmp_path / "w.bin").write_bytes(bytes(numpy_helper.to_array(weight).tobytes()))
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "w.bin", "offset": str(2**63), "length": "144"}.items():
        weight.external_data.add(key=key, value=value)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(mnn.ModelFormatError, match="w"):
        mnn.convert(tmp_path / "m.onnx")
