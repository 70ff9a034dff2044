"""Ensembles of decision trees, evaluated a level at a time: all rows and all trees step to their next nodes together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mnn_core import Example, Op, ShapeError, Spec, register_op

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)
#: What a node asks about its feature, as TreeEnsemble 5 numbers it: feature LEQ value, and so on; MEMBER: is it in a set.
LEQ, LT, GTE, GT, EQ, NEQ, MEMBER = range(7)
#: Rows times trees that are stepped at once.
_CHUNK = 1 << 20
_NAMES = ("x", "features", "modes", "splits", "true", "false", "missing", "roots", "leaves", "targets", "weights", "sets",
          "members")


def _infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    if len(inputs) != len(_NAMES) or any(s is None for s in inputs):
        raise ShapeError(f"{op}: {len(inputs)} inputs; expected {', '.join(_NAMES)}")
    x = inputs[0]
    assert x is not None
    if x.rank != 2 or op["targets"] < 1 or op["aggregate"] not in ("SUM", "AVERAGE", "MIN", "MAX"):
        raise ShapeError(f"{op}: x is {x}, {op['targets']} targets, aggregate {op['aggregate']!r}; expected rows "
                         "[N, features], 1 or more, and SUM, AVERAGE, MIN or MAX")
    shape = (x.shape[0], op["targets"])
    return [Spec(shape, F32), Spec(shape, I32)][:max(len(op.outputs), 1)]


def _leaves(x: np.ndarray, features: np.ndarray, modes: np.ndarray, splits: np.ndarray, true: np.ndarray, false: np.ndarray,
            missing: np.ndarray, roots: np.ndarray, sets: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Which leaf each row comes to in each tree, [N, trees]. Children below 0 are leaves: -1 is leaf 0."""
    at = np.tile(roots, (len(x), 1))
    rows = np.arange(len(x))[:, None]
    asked = [m for m in range(MEMBER) if (modes == m).any()]
    compare = (np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal)
    for _ in range(len(modes) + 1):
        going = at >= 0
        if not going.any():
            return -1 - at
        node = np.where(going, at, 0)
        value = x[rows, features[node]]
        kind, split = modes[node], splits[node]
        if len(asked) == 1 and not (modes == MEMBER).any():
            yes = compare[asked[0]](value, split)
        else:
            yes = np.zeros(at.shape, bool)
            for mode in asked:
                yes |= (kind == mode) & compare[mode](value, split)
            for n in np.unique(node[going & (kind == MEMBER)]):
                yes |= (node == n) & (kind == MEMBER) & np.isin(value, members[sets[n]:sets[n + 1]])
        yes |= np.isnan(value) & (missing[node] != 0)
        at = np.where(going, np.where(yes, true[node], false[node]), at)
    raise ShapeError("the nodes of a tree go round in a circle")


@register_op("ai.onnx.ml.TreeEnsemble", attrs={"targets": 1, "aggregate": "SUM"}, infer=_infer, examples=[
    Example({"targets": 2}, [Spec((5, 3), F32), *(np.array(v, np.int32) for v in ([0, 2], [LEQ, GT])),
                             np.array([0.1, -0.2], np.float32),
                             *(np.array(v, np.int32) for v in ([1, -1], [-2, -3], [0, 1], [0], [0, 1, 3, 4], [0, 0, 1, 1])),
                             np.array([1, 2, 3, 4], np.float32), np.zeros(3, np.int32), np.zeros(0, np.float32)]),
])
def tree_ensemble(op: Op, x: np.ndarray, features: np.ndarray, modes: np.ndarray, splits: np.ndarray, true: np.ndarray,
                  false: np.ndarray, missing: np.ndarray, roots: np.ndarray, leaves: np.ndarray, targets: np.ndarray,
                  weights: np.ndarray, sets: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, ...]:
    """Scores [N, targets], and how many leaves gave one, of rows x [N, features].

    Node n asks feature `features[n]` against `splits[n]` in the way `modes[n]`, or whether it is among
    members[sets[n]:sets[n + 1]], and goes to `true[n]` or `false[n]`; a NaN goes to true where `missing[n]`. Leaf k gives
    weights[j] to targets[j] for j in leaves[k]:leaves[k + 1]. `roots` are the trees' first nodes.
    """
    count = op["targets"]
    total = len(leaves) - 1
    value = np.zeros((total, count))
    given = np.zeros((total, count), np.int32)
    which = np.repeat(np.arange(total), np.diff(leaves))
    np.add.at(value, (which, targets), weights)
    np.add.at(given, (which, targets), 1)
    out, hits = np.zeros((len(x), count)), np.zeros((len(x), count), np.int32)
    step = max(1, _CHUNK // max(len(roots), 1))
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        found = _leaves(x[part], features, modes, splits, true, false, missing, roots, sets, members)
        hits[part] = given[found].sum(1)
        if op["aggregate"] in ("SUM", "AVERAGE"):
            out[part] = value[found].sum(1)
        else:
            worst, pick = (np.inf, np.min) if op["aggregate"] == "MIN" else (-np.inf, np.max)
            best = pick(np.where(given[found] > 0, value[found], worst), axis=1)
            out[part] = np.where(hits[part] > 0, best, 0)
    if op["aggregate"] == "AVERAGE":
        out /= max(len(roots), 1)
    both = out.astype(F32), hits
    return both if len(op.outputs) > 1 else both[:1]
