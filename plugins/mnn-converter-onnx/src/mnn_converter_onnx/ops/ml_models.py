"""ai.onnx.ml: linear models and support vector machines."""

from __future__ import annotations

import numpy as np

from ..builder import Builder
from ..node import Node
from ..rules import Unsupported, rule
from .ml_features import ML
from .ml_scores import best, give_labels, is_above, label_count, transformed, two


def _floats(node: Node, name: str) -> np.ndarray:
    return np.asarray(node.get(name, ()), np.float32)


def _rows(b: Builder, x: str) -> str:
    """x [N, features] as floats; a vector is one row."""
    made = b.cast(x, np.float32)
    return b.reshape(made, (1, -1)) if b.rank(x) == 1 else made


@rule("LinearRegressor", domain=ML)
def linear_regressor(node: Node, b: Builder) -> None:
    targets = node.get("targets", 1)
    coefficients = _floats(node, "coefficients").reshape(targets, -1)
    y = b.op("MatMul", [_rows(b, node.inputs[0]), b.const(coefficients.T.copy())], dtype=np.float32)
    if _floats(node, "intercepts").size:
        y = b.binary("ADD", y, b.const(_floats(node, "intercepts")))
    transformed(b, y, node.get("post_transform", "NONE"), node.outputs)


@rule("LinearClassifier", domain=ML)
def linear_classifier(node: Node, b: Builder) -> None:
    intercepts = _floats(node, "intercepts")
    count = intercepts.size or label_count(node)
    coefficients = _floats(node, "coefficients").reshape(count, -1)
    scores = b.op("MatMul", [_rows(b, node.inputs[0]), b.const(coefficients.T.copy())], dtype=np.float32)
    if intercepts.size:
        scores = b.binary("ADD", scores, b.const(intercepts))
    kind = node.get("post_transform", "NONE")
    outputs = [node.output(1)] if node.output(1) else 1
    if count > 1:
        give_labels(node, b, best(b, scores))
        transformed(b, scores, kind, outputs)
        return
    if label_count(node) != 2:
        raise Unsupported("one score for other than two classes")
    _binary(node, b, scores, kind, outputs)


def _binary(node: Node, b: Builder, score: str, kind: str, outputs: list[str] | int) -> None:
    """One score [N, 1] for two classes: the second where it is above 0; scores of both are made of it."""
    give_labels(node, b, is_above(b, score, 0.0))
    if kind == "LOGISTIC":
        score = b.unary("SIGMOID", score)
    elif kind == "PROBIT":
        raise Unsupported("PROBIT of one score for two classes")
    two(b, b.binary("SUB", b.const(np.float32(1)), score), score, outputs)


def _kernel(node: Node, b: Builder, vectors: np.ndarray) -> str:
    gamma, coef0, degree = (*(float(v) for v in node.get("kernel_params", ())), 0.0, 0.0, 3.0)[:3]
    return b.op("ai.onnx.ml.SVMKernel", [_rows(b, node.inputs[0]), b.const(vectors)], dtype=np.float32,
                kernel_type=node.get("kernel_type", "LINEAR"), gamma=gamma, coef0=coef0, degree=degree)


@rule("SVMRegressor", domain=ML)
def svm_regressor(node: Node, b: Builder) -> None:
    count, coefficients = node.get("n_supports", 0), _floats(node, "coefficients")
    vectors = _floats(node, "support_vectors").reshape(count, -1) if count else coefficients.reshape(1, -1)
    made = _kernel(node, b, vectors)
    if count:
        made = b.op("MatMul", [made, b.const(coefficients.reshape(-1, 1))], dtype=np.float32)
    rho = _floats(node, "rho")
    y = b.binary("ADD", made, b.const(rho[:1] if rho.size else np.zeros(1, np.float32)))
    if node.get("one_class", 0):
        y = b.op("Select", [b.binary("GREATER", y, b.const(np.float32(0)), dtype=np.int32), b.const(np.float32(1)),
                            b.const(np.float32(-1))], dtype=np.float32)
    transformed(b, y, node.get("post_transform", "NONE"), node.outputs)


@rule("SVMClassifier", domain=ML)
def svm_classifier(node: Node, b: Builder) -> None:
    """With support vectors, pairs of classes vote; without, it is linear."""
    sizes, classes = node.get("vectors_per_class", ()), label_count(node)
    outputs = [node.output(1)] if node.output(1) else 1
    kind, rho, coefficients = node.get("post_transform", "NONE"), _floats(node, "rho"), _floats(node, "coefficients")
    if not sizes:
        made = _kernel(node, b, coefficients.reshape(classes, -1))
        scores = b.binary("ADD", made, b.const(rho[:1]))
        give_labels(node, b, best(b, scores))
        transformed(b, scores, kind, outputs)
        return
    if kind != "NONE":
        raise Unsupported(f"post_transform {kind} of the votes of pairs")
    total = sum(sizes)
    products = _kernel(node, b, _floats(node, "support_vectors").reshape(total, -1))
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    table, starts = coefficients.reshape(classes - 1, total), np.concatenate([[0], np.cumsum(sizes)]).astype(int)
    weights = np.zeros((total, len(pairs)), np.float32)
    for p, (i, j) in enumerate(pairs):
        weights[starts[i]:starts[i + 1], p] = table[j - 1, starts[i]:starts[i + 1]]
        weights[starts[j]:starts[j + 1], p] = table[i, starts[j]:starts[j + 1]]
    decisions = b.binary("ADD", b.op("MatMul", [products, b.const(weights)], dtype=np.float32), b.const(rho[:len(pairs)]))
    slope, offset = _floats(node, "prob_a"), _floats(node, "prob_b")
    give_labels(node, b, best(b, b.op("ai.onnx.ml.SVMVotes", [decisions], dtype=np.float32, classes=classes)))
    if slope.size:
        b.op("ai.onnx.ml.SVMProbabilities", [decisions, b.const(slope), b.const(offset)], outputs, dtype=np.float32,
             classes=classes)
    elif classes == 2:  # in onnxruntime's order, in which the greater score is the other class's
        two(b, b.unary("NEG", decisions), decisions, outputs)
    else:
        b.op("Identity", [decisions], outputs)
