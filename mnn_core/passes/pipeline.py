"""The order in which passes run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from ..errors import GraphError
from ..ir import Graph
from . import Pass
from .algebra import algebra
from .attention import attention
from .clip import clip
from .common_subexpressions import common_subexpressions
from .constant_folding import constant_folding
from .convolution_activation import convolution_activation
from .convolution_affine import convolution_affine
from .convolution_pad import convolution_pad
from .dead_code import dead_code
from .gelu import gelu
from .group_norm import group_norm
from .group_norm_affine import group_norm_affine
from .identity import identity
from .layer_norm import layer_norm
from .layer_norm_folded import layer_norm_folded
from .matmul_bias import matmul_bias
from .permute import permute
from .prelu import prelu
from .reshape import reshape
from .shape_folding import shape_folding
from .sigmoid import sigmoid
from .slice_concat import slice_concat
from .softmax import softmax
from .softplus import softplus
from .squeeze import squeeze
from .swish import swish

#: The passes of optimisation level 1, in order; they are repeated until none changes anything.
PASSES: tuple[Pass, ...] = (
    dead_code, identity, constant_folding, softmax, shape_folding, common_subexpressions, permute, squeeze, reshape,
    slice_concat, layer_norm, layer_norm_folded, group_norm, clip, gelu, sigmoid, softplus, swish, prelu, algebra,
    convolution_pad, convolution_affine, convolution_activation, matmul_bias, attention, group_norm_affine, dead_code,
)

#: Names of passes that run with transformer_fuse only, and of those that training must do without.
TRANSFORMER: frozenset[str] = frozenset({"attention", "group-norm-affine"})
TRAINING: frozenset[str] = frozenset({"convolution-affine", "identity"})

#: Told before all passes, with no name, and after each that changed something: its name, the graph, and the number of changes.
Observer = Callable[[str, Graph, int], None]

#: A pass that moves an op down moves it by one place; nothing sensible needs more rounds than this.
_MAX_ROUNDS = 400


def optimize(graph: Graph, level: int = 1, skip: Collection[str] = (), extra: Iterable[Pass] = (),
             observe: Observer | None = None) -> int:
    """Rewrites a graph and its subgraphs in place until no pass changes anything; returns the number of changes.

    level: 0 does nothing, 1 and 2 run everything. skip: names of passes to leave out. extra: passes of plugins, run after
    the built-in ones. observe: see Observer. Results stay the same up to rounding. Raises GraphError if a pass leaves an
    inconsistent graph.
    """
    if level <= 0:
        return 0
    passes = [p for p in (*PASSES, *extra) if p.name not in skip]
    if observe is not None:
        observe("", graph, 0)
    total = 0
    for g in (graph, *graph.subgraphs.values()):
        for _ in range(_MAX_ROUNDS):
            changed = 0
            for p in passes:
                count = 0 if p.main_only and g is not graph else p.run(g)
                changed += count
                if count and observe is not None:
                    observe(p.name, g, count)
            total += changed
            if not changed:
                break
    try:
        graph.check()
    except GraphError as error:
        raise GraphError(f"an optimisation pass left an inconsistent graph: {error}; convert with optimize_level=0, or skip "
                         f"passes: {', '.join(p.name for p in passes)}") from error
    return total
