"""What a run of a native program costs beside its kernels, in microseconds.

    python benchmarks/call_overhead.py

A library with a kernel that does nothing is compiled with the system's compiler; programs of one and of many steps of it are
run on small and large arrays. "alone" is what np.empty costs for the output: no run can cost less.
"""

from __future__ import annotations

import subprocess
import tempfile
import timeit
from collections.abc import Callable
from pathlib import Path

import numpy as np

import mnn_core as mnn
from mnn_core.runtime import NativeLibrary, Program, ProgramTensor, SharedStore, Step, TensorDesc

LIMIT = 5.0  # microseconds, for a program of one step
SOURCE = """
#include <string.h>
#include "mnn/kernel.h"
static void body(void *arg, int64_t begin, int64_t end, int32_t worker) { (void)arg, (void)begin, (void)end, (void)worker; }
static int nothing(const mnn_call *c) { return (void)c, 0; }
static int loop(const mnn_call *c) { return c->parallel(c, 64, 1, body, 0), 0; }
static int supports(const char *isa) { return !*isa; }
static int32_t block(const char *isa) { return *isa; }
static const mnn_kernel kernels[] = {{"nothing", "Nothing", "*->*", "", "p->p", 0, 0, nothing},
                                     {"loop", "Loop", "*->*", "", "p->p", 0, 0, loop}};
static const mnn_library library = {MNN_KERNEL_ABI, sizeof library, "overhead", supports, block, 2, sizeof *kernels, kernels};
const mnn_library *mnn_kernels(void) { return &library; }
"""


def program(library: NativeLibrary, size: int, steps: int, op: str = "Nothing", threads: int = 1) -> Program:
    """Steps of one op on arrays of `size` floats, from the input to the output."""
    desc = TensorDesc((size,), np.float32)
    (row,) = library.rows(op, ["f32"], ["f32"])
    kernel = row.prepare({}, [desc], [desc], [None], threads, SharedStore(), op)
    tensors = [ProgramTensor(desc, ("input", 0)), ProgramTensor(desc, ("output", 0))]
    return Program(tensors, [Step(kernel, (0,), (1,), op)] * steps, [0], [1], 0)


def best(call: Callable[[], object], number: int = 5000, repeats: int = 9) -> float:
    """Microseconds of one call: the best of several series."""
    call()
    return min(timeit.repeat(call, number=number, repeat=repeats)) / number * 1e6


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder, "kernels.c"), Path(folder, "kernels.so")
        source.write_text(SOURCE)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", f"-I{mnn.get_include()}", source, "-o", built], check=True)
        library = NativeLibrary(built)
        one = 0.0
        for size in (1, 1000, 4000, 100_000):
            x = [np.zeros(size, np.float32)]
            run = program(library, size, 1).run
            alone, call = best(lambda size=size: np.empty((size,), np.float32)), best(lambda run=run, x=x: run(x))
            one = one or call
            print(f"{size:8} floats, one step {call:6.2f} us    np.empty alone {alone:6.2f} us")
        x = [np.zeros(1, np.float32)]
        for what, how in (("a further step", ()), ("a loop on one thread", ("Loop", 1)), ("a loop on two", ("Loop", 2))):
            run = program(library, 1, 1000, *how).run  # microseconds of a thousand are nanoseconds of one
            print(f"{what} {best(lambda run=run: run(x), 100) - one:6.1f} ns")
    print(f"one step: {one:.2f} us, {'within' if one < LIMIT else 'over'} the limit of {LIMIT} us")
    return int(one >= LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
