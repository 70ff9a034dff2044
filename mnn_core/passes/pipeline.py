"""The order in which passes run."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..errors import GraphError
from ..ir import Graph
from . import Pass
from .common_subexpressions import common_subexpressions
from .constant_folding import constant_folding
from .convolution_activation import convolution_activation
from .convolution_affine import convolution_affine
from .convolution_pad import convolution_pad
from .dead_code import dead_code
from .gelu import gelu
from .identity import identity
from .layer_norm import layer_norm
from .matmul_bias import matmul_bias
from .permute import permute
from .reshape import reshape
from .squeeze import squeeze
from .swish import swish

#: The passes of optimisation level 1, in order; they are repeated until none changes anything.
PASSES: tuple[Pass, ...] = (
    dead_code, identity, constant_folding, common_subexpressions, permute, squeeze, reshape, layer_norm, gelu, swish,
    convolution_pad, convolution_affine, convolution_activation, matmul_bias, dead_code,
)

#: A pass that moves an op down moves it by one place; nothing sensible needs more rounds than this.
_MAX_ROUNDS = 400


def optimize(graph: Graph, level: int = 1, skip: Collection[str] = (), extra: Iterable[Pass] = ()) -> int:
    """Rewrites a graph and its subgraphs in place until no pass changes anything; returns the number of changes.

    level: 0 does nothing, 1 and 2 run everything. skip: names of passes to leave out. extra: passes of plugins, run after
    the built-in ones. Results stay the same up to rounding. Raises GraphError if a pass leaves an inconsistent graph.
    """
    if level <= 0:
        return 0
    passes = [p for p in (*PASSES, *extra) if p.name not in skip]
    total = 0
    for g in (graph, *graph.subgraphs.values()):
        for _ in range(_MAX_ROUNDS):
            changed = sum(p.run(g) for p in passes)
            total += changed
            if not changed:
                break
    try:
        graph.check()
    except GraphError as error:
        raise GraphError(f"an optimisation pass left an inconsistent graph: {error}; convert with optimize_level=0, or skip "
                         f"passes: {', '.join(p.name for p in passes)}") from error
    return total
