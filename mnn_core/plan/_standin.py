"""Stand-ins until the runtime and raster merging land."""
# ruff: noqa
import os
from dataclasses import dataclass
from typing import Any
import numpy as np
from ..errors import CancelledError, KernelError, MNNError


class Declined(Exception): pass
class NativeLibrary: pass
class KernelRow: pass
class SharedStore: pass
class CancelToken:
    cancelled = False
    def cancel(self): self.cancelled = True
def default_threads(): return os.cpu_count()
@dataclass
class TensorDesc:
    shape: tuple; dtype: Any; layout: str = "p"; block: int = 0
@dataclass
class ProgramTensor:
    desc: Any; place: tuple
@dataclass
class Step:
    kernel: Any; inputs: tuple; outputs: tuple; name: str
class Program:
    def __init__(self, tensors, steps, inputs, outputs, arena_bytes):
        self.tensors, self.steps, self.inputs, self.outputs, self.arena_bytes = tensors, steps, inputs, outputs, arena_bytes
    def run(self, inputs, *, cancel=None, before=None, after=None, profile=False):
        arena = np.empty(self.arena_bytes + 64, np.uint8)
        outs = [np.empty(self.tensors[i].desc.shape, self.tensors[i].desc.dtype) for i in self.outputs]
        cache = {}
        def get(i):
            if i < 0: return None
            if i in cache: return cache[i]
            d, p = self.tensors[i].desc, self.tensors[i].place
            n = int(np.prod(d.shape, dtype=np.int64)) * np.dtype(d.dtype).itemsize
            if p[0] == "arena": a = arena[p[1]:p[1]+n].view(d.dtype).reshape(d.shape)
            elif p[0] == "input": a = inputs[p[1]]
            elif p[0] == "output": a = outs[p[1]]
            elif p[0] == "const": a = p[1]
            else: a = get(p[1]).reshape(d.shape)
            cache[i] = a
            return a
        import time; seconds = []
        for s in self.steps:
            t0 = time.perf_counter()
            if cancel is not None and cancel.cancelled: raise CancelledError("cancelled")
            try: s.kernel([get(i) for i in s.inputs], [get(i) for i in s.outputs])
            except MNNError: raise
            except Exception as e: raise KernelError(f"{s.name}: {type(e).__name__}: {e}") from e
            seconds.append(time.perf_counter()-t0)
        return (outs, seconds) if profile else outs
