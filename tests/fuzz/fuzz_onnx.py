"""Fuzz target: converting, and running, damaged .onnx files raises MNNErrors only, on every CPU backend installed.

    python tests/fuzz/fuzz_onnx.py [SECONDS] [SEED]      a loop of random damage
    python tests/fuzz/fuzz_onnx.py --atheris [OPTIONS]   coverage-guided, where atheris is installed

The file being tried is kept as fuzz_onnx_fault.onnx, so that one that ends the process is found there.
"""

from __future__ import annotations

import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import mnn_core as mnn

#: Bytes of address space that one loop may use: sizes that a file makes up end in an error, not in a machine without memory.
SPACE = 3 << 30
#: Seconds that the conversion of one file may take, and its runs (well-formed files may ask for much work).
PATIENCE, LONG = 1.0, 20.0
EXTREMES = (0, 1, -1, 2, -2, 3, 7, 100, 65536, 2**30, 2**31 - 1, -(2**31), 2**31, 2**62, -(2**63), 2**63 - 1)


def _array(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _model(nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray], shape: tuple[int, ...] = (1, 4, 8, 8),
           outputs: tuple[str, ...] = ("y",)) -> bytes:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name=n) for n in outputs],
                              [numpy_helper.from_array(v, n) for n, v in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def seeds() -> list[bytes]:
    """The good files that damage starts from."""
    node, ints = helper.make_node, lambda *v: np.array(v, np.int64)
    images = [
        node("Conv", ["x", "w", "b"], ["a"], kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1], group=1),
        node("Relu", ["a"], ["r"]),
        node("Conv", ["r", "dw"], ["d"], kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1], group=8),
        node("MaxPool", ["d"], ["m"], kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 0, 0], dilations=[1, 1], ceil_mode=0),
        node("AveragePool", ["m"], ["v"], kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1], count_include_pad=1),
        node("ConvTranspose", ["v", "t"], ["y"], kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 0, 0],
             output_padding=[0, 0], dilations=[1, 1], group=1),
    ]
    moves = [
        node("Transpose", ["x"], ["t"], perm=[0, 2, 3, 1]), node("Reshape", ["t", "shape"], ["s"], allowzero=0),
        node("Slice", ["s", "from", "to", "axes", "steps"], ["c"]), node("Gather", ["c", "pick"], ["g"], axis=1),
        node("Pad", ["g", "pads", "fill"], ["p"], mode="constant"), node("Concat", ["p", "p"], ["k"], axis=1),
        node("Expand", ["k", "wide"], ["e"]), node("Tile", ["e", "times"], ["l"]), node("Unsqueeze", ["l", "axes"], ["u"]),
        node("DepthToSpace", ["u"], ["h"], blocksize=1), node("Split", ["h"], ["y", "z"], axis=3),
    ]
    sizes = [
        node("Resize", ["x", "", "scales"], ["a"], mode="linear", coordinate_transformation_mode="half_pixel"),
        node("ReduceMean", ["a"], ["m"], axes=[2, 3], keepdims=1), node("ReduceMax", ["a"], ["n"], axes=[2, 3], keepdims=1),
        node("Add", ["m", "n"], ["s"]), node("Softmax", ["s"], ["q"], axis=1), node("ArgMax", ["a"], ["i"], axis=3, keepdims=1),
        node("TopK", ["a", "k"], ["v", "w"], axis=-1, largest=1, sorted=1), node("CumSum", ["a", "last"], ["y"], exclusive=0),
        node("GatherND", ["a", "at"], ["f"], batch_dims=0), node("OneHot", ["at", "depth", "values"], ["o"], axis=-1),
        node("LRN", ["x"], ["e"], size=3, alpha=0.1, beta=0.7, bias=1.0),
    ]
    memory = [
        node("Reshape", ["x", "shape"], ["a"]),
        node("LSTM", ["a", "w", "r", "b"], ["l", "h", "c"], hidden_size=4, direction="forward"),
        node("Squeeze", ["l", "one"], ["s"]), node("GRU", ["s", "w3", "r3"], ["g"], hidden_size=4),
        node("MatMul", ["s", "m"], ["n"]), node("Gemm", ["m", "m"], ["e"], alpha=1.0, beta=1.0, transA=1, transB=0),
        node("LayerNormalization", ["n", "scale"], ["y"], axis=-1), node("Einsum", ["s", "m"], ["z"], equation="abc,cd->abd"),
    ]
    return [
        _model(images, {"w": _array(8, 4, 3, 3), "b": _array(8), "dw": _array(8, 1, 3, 3), "t": _array(8, 4, 2, 2)}),
        _model(moves, {"shape": ints(2, 32, 4), "from": ints(1), "to": ints(30), "axes": ints(1), "steps": ints(2),
                       "pick": ints(0, 3, 5), "pads": ints(0, 1, 0, 0, 1, 0), "fill": _array(), "wide": ints(2, 10, 4),
                       "times": ints(1, 2, 1)}, outputs=("y", "z")),
        _model(sizes, {"scales": np.array([1, 1, 2, 2], np.float32), "k": ints(3), "last": np.array(-1, np.int64),
                       "at": np.array([[0, 1], [0, 2]], np.int64), "depth": np.array(5, np.int64),
                       "values": np.array([0, 1], np.float32)}, outputs=("y", "q", "i", "v", "w", "f", "o", "e")),
        _model(memory, {"shape": ints(8, 4, 8), "w": _array(1, 16, 8), "r": _array(1, 16, 4), "b": _array(1, 32),
                        "one": ints(1), "w3": _array(1, 12, 4), "r3": _array(1, 12, 4), "m": _array(4, 4), "scale": _array(4)},
               outputs=("y", "h", "c", "g", "e", "z")),
    ]


def flipped(good: bytes, rng: np.random.Generator) -> bytes:
    """A good file with a few bytes changed."""
    data = bytearray(good)
    for at in rng.integers(0, len(data), rng.integers(1, 4)):
        data[at] ^= 1 << int(rng.integers(8)) if rng.integers(2) else int(rng.integers(1, 256))
    return bytes(data)


def twisted(good: bytes, rng: np.random.Generator) -> bytes:
    """A good file in which an attribute, or an element of an integer constant, is extreme: well-formed, but hostile."""
    model = onnx.ModelProto.FromString(good)
    for _ in range(int(rng.integers(1, 3))):
        value = EXTREMES[int(rng.integers(len(EXTREMES)))]
        attributes = [a for n in model.graph.node for a in n.attribute if a.type in (a.INT, a.INTS, a.FLOAT)]
        tensors = [t for t in model.graph.initializer if t.data_type == TensorProto.INT64]
        if tensors and rng.integers(2):
            tensor = tensors[int(rng.integers(len(tensors)))]
            array = numpy_helper.to_array(tensor).copy()
            array.reshape(-1)[int(rng.integers(array.size))] = value
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        elif attributes:
            attribute = attributes[int(rng.integers(len(attributes)))]
            if attribute.type == attribute.INT:
                attribute.i = value
            elif attribute.type == attribute.FLOAT:
                attribute.f = float(rng.choice([0.0, -1.0, 1e38, np.nan, np.inf]))
            elif attribute.ints:
                attribute.ints[int(rng.integers(len(attribute.ints)))] = value
    return model.SerializeToString()


def one(data: bytes) -> int:
    """Converts and runs one file; anything but results or MNNErrors is a fault. Returns how many backends ran it."""
    start = time.monotonic()
    try:
        graph = mnn.convert(data, converter="onnx")
    except mnn.MNNError:
        return 0
    finally:
        if time.monotonic() - start > PATIENCE:
            raise TimeoutError(f"conversion took {time.monotonic() - start:.1f} s")
    ran = 0
    for backend in ("numpy", "cpu-x86"):
        if backend in mnn.backends():
            try:
                model = mnn.load(graph, backend=backend, threads=1)
                feed = {i.name: np.ones([2 if d is None else min(d, 16) for d in i.shape or ()], i.dtype) for i in model.inputs}
                model.run(feed)
                ran += 1
            except mnn.MNNError:
                pass
    return ran


def main() -> None:
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["--atheris"]:
        import atheris

        atheris.Setup([sys.argv[0], *sys.argv[2:]], one)
        atheris.Fuzz()
    resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))
    seconds, seed = float(sys.argv[1]) if len(sys.argv) > 1 else 60, int(sys.argv[2]) if len(sys.argv) > 2 else 0
    rng, until, count, ran = np.random.default_rng(seed), time.monotonic() + seconds, 0, 0
    good, fault = seeds(), Path("fuzz_onnx_fault.onnx")
    while time.monotonic() < until:
        data = (flipped, twisted)[count % 2](good[count // 2 % len(good)], rng)
        fault.write_bytes(data)
        start = time.monotonic()
        ran += one(data)
        if time.monotonic() - start > LONG:
            raise TimeoutError(f"{fault} took {time.monotonic() - start:.1f} s")
        count += 1
    fault.unlink(missing_ok=True)
    print(f"{count} files, {ran} runs, no fault")


if __name__ == "__main__":
    main()
