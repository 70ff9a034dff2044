"""onnxruntime's own operators, converted, run in the real MNN, as they are made of its ops; onnxruntime tells what is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import peers
from onnx import helper, numpy_helper

import mnn_core as mnn

Arrays = dict[str, np.ndarray]


def _random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _model(op_type: str, inputs: str, feeds: Arrays, constants: Arrays | None = None, outputs: str = "y", **attrs: Any) -> Any:
    """(model, feeds, names of outputs) of one node; "_" is an absent input."""
    domain = "" if op_type == "Where" else "com.microsoft"
    names = ["" if n == "_" else n for n in inputs.split()]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, outputs.split(), domain=domain, **attrs)], "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in feeds.items()],
        [onnx.ValueInfoProto(name=n) for n in outputs.split()],
        [numpy_helper.from_array(v, n) for n, v in (constants or {}).items()])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    proto.ir_version = 10
    return proto, feeds, outputs.split()


def _cases() -> dict[str, Any]:
    rng, found = np.random.default_rng(0), {}
    for bits in (2, 4, 8):
        weights = {"w": rng.integers(0, 256, (64, 4, 32 * bits // 8), np.uint8),
                   "s": rng.uniform(0.01, 0.1, (64, 4)).astype(np.float32),
                   "z": rng.integers(0, 256, (64, 4 * bits // 8), np.uint8)}
        for names in ("x w s", "x w s z"):
            found[f"{bits} bits, {names}"] = _model("MatMulNBits", names, {"x": _random(3, 128)},
                                                    {n: weights[n] for n in names.split()[1:]}, N=64, K=128, bits=bits,
                                                    block_size=32)
    mask = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]], np.int32)
    found["Attention"] = _model("Attention", "x w b m", {"x": _random(2, 5, 6), "m": mask},
                                {"w": _random(6, 24, seed=1), "b": _random(24, seed=2)}, num_heads=2, unidirectional=1)
    new = {n: _random(2, 3, 16, seed=i) for i, n in enumerate("qkv")}
    past = {n: _random(2, 2, 4, 8, seed=i + 3) for i, n in enumerate(("pk", "pv"))}
    found["MultiHeadAttention"] = _model("MultiHeadAttention", "q k v _ _ _ pk pv", {**new, **past}, outputs="y nk nv",
                                         num_heads=2, unidirectional=1)
    angles = np.arange(9)[:, None] / 10.0 ** np.arange(8)
    tables = {"c": np.cos(angles).astype(np.float32), "s": np.sin(angles).astype(np.float32)}
    step = {"q": _random(2, 1, 64), "k": _random(2, 1, 32, seed=1), "v": _random(2, 1, 32, seed=2),
            "pk": _random(2, 2, 4, 16, seed=3), "pv": _random(2, 2, 4, 16, seed=4), "n": np.full(2, 4, np.int32),
            "t": np.array(5, np.int32)}
    found["GroupQueryAttention"] = _model("GroupQueryAttention", "q k v pk pv n t c s", step, tables, "y nk nv", num_heads=4,
                                          kv_num_heads=2, do_rotary=1, softcap=2.0)
    found["SkipLayerNormalization"] = _model("SkipLayerNormalization", "x s g b", {"x": _random(2, 5, 8), "s": _random(5, 8)},
                                             {"g": _random(8, seed=1), "b": _random(8, seed=2)})
    found["FusedConv"] = _model("FusedConv", "x w", {"x": _random(1, 4, 8, 8)}, {"w": _random(6, 4, 3, 3, seed=1)},
                                activation="Relu", kernel_shape=[3, 3])
    for shapes in (((2, 5), (2, 5), (1, 5)), ((2, 5), (1, 5), (2, 5)), ((2, 5), (2, 1), (1, 5))):
        found[f"Where {shapes}"] = _model("Where", "c x y0", {
            "c": rng.random(shapes[0]) < 0.5, "x": _random(*shapes[1]), "y0": _random(*shapes[2], seed=1)})
    return found


def test_the_real_engine_gives_what_onnxruntime_gives(tmp_path: Path) -> None:
    cases, jobs, wanted = _cases(), [], []
    for i, (proto, feeds, outputs) in enumerate(cases.values()):
        path = tmp_path / f"{i}.mnn"
        mnn.convert(proto, str(path), converter="onnx")
        session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
        wanted.append(session.run(outputs, feeds))
        stored = {n: v.astype(np.int32) if v.dtype.kind in "bi" else v for n, v in feeds.items()}
        jobs.append((path, [stored], outputs))
    for name, got, want in zip(cases, peers.run_many(jobs, tmp_path), wanted):
        assert not isinstance(got, str), f"{name}: {got}"
        for a, b in zip(got[0], want):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * float(np.abs(b).max()), err_msg=name)
