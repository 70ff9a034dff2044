"""softmax(scale * Q K' + mask) V becomes one op, which backends may run without writing the scores to memory.

MNN's own Attention op is of another kind (it keeps state), so files with this one run here only: the pass is off unless
asked for.
"""

from __future__ import annotations

from ..ir import Graph, Op
from . import Pass
from ._view import View, is_binary, scalar_operand


def _product(op: Op | None) -> bool:
    """Whether an op is a product of two tensors as they are."""
    return op is not None and op.type in ("MatMul", "BatchMatMul") and len(op.inputs) == 2 and \
        not any(op.attrs.get(k) for k in ("transposeA", "transposeB", "adjX", "adjY"))


def _has_four_axes(view: View, name: str) -> bool:
    op = view.producer(name, "Permute")
    return op is not None and len(op["dims"]) == 4


def _scaled(view: View, name: str) -> tuple[str, float]:
    """(x, c) where a tensor is c * x; it must be read only there."""
    op = view.producer(name)
    if op is None or not is_binary(op, "MUL", "REALDIV", "DIV") or not view.only_here(name):
        return name, 1.0
    found = scalar_operand(view, op)
    if found is None or (op["opType"] != "MUL" and (found[0] != op.inputs[0] or found[1] == 0)):
        return name, 1.0
    return found[0], found[1] if op["opType"] == "MUL" else 1 / found[1]


def _match(view: View, op: Op) -> tuple[list[str], float] | None:
    """([Q, K', V, mask], scale) of a product with V."""
    weights = view.producer(op.inputs[0], "Softmax")
    if weights is None or not view.only_here(op.inputs[0]) or weights["axis"] not in (-1, 3):
        return None
    if weights["axis"] == 3 and not _has_four_axes(view, op.inputs[1]):
        return None
    scores, mask = weights.inputs[0], ""
    if not view.only_here(scores):
        return None
    added = view.producer(scores)
    choices = [(scores, "")]
    if added is not None and is_binary(added, "ADD"):
        choices = [(added.inputs[0], added.inputs[1]), (added.inputs[1], added.inputs[0])]
    for inner, mask in choices:
        if not view.only_here(inner):
            continue
        base, scale = _scaled(view, inner)
        product = view.producer(base)
        if product is not None and _product(product) and view.only_here(base):
            query, first = _scaled(view, product.inputs[0])
            key, second = _scaled(view, product.inputs[1])
            return [query, key, op.inputs[1], *([mask] if mask else [])], scale * first * second
    return None


def run(graph: Graph) -> int:
    """Finds the pattern as PyTorch, TensorFlow and optimum write it: the scale may be on the scores, or on Q and K'."""
    view = View(graph)
    for op in graph.ops:
        if not _product(op):
            continue
        found = _match(view, op)
        if found is not None:
            view.change(op, "transformer.Attention", found[0], {"scale": found[1]})
    return view.finish()


attention = Pass("attention", run, "softmax(Q K') V becomes one op of our own (with --transformer-fuse)")
