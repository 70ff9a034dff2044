"""The reference backend: runs every op by its definition. Slow, right, always there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import KernelError
from ..ir import Op, Spec
from ..ops import find
from .base import Device, KernelBackend, PythonKernel, Support


class NumpyBackend(KernelBackend):
    id = "numpy"
    priority = -100

    @classmethod
    def probe(cls) -> list[Device]:
        return [Device("numpy", f"NumPy {np.__version__}")]

    def kernel(self, op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> PythonKernel | Support:
        definition = find(op.type)
        if definition is None:
            return Support(False, f"no definition of op type {op.type!r} is loaded")
        compute = definition.compute

        def run(ins: Sequence[np.ndarray | None], outs: Sequence[np.ndarray]) -> None:
            results = compute(op, *ins)
            values = results if isinstance(results, tuple) else (results,)
            for out, value in zip(outs, [v for name, v in zip(op.outputs, values) if name], strict=True):
                if not isinstance(value, (np.ndarray, np.generic)):
                    raise KernelError(f"{op}: its NumPy kernel gave a {type(value).__name__}, not an array")
                if value.shape != out.shape or value.dtype != out.dtype:
                    raise KernelError(f"{op}: its NumPy kernel gave {value.dtype}{list(value.shape)}, "
                                      f"its shape rule announced {out.dtype}{list(out.shape)}")
                out[...] = value

        return run
