"""Layout choice of one op: what a row reads and writes, and which row is tried first."""

from dataclasses import dataclass

import numpy as np
import pytest

from mnn_core import Spec
from mnn_core.plan.layout import Fit, fit, ranked, stored_bytes

IMAGE, VECTOR, BIAS = (Spec(s, np.dtype(np.float32)) for s in ((1, 20, 7, 5), (20,), (1, 20, 1, 1)))


@dataclass
class Row:
    layouts: str
    isa: str = "avx2"
    block: int = 8

    def layout_of_input(self, index, count):
        reads = self.layouts.split("->")[0].split(",")
        return reads[min(index, len(reads) - 1)]

    def layout_of_output(self, index):
        writes = self.layouts.split("->")[1].split(",")
        return writes[min(index, len(writes) - 1)]


@pytest.mark.parametrize(("layouts", "ins", "outs", "forms", "expected"), [
    ("b,p,p->b", [IMAGE, VECTOR, None], [IMAGE], [{8}, {0}, set()], Fit((8, 0, 0), (8,), 0)),
    ("b,p,p->b", [IMAGE, VECTOR, None], [IMAGE], [{0}, {0}, set()], Fit((8, 0, 0), (8,), 2800)),
    ("p->p", [IMAGE], [IMAGE], [{8}], Fit((0,), (0,), 2800)),
    ("f->f", [IMAGE], [IMAGE], [{8}], Fit((8,), (8,), 0)),
    ("f->f", [IMAGE], [IMAGE], [{0, 8}], Fit((0,), (0,), 0)),
    ("f,f->f", [IMAGE, IMAGE], [IMAGE], [{0}, {8}], Fit((8, 8), (8,), 2800)),
    ("f,f->f", [IMAGE, BIAS], [IMAGE], [{8}, {0}], Fit((0, 0), (0,), 2800)),  # shapes differ: followers are plain
    ("f,f->f", [IMAGE, IMAGE], [IMAGE], [{16}, {16}], Fit((0, 0), (0,), 5600)),  # another library's block
    ("b->p", [VECTOR], [VECTOR], [{0}], None),  # no channels to block
])
def test_fit(layouts, ins, outs, forms, expected):
    assert fit(Row(layouts), ins, outs, forms) == expected


def test_cheap_ops_take_the_row_that_converts_least_of_the_best_isa():
    rows = [Row("b->b", "avx512"), Row("p->p", "avx512"), Row("p->p", "sse41")]
    fits = [(r, Fit((0,), (0,), cost)) for r, cost in zip(rows, (100, 0, 0))]
    assert [r for r, _ in ranked("Pooling", fits)] == [rows[1], rows[0], rows[2]]
    assert [r for r, _ in ranked("Convolution", fits)] == rows


def test_blocks_round_channels_up():
    assert stored_bytes(IMAGE, 0) == 20 * 35 * 4
    assert stored_bytes(IMAGE, 8) == 24 * 35 * 4
    assert stored_bytes(Spec((2, 0, 3), np.dtype(np.int8)), 16) == 0
