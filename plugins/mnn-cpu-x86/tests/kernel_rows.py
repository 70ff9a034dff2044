"""Runs single kernel rows of the library: any layout, any instruction set; lanes past the last channel hold NaN."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import mnn_cpu_x86
import numpy as np

import mnn_core as mnn
from mnn_core.backends.native import type_name
from mnn_core.ir import Op, Spec, schema
from mnn_core.ops import definition
from mnn_core.runtime import KernelRow, NativeLibrary, Program, ProgramTensor, SharedStore, Step, TensorDesc
from mnn_core.runtime._runtime import Declined

PATH = mnn_cpu_x86.CpuX86.library_path
#: Instruction sets; ISAS without those that have kernels for products of bytes only.
EVERY_ISA = [isa for isa in NativeLibrary(PATH).isas if isa]
ISAS = [isa for isa in EVERY_ISA if isa != "avx512vnni"]


@functools.cache
def library(isa: str) -> NativeLibrary:
    """The library with the rows of one instruction set (and of those below it)."""
    return NativeLibrary(PATH, isa=isa)


def blocked(x: np.ndarray, block: int) -> np.ndarray:
    """(N, C, ...) as [N][C / block][...][block], with NaN (or 77) in the lanes that stand for no channel."""
    blocks = -(-x.shape[1] // block)
    wide = np.full((x.shape[0], blocks * block, *x.shape[2:]), np.nan if x.dtype.kind == "f" else 77, x.dtype)
    wide[:, :x.shape[1]] = x
    return np.ascontiguousarray(np.moveaxis(wide.reshape(x.shape[0], blocks, block, *x.shape[2:]), 2, -1))


def plain(x: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """The inverse of `blocked`."""
    rows = np.moveaxis(x, -1, 2)
    return np.ascontiguousarray(rows.reshape(x.shape[0], x.shape[1] * x.shape[-1], *shape[2:])[:, :shape[1]])


def run_row(row: KernelRow, op: Op, arrays: Sequence[np.ndarray | None], constant: set[int], outs: Sequence[Spec],
            threads: int = 1, follow: str = "p") -> list[np.ndarray]:
    """Outputs of one row, as plain arrays. constant: inputs that the row's prepare may read. Raises Declined."""
    tensors: list[ProgramTensor] = []
    fed: list[np.ndarray] = []

    def add(shape: tuple[int, ...], dtype: np.dtype, layout: str, place: str, number: int) -> tuple[int, TensorDesc]:
        desc = TensorDesc(shape, dtype, layout, row.block if layout == "b" else 0)
        if layout == "b":  # a view of a plain array of the blocked form
            n, c, *spatial = shape
            tensors.append(ProgramTensor(TensorDesc((n, -(-c // row.block), *spatial, row.block), dtype), (place, number)))
            tensors.append(ProgramTensor(desc, ("alias", len(tensors) - 1, 0)))
        else:
            tensors.append(ProgramTensor(desc, (place, number)))
        return len(tensors) - 1, desc

    reads, in_descs, constants = [], [], []
    for i, x in enumerate(arrays):
        layout = row.layout_of_input(i, len(arrays)).replace("f", follow)
        constants.append(x if i in constant and layout == "p" else None)
        if x is None:
            reads.append(-1)
            in_descs.append(None)
            continue
        index, desc = add(x.shape, x.dtype, layout, "input", len(fed))
        fed.append(blocked(x, row.block) if layout == "b" else np.array(x, order="C"))
        reads.append(index)
        in_descs.append(desc)
    layouts = [row.layout_of_output(i).replace("f", follow) for i in range(len(outs))]
    made = [add(s.shape, s.dtype, layout, "output", i) for i, (s, layout) in enumerate(zip(outs, layouts))]
    kernel = row.prepare({**{n: a.default for n, a in (schema.attributes(op.type) or {}).items()}, **op.attrs}, in_descs,
                         [d for _, d in made], constants, threads, SharedStore(), op.name)
    step = Step(kernel, tuple(reads), tuple(i for i, _ in made), op.name)
    places = {kind: [i for i, t in enumerate(tensors) if t.place[0] == kind] for kind in ("input", "output")}
    results = Program(tensors, [step], places["input"], places["output"], 0).run(fed)
    return [plain(y, s.shape) if layout == "b" else y for y, s, layout in zip(results, outs, layouts)]


def variants(op: Op, arrays: Sequence[np.ndarray | None], outs: Sequence[Spec], isa: str) -> Iterator[tuple[KernelRow, str]]:
    """The rows of an instruction set that take an op's types, each with the layouts that its followers may have."""
    types = [None if a is None else type_name(a.dtype) for a in arrays]
    for row in library(isa).rows(op.type, types, [type_name(s.dtype) for s in outs]):
        if row.isa != isa:
            continue
        layouts = [row.layout_of_input(i, len(arrays)) for i in range(len(arrays))]
        letters = layouts + [row.layout_of_output(i) for i in range(len(outs))]
        shapes = [a.shape for a in arrays if a is not None] + [s.shape for s in outs]
        if any(letter == "b" and len(shape) < 2 for letter, shape in zip(letters, shapes)):
            continue
        yield row, "p"
        if "f" in letters and len(set(shapes)) == 1 and len(shapes[0]) >= 2:
            yield row, "b"


def assert_close(got: np.ndarray, want: np.ndarray, tolerance: float) -> None:
    """Equal shapes and dtypes; finite floats within tolerance of the largest, all else equal."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    scale = max(1.0, float(np.abs(want[np.isfinite(want)]).max(initial=0))) if want.dtype.kind == "f" else 0.0
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * scale, equal_nan=True)


def check(isa: str, op_type: str, attrs: dict[str, Any], inputs: Sequence[np.ndarray | None], constant: Sequence[int] = (),
          tolerance: float = 2e-6, outputs: int = 0) -> list[str]:
    """Compares every row that takes the op with the op's definition, with one thread and with three.

    outputs: how many the op has, where its definition asks for that.
    Returns the names of the rows that ran, "name/b" for followers in the blocked layout. Those that decline are left out.
    """
    names = ["" if a is None else f"x{i}" for i, a in enumerate(inputs)]
    op = Op(op_type, names, [f"y{i}" for i in range(outputs)], attrs, "tested")
    with np.errstate(all="ignore"):
        want = definition(op).compute(op, *inputs)
    want = want if isinstance(want, tuple) else (want,)
    outs = [mnn.Spec(w.shape, w.dtype) for w in want]
    ran = []
    for row, follow in variants(op, inputs, outs, isa):
        try:
            got = run_row(row, op, inputs, set(constant), outs, 1, follow)
        except Declined:
            continue
        for g, w in zip(got, want):
            assert_close(g, w, tolerance)
        for one, three in zip(got, run_row(row, op, inputs, set(constant), outs, 3, follow)):
            assert one.tobytes() == three.tobytes(), f"{row.name}: other bits with three threads"
        ran.append(row.name.removesuffix("_" + isa) + ("/b" if follow == "b" else ""))
    return ran
