"""Fuzz target: reading, and running, damaged .mnn files raises MNNErrors only.

    python tests/fuzz/fuzz_mnn.py [SECONDS] [SEED]      a loop of random damage
    python tests/fuzz/fuzz_mnn.py --atheris [OPTIONS]   coverage-guided, where atheris is installed
"""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "formats"))

import models
from samples import feed, small

import mnn_core as mnn
from mnn_core.formats import read_mnn, write_mnn
from mnn_core.ir import decoded


def read(data: bytes) -> mnn.Graph | None:
    """Reads one input and decodes its weights; None if it is refused. Anything but a ModelFormatError is a fault."""
    try:
        graph = read_mnn(data)
        for part in (graph, *graph.subgraphs.values()):
            for constant in part.constants.values():
                decoded(constant)
    except mnn.ModelFormatError:
        return None
    return graph


def one(data: bytes) -> None:
    """Reads and runs one input; anything but a result or an MNNError is a fault."""
    graph = read(data)
    if graph is not None:
        with contextlib.suppress(mnn.MNNError):
            mnn.load(graph, backend="numpy").run(feed())


def seeds() -> list[bytes]:
    """The good files that damage starts from."""
    return [write_mnn(make()) for make in (small, models.convolutions, models.branches, models.copies)]


def damaged(good: bytes, rng: np.random.Generator) -> bytes:
    """A good file with some bytes flipped, words replaced, or pieces moved."""
    data = bytearray(good)
    for _ in range(int(rng.integers(1, 6))):
        at = int(rng.integers(len(data)))
        kind = int(rng.integers(4))
        if kind == 0:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            data[at : at + 4] = int(rng.choice([0, 1, 2**31 - 1, 2**32 - 1, len(data)])).to_bytes(4, "little")
        elif kind == 2:
            half = at & ~1  # vtables are of such numbers
            data[half : half + 2] = int(rng.integers(0, 64)).to_bytes(2, "little")
        else:
            start = int(rng.integers(len(data)))
            data[at : at + 16] = data[start : start + 16]
    return bytes(data)


def main() -> None:
    good = seeds()
    if sys.argv[1:2] == ["--atheris"]:
        import atheris

        atheris.Setup([sys.argv[0], *sys.argv[2:]], one)
        atheris.Fuzz()
    seconds, seed = float(sys.argv[1]) if len(sys.argv) > 1 else 60, int(sys.argv[2]) if len(sys.argv) > 2 else 0
    rng, until, count = np.random.default_rng(seed), time.monotonic() + seconds, 0
    while time.monotonic() < until:
        data = damaged(good[count % len(good)], rng)
        try:
            one(data)
        except BaseException:
            Path("fuzz_mnn_fault.mnn").write_bytes(data)
            raise
        count += 1
    print(f"{count} files, no fault")


if __name__ == "__main__":
    main()
