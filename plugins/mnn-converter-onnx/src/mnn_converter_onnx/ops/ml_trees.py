"""ai.onnx.ml: ensembles of trees, of all versions, as the op TreeEnsemble of mnn-ops-ml."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mnn_core import ModelFormatError

from ..builder import Builder
from ..node import Node
from ..rules import Unsupported, rule
from .ml_features import ML
from .ml_scores import best, give_labels, is_above, label_count, transformed, two

_MODES = {"BRANCH_LEQ": 0, "BRANCH_LT": 1, "BRANCH_GTE": 2, "BRANCH_GT": 3, "BRANCH_EQ": 4, "BRANCH_NEQ": 5, "BRANCH_MEMBER": 6}
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@dataclass
class _Forest:
    """The inputs of TreeEnsemble. Children below 0 are leaves; leaf k has the (target, weight) pairs pairs[k]."""

    features: list[int] = field(default_factory=list)
    modes: list[int] = field(default_factory=list)
    splits: list[float] = field(default_factory=list)
    true: list[int] = field(default_factory=list)
    false: list[int] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)
    pairs: list[list[tuple[int, float]]] = field(default_factory=list)
    members: list[list[float]] = field(default_factory=list)

    def leaf(self, pairs: list[tuple[int, float]]) -> int:
        """Adds a leaf; returns it as a child."""
        self.pairs.append(pairs)
        return -len(self.pairs)

    def _check_reach(self) -> None:
        """Raises ModelFormatError unless there is one way from a root to each node."""
        ways = [0] * len(self.modes)
        todo = [r for r in self.roots if r >= 0]
        while todo:
            at = todo.pop()
            ways[at] += 1
            if ways[at] > 1:
                break
            todo += [v for v in (self.true[at], self.false[at]) if v >= 0]
        if any(n != 1 for n in ways):
            raise ModelFormatError("a node of a tree is reached from its root in two ways, or not at all")

    def op(self, b: Builder, x: str, targets: int, aggregate: str, outputs: list[str] | int) -> str:
        """Adds the op."""
        for what, values, limit in (("child", (*self.true, *self.false, *self.roots), len(self.modes)),
                                    ("target", [t for p in self.pairs for t, _ in p], targets)):
            if any(v >= limit or (what == "target" and v < 0) for v in values):
                raise ModelFormatError(f"a {what} of a tree is {max(values)}; there are {limit}")
        self._check_reach()
        flat = [pair for leaf in self.pairs for pair in leaf]
        whole = [self.features, self.modes, self.true, self.false, self.missing, self.roots,
                 np.concatenate([[0], np.cumsum([len(p) for p in self.pairs])]), [t for t, _ in flat],
                 np.concatenate([[0], np.cumsum([len(m) for m in self.members])])]
        features, modes, true, false, missing, roots, leaves, goals, sets = (b.const(np.asarray(v, np.int32)) for v in whole)
        splits, weights, members = (b.const(np.asarray(v, np.float32)) for v in (
            self.splits, [w for _, w in flat], [v for m in self.members for v in m]))
        return b.op("ai.onnx.ml.TreeEnsemble", [x, features, modes, splits, true, false, missing, roots, leaves, goals, weights,
                                                sets, members], outputs, dtype=np.float32, targets=targets, aggregate=aggregate)


def _values(node: Node, name: str) -> Any:
    """A list of numbers that later versions may give as a tensor."""
    tensor = node.attrs.get(f"{name}_as_tensor")
    return node.attrs.get(name, ()) if tensor is None else np.asarray(tensor).reshape(-1)


def _old_forest(node: Node, what: str, single: bool) -> _Forest:
    """Trees of versions 1 and 3: nodes by (tree, number); weights lie beside. single: all weights go to target 0."""
    keys = list(zip(node["nodes_treeids"], node["nodes_nodeids"]))
    number = {key: i for i, key in enumerate(keys)}
    weights: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for tree, at, target, weight in zip(node[f"{what}_treeids"], node[f"{what}_nodeids"], node[f"{what}_ids"],
                                        _values(node, f"{what}_weights")):
        weights.setdefault((tree, at), []).append((0 if single else int(target), float(weight)))
    modes = node["nodes_modes"]
    lists = [node["nodes_featureids"], _values(node, "nodes_values"), node["nodes_truenodeids"], node["nodes_falsenodeids"]]
    if len(number) != len(keys) or any(len(v) != len(keys) for v in (modes, *lists)):
        raise ModelFormatError(f"{node}: its {len(keys)} nodes are named twice, or their attributes have other lengths")
    inner = [i for i, mode in enumerate(modes) if mode != "LEAF"]
    place = {i: k for k, i in enumerate(inner)}
    forest = _Forest()
    tracks = node.get("nodes_missing_value_tracks_true", ()) or (0,) * len(keys)

    def child(tree: int, at: int) -> int:
        if (tree, at) not in number:
            raise ModelFormatError(f"{node}: tree {tree} has no node {at}")
        i = number[tree, at]
        return place[i] if i in place else forest.leaf(weights.get((tree, at), []))

    for i in inner:
        if modes[i] not in _MODES:
            raise Unsupported(f"nodes of mode {modes[i]!r}; expected one of {', '.join(_MODES)} or LEAF")
        forest.features.append(int(lists[0][i]))
        forest.modes.append(_MODES[modes[i]])
        forest.splits.append(float(lists[1][i]))
        forest.missing.append(int(tracks[i]))
        forest.members.append([])
        forest.true.append(child(keys[i][0], int(lists[2][i])))
        forest.false.append(child(keys[i][0], int(lists[3][i])))
    children = {(keys[i][0], int(at)) for i in inner for at in (lists[2][i], lists[3][i])}
    roots = [i for i, key in enumerate(keys) if key not in children]
    if len(roots) != len({tree for tree, _ in keys}) or len({keys[i][0] for i in roots}) != len(roots):
        raise ModelFormatError(f"{node}: its trees do not have one root each")
    forest.roots = [place[i] if i in place else forest.leaf(weights.get(keys[i], [])) for i in roots]
    return forest


def _rows(b: Builder, x: str) -> str:
    made = b.cast(x, np.float32)
    return b.reshape(made, (1, -1)) if b.rank(x) == 1 else made


def _with_base(b: Builder, node: Node, scores: str) -> str:
    base = _values(node, "base_values")
    return b.binary("ADD", scores, b.const(np.asarray(base, np.float32))) if len(base) else scores


@rule("TreeEnsembleRegressor", domain=ML)
def tree_regressor(node: Node, b: Builder) -> None:
    aggregate = node.get("aggregate_function", "SUM")
    forest = _old_forest(node, "target", False)
    scores = forest.op(b, _rows(b, node.inputs[0]), node.get("n_targets", 1), aggregate, 1)
    transformed(b, _with_base(b, node, scores), node.get("post_transform", "NONE"), node.outputs)


@rule("TreeEnsembleClassifier", domain=ML)
def tree_classifier(node: Node, b: Builder) -> None:
    """Of two classes whose leaves weigh one only, the sum decides: above 0.5 if no weight is negative, else above 0."""
    count, ids = label_count(node), set(node["class_ids"])
    weights = np.asarray(_values(node, "class_weights"), np.float32)
    kind = node.get("post_transform", "NONE")
    outputs = [node.output(1)] if node.output(1) else 1
    single = count == 2 and len(ids) == 1
    if count < 2 or (count == 2 and not single and len(_values(node, "base_values"))):
        raise Unsupported(f"{count} classes with {len(_values(node, 'base_values'))} base values")
    forest = _old_forest(node, "class", single)
    x = _rows(b, node.inputs[0])
    if not single:
        scores = _with_base(b, node, forest.op(b, x, count, "SUM", 1))
        if count == 2:
            second = b.op("StridedSlice", [scores, b.ints(1), b.ints(2), b.ints(1)], fromType=1)
            give_labels(node, b, is_above(b, second, 0.0))
        else:
            give_labels(node, b, best(b, scores))
        transformed(b, scores, kind, outputs)
        return
    if len(_values(node, "base_values")) > 1 or kind == "PROBIT":
        raise Unsupported("two base values, or PROBIT, for one score of two classes")
    score = _with_base(b, node, forest.op(b, x, 1, "SUM", 1))
    positive = bool((weights >= 0).all())
    give_labels(node, b, is_above(b, score, 0.5 if positive else 0.0))
    if kind == "LOGISTIC":
        two(b, b.unary("SIGMOID", b.unary("NEG", score)), b.unary("SIGMOID", score), outputs)
    else:
        two(b, b.binary("SUB", b.const(np.float32(1)), score) if positive else b.unary("NEG", score), score, outputs)


@rule("TreeEnsemble", domain=ML)
def tree_ensemble(node: Node, b: Builder) -> None:
    """Version 5: nodes and leaves are numbered through; a set of members ends with NaN."""
    features, splits, modes = (np.asarray(node[f"nodes_{n}"]).reshape(-1) for n in ("featureids", "splits", "modes"))
    weights = np.asarray(node["leaf_weights"], np.float32).reshape(-1)
    forest = _Forest([int(v) for v in features], [int(v) for v in modes], [float(v) for v in splits],
                     missing=[int(v) for v in node.get("nodes_missing_value_tracks_true", ()) or (0,) * len(modes)])
    forest.pairs = [[(int(t), float(w))] for t, w in zip(node["leaf_targetids"], weights)]
    forest.true = _children(node["nodes_truenodeids"], node["nodes_trueleafs"])
    forest.false = _children(node["nodes_falsenodeids"], node["nodes_falseleafs"])
    forest.roots = [int(r) for r in node["tree_roots"]]
    sets: list[list[float]] = [[]]
    for value in np.asarray(node.attrs.get("membership_values", ()), np.float64).reshape(-1):
        if value != value:
            sets.append([])
        else:
            sets[-1].append(float(value))
    left = iter(sets)
    forest.members = [next(left, []) if mode == 6 else [] for mode in forest.modes]
    aggregate, kind = node.get("aggregate_function", 1), node.get("post_transform", 0)
    if not 0 <= aggregate < len(_AGGREGATES) or not 0 <= kind < len(_TRANSFORMS):
        raise Unsupported(f"aggregate_function {aggregate}, post_transform {kind}")
    scores = forest.op(b, _rows(b, node.inputs[0]), node["n_targets"], _AGGREGATES[aggregate], 1)
    transformed(b, scores, _TRANSFORMS[kind], node.outputs)


def _children(ids: Sequence[int], leaf: Sequence[int]) -> list[int]:
    return [-1 - int(i) if is_leaf else int(i) for i, is_leaf in zip(ids, leaf)]
