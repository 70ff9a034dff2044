"""Speed of the matrix product on one thread, for each instruction set: gemm.py [M N K ...]"""

from __future__ import annotations

import sys
import time

import numpy as np
from mnn_cpu_x86 import CpuX86

import mnn_core as mnn
from mnn_core.ir import Graph, Op, TensorInfo


def gflops(isa: str, m: int, n: int, k: int, seconds: float = 0.7) -> float:
    """Best GFLOP/s of (m, k) x (k, n) with a constant right side, of runs that take about `seconds` in all."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((k, n)).astype(np.float32)
    graph = Graph([Op("MatMul", ["x", "w"], ["y"], {}, "product")], [TensorInfo("x", np.dtype(np.float32), (m, k))],
                  [TensorInfo("y", np.dtype(np.float32), (m, n))], {"w": weight})
    model = mnn.load(graph, backend="cpu-x86", threads=1, strict=True, options={"isa": isa})
    feed = {"x": rng.standard_normal((m, k)).astype(np.float32)}
    np.testing.assert_allclose(model.run(feed)["y"], feed["x"] @ weight, rtol=0, atol=1e-3)
    best, until = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < until:
        start = time.perf_counter()
        model.run(feed)
        best = min(best, time.perf_counter() - start)
    return 2e-9 * m * n * k / best


def main() -> None:
    sizes = [int(a) for a in sys.argv[1:]] or [512, 512, 512, 1024, 1024, 1024, 64, 768, 768, 1, 1024, 1024]
    for isa in CpuX86.probe()[0].capabilities["isas"]:
        for m, n, k in zip(sizes[::3], sizes[1::3], sizes[2::3]):
            print(f"{isa:7} {m:5} x {n:5} x {k:5}  {gflops(isa, m, n, k):7.1f} GFLOP/s", flush=True)


if __name__ == "__main__":
    main()
