"""What a call of `model.run` costs beside the kernel: a model of one small op against the kernel alone.

    python benchmarks/model_overhead.py            # microseconds, for every backend that works here
"""

from __future__ import annotations

import timeit
from collections.abc import Callable

import numpy as np

import mnn_core as mnn
from mnn_core.ops import definition

LIMIT = 15.0  # microseconds


def best(call: Callable[[], object], number: int = 5000, repeats: int = 7) -> float:
    """Microseconds of one call: the best of several series."""
    call()
    return min(timeit.repeat(call, number=number, repeat=repeats)) / number * 1e6


def main() -> None:
    shape = (1, 16)
    op = mnn.Op("Softmax", ["x"], ["y"], {"axis": -1}, "softmax")
    info = mnn.TensorInfo("x", np.dtype(np.float32), (None, 16))
    graph = mnn.Graph(ops=[op], inputs=[info], outputs=[mnn.TensorInfo("y", info.dtype, (None, 16))])
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    feeds = {"x": x}
    compute = definition(op).compute
    out = np.empty_like(x)

    def alone() -> None:
        out[...] = compute(op, x)

    for backend in mnn.backends():
        model = mnn.load(graph, [backend], threads=1)
        total = best(lambda model=model: model.run(feeds))
        # A native kernel of 16 elements takes well under a microsecond: all of the call is counted as overhead.
        kernel = best(alone) if backend == "numpy" else 0.0
        verdict = "ok" if total - kernel < LIMIT else f"more than {LIMIT} us"
        print(f"{backend:12} run {total:6.2f} us   kernel {kernel:6.2f} us   overhead {total - kernel:6.2f} us   {verdict}")


if __name__ == "__main__":
    main()
