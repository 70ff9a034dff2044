"""Large weights in other files are mapped, turned without a copy, and written one after the other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import mnn_core as mnn

SIZE = 1024


def chain(folder: Path, count: int, kind: str) -> Path:
    """A chain of products with matrices of SIZE x SIZE that lie in w.bin."""
    rng, weights, nodes, x = np.random.default_rng(0), [], [], "x"
    with open(folder / "w.bin", "wb") as file:
        for i in range(count):
            data = (rng.standard_normal((SIZE, SIZE), np.float32) / 32).tobytes()
            weight = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[SIZE, SIZE],
                                 data_location=TensorProto.EXTERNAL)
            for key, value in (("location", "w.bin"), ("offset", file.tell()), ("length", len(data))):
                weight.external_data.add(key=key, value=str(value))
            file.write(data)
            weights.append(weight)
            if kind != "plain":
                nodes.append(helper.make_node("Transpose", [f"w{i}"], [f"t{i}"]))
            name = f"w{i}" if kind == "plain" else f"t{i}"
            if kind == "gemm":
                nodes.append(helper.make_node("Gemm", [x, name], [f"y{i}"], transB=1))
            else:
                nodes.append(helper.make_node("MatMul", [x, name], [f"y{i}"]))
            x = f"y{i}"
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", SIZE]) for n in ("x", x)]
    model = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], weights),
                              opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save_model(model, str(folder / "m.onnx"))
    return folder / "m.onnx"


@pytest.mark.parametrize("kind", ["plain", "transpose", "gemm"])
@pytest.mark.parametrize("bits", [0, 8])
def test_mapped_weights_give_the_same(kind: str, bits: int, tmp_path: Path) -> None:
    source = chain(tmp_path, 2, kind)
    mnn.convert(source, tmp_path / "m.mnn", save_external_data=True, weight_quant_bits=bits)
    feed = {"x": np.random.default_rng(1).standard_normal((3, SIZE), np.float32)}
    (want,) = onnxruntime.InferenceSession(str(source)).run(None, feed)
    found = mnn.load(tmp_path / "m.mnn", backend="numpy").run(feed)["y1"]
    np.testing.assert_allclose(found, want, atol=(2e-2 if bits else 1e-5) * np.abs(want).max())


SCRIPT = """
import sys
import mnn_core as mnn
def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) // 1024
mnn.convert(sys.argv[1] + "/small/m.onnx", sys.argv[1] + "/small/m.mnn", save_external_data=True, **eval(sys.argv[2]))
before = peak()
mnn.convert(sys.argv[1] + "/large/m.onnx", sys.argv[1] + "/large/m.mnn", save_external_data=True, **eval(sys.argv[2]))
print(peak() - before)
"""


@pytest.mark.parametrize("kind", ["plain", "transpose"])
@pytest.mark.parametrize("options", ["{}", "{'weight_quant_bits': 8}", "{'fp16': True}"])
def test_memory_does_not_grow_with_the_weights(kind: str, options: str, tmp_path: Path) -> None:
    """A model of 160 MB in tensors of 4 MB needs as much memory as one of 8 MB, and a little for its graph."""
    for name, count in (("small", 2), ("large", 40)):
        (tmp_path / name).mkdir()
        chain(tmp_path / name, count, kind)
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path), options], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 25
