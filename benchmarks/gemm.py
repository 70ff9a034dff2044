"""Speed of the matrix product (constant right side) on one thread: GFLOP/s for each instruction set, and the ratio to NumPy.

    python benchmarks/gemm.py [M N K]      default: 512 512 512
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import mnn_cpu_x86  # noqa: E402
import numpy as np  # noqa: E402

import mnn_core as mnn  # noqa: E402


def best(run: Callable[[], object], seconds: float = 1.0) -> float:
    """Seconds of the fastest of many runs."""
    run()
    fastest, until = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < until:
        start = time.perf_counter()
        run()
        fastest = min(fastest, time.perf_counter() - start)
    return fastest


def main() -> None:
    m, n, k = (int(v) for v in sys.argv[1:4]) if len(sys.argv) > 3 else (512, 512, 512)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    graph = mnn.Graph(ops=[mnn.Op("MatMul", ["a", "b"], ["y"])], constants={"b": b},
                      inputs=[mnn.TensorInfo("a", a.dtype, a.shape)], outputs=[mnn.TensorInfo("y", None, None)])
    work = 2e-9 * m * n * k
    peer = best(lambda: a @ b)
    print(f"NumPy's BLAS  {work / peer:8.1f} GFLOP/s")
    for isa in mnn_cpu_x86.CpuX86.library().isas:
        model = mnn.load(graph, backend="cpu-x86", threads=1, options={"isa": isa})
        ours = best(lambda model=model: model.run({"a": a}))
        print(f"{isa:12}  {work / ours:8.1f} GFLOP/s   {peer / ours:5.2f} x NumPy")


if __name__ == "__main__":
    main()
