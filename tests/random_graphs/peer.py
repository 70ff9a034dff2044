"""onnxruntime in a process of its own, for some models end the process that it runs in."""

from __future__ import annotations

import atexit
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import get_context
from typing import Any


class Refused(Exception):
    """onnxruntime does not run this node, or its result is of no use."""


@cache
def _session_options() -> Any:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options


def _run(model: bytes, feeds: dict[str, Any]) -> list[Any] | str:
    """The results, or what onnxruntime said. Run in the other process."""
    import onnxruntime

    try:
        session = onnxruntime.InferenceSession(model, _session_options(), providers=["CPUExecutionProvider"])
        return session.run(None, feeds)
    except Exception as error:  # onnxruntime has a dozen classes of errors, without a base class of its own
        return f"{type(error).__name__}: {error}"


@cache
def _process() -> ProcessPoolExecutor:
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    atexit.register(pool.shutdown)
    return pool


def run_onnxruntime(model: bytes, feeds: dict[str, Any]) -> list[Any]:
    """What onnxruntime gives for a serialised model. Raises Refused."""
    try:
        found = _process().submit(_run, model, feeds).result()
    except BrokenProcessPool:
        _process.cache_clear()  # the next call starts another
        raise Refused("onnxruntime ends the process") from None
    if isinstance(found, str):
        raise Refused(found)
    return found
