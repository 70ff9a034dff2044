"""Layouts: in which physical forms a tensor exists, and which forms a kernel row would read and write.

A form is a block size: 0 is plain row-major, 16 is channel-blocked with 16 channels in a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ..ir import Spec

PLAIN = 0

AnyRow = TypeVar("AnyRow", bound="Row")

#: For these the best kernel wins, whatever it costs to convert to its layout; for others the conversions decide.
HEAVY = frozenset({"Convolution", "ConvolutionDepthwise", "Deconvolution", "DeconvolutionDepthwise", "Convolution3D",
                   "ConvTranspose3D"})


class Row(Protocol):
    """What is asked of a native kernel row here."""

    @property
    def isa(self) -> str: ...

    @property
    def block(self) -> int: ...

    def layout_of_input(self, index: int, count: int) -> str: ...

    def layout_of_output(self, index: int) -> str: ...


@dataclass(frozen=True)
class Fit:
    """Forms in which a row reads and writes tensors; cost: bytes that have to be converted first."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    cost: int


def fit(row: Row, ins: Sequence[Spec | None], outs: Sequence[Spec], forms: Sequence[set[int]]) -> Fit | None:
    """How a row fits tensors that exist in `forms` (one set for each input, empty if absent); None if it does not.

    Followers ("f") stay blocked as long as one of them is blocked and all have one shape; else they are plain.
    """
    reads = [row.layout_of_input(i, len(ins)) for i in range(len(ins))]
    writes = [row.layout_of_output(i) for i in range(len(outs))]
    followers = [i for i, layout in enumerate(reads) if layout == "f" and ins[i] is not None]
    following = [s for s, layout in zip((*ins, *outs), (*reads, *writes)) if layout == "f" and s is not None]
    follow = PLAIN
    if row.block and len({s.shape for s in following}) == 1 and any(forms[i] == {row.block} for i in followers):
        follow = row.block
    wanted = {"p": PLAIN, "b": row.block, "f": follow}
    inputs = tuple(wanted[layout] for layout in reads)
    outputs = tuple(wanted[layout] for layout in writes)
    for spec, form in zip((*ins, *outs), (*inputs, *outputs)):
        if spec is not None and form and spec.rank < 2:
            return None
    cost = sum(s.nbytes for s, form, have in zip(ins, inputs, forms) if s is not None and form not in have)
    return Fit(inputs, outputs, cost)


def ranked(op_type: str, fits: Sequence[tuple[AnyRow, Fit]]) -> list[tuple[AnyRow, Fit]]:
    """Rows in the order in which they are tried: the table's order, but cheap ops take the row that converts least.

    Only rows of the best instruction set are moved up by that.
    """
    if op_type in HEAVY or not fits:
        return list(fits)
    best = fits[0][0].isa
    return sorted(fits, key=lambda f: (f[0].isa != best, f[1].cost if f[0].isa == best else 0))


def stored_bytes(spec: Spec, form: int) -> int:
    """Bytes of a tensor in a form."""
    if not form:
        return spec.nbytes
    n, c, *spatial = spec.shape
    elements = n * -(-c // form) * form
    for d in spatial:
        elements *= d
    return elements * spec.dtype.itemsize
