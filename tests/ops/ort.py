"""onnxruntime as an oracle: runs one ONNX node."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper


@lru_cache(maxsize=256)
def _session(op_type: str, dtypes: tuple[Any, ...], attrs: tuple[tuple[str, Any], ...], opset: int,
             outputs: int) -> onnxruntime.InferenceSession:
    names = [f"x{i}" if d is not None else "" for i, d in enumerate(dtypes)]
    node = helper.make_node(op_type, names, [f"y{i}" for i in range(outputs)], **dict(attrs))
    types = [helper.np_dtype_to_tensor_dtype(np.dtype(d)) for d in dtypes if d is not None]
    graph = helper.make_graph(
        [node], "one", [helper.make_tensor_value_info(n, t, None) for n, t in zip(filter(None, names), types)],
        [helper.make_empty_tensor_value_info(f"y{i}") for i in range(outputs)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(op_type: str, inputs: Sequence[np.ndarray | None], opset: int = 18, outputs: int = 1, **attrs: Any) -> Any:
    """The outputs of one ONNX node: an array, or a list if outputs > 1."""
    frozen = tuple(sorted((k, tuple(v) if isinstance(v, list) else v) for k, v in attrs.items()))
    session = _session(op_type, tuple(None if x is None else x.dtype.str for x in inputs), frozen, opset, outputs)
    results = session.run(None, {f"x{i}": x for i, x in enumerate(inputs) if x is not None})
    return results[0] if outputs == 1 else results


__all__ = ["onnx", "run"]
