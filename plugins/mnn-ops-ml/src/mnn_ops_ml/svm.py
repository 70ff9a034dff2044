"""Support vector machines, as LIBSVM (Chang and Lin, 2011) has them: kernels, votes of pairs of classes, probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mnn_core import Example, Op, ShapeError, Spec, register_op

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)
_KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


def _check(op: Op, inputs: Sequence[Spec | None]) -> tuple[Spec, Spec]:
    x, vectors = inputs[0], inputs[1]
    if x is None or vectors is None or x.rank != 2 or vectors.rank != 2 or x.shape[1] != vectors.shape[1] or \
            op["kernel_type"] not in _KERNELS:
        raise ShapeError(f"{op}: rows {x}, vectors {vectors}, kernel {op['kernel_type']!r}; expected [N, F], [V, F] and one of "
                         f"{', '.join(_KERNELS)}")
    return x, vectors


def _infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, vectors = _check(op, inputs)
    return [Spec((x.shape[0], vectors.shape[0]), F32)]


@register_op("ai.onnx.ml.SVMKernel", attrs={"kernel_type": "LINEAR", "gamma": 0.0, "coef0": 0.0, "degree": 3.0}, infer=_infer,
             examples=[Example({"kernel_type": k, "gamma": 0.5, "coef0": 0.25}, [Spec((4, 3), F32), Spec((5, 3), F32)], 1e-4, k)
                       for k in _KERNELS])
def kernel(op: Op, x: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """The kernel of each row of x [N, F] with each vector [V, F]: [N, V]."""
    a, b, kind = x.astype(np.float64), vectors.astype(np.float64), op["kernel_type"]
    dot = a @ b.T
    if kind == "RBF":
        distance = (a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * dot
        return np.exp(-op["gamma"] * np.maximum(distance, 0)).astype(F32)
    if kind == "POLY":
        return ((op["gamma"] * dot + op["coef0"]) ** op["degree"]).astype(F32)
    return (np.tanh(op["gamma"] * dot + op["coef0"]) if kind == "SIGMOID" else dot).astype(F32)


def _votes_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    decisions = inputs[0]
    classes = op["classes"]
    if decisions is None or decisions.rank != 2 or classes < 2 or decisions.shape[1] != classes * (classes - 1) // 2:
        raise ShapeError(f"{op}: decisions {decisions} of {classes} classes; expected one column for each pair")
    return [Spec((decisions.shape[0], classes), F32)]


_THREE = np.array([[0.5, -1, 2], [-0.1, 0.2, 0.3]], np.float32)


@register_op("ai.onnx.ml.SVMVotes", attrs={"classes": 2}, infer=_votes_infer, examples=[Example({"classes": 3}, [_THREE])])
def votes(op: Op, decisions: np.ndarray) -> np.ndarray:
    """How many pairs each class wins, [N, classes]; column p of decisions is above 0 where the first class of pair p wins."""
    out = np.zeros((len(decisions), op["classes"]), F32)
    for p, (i, j) in enumerate(_pairs(op["classes"])):
        first = decisions[:, p] > 0
        out[:, i] += first
        out[:, j] += ~first
    return out


def _pairs(classes: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(classes) for j in range(i + 1, classes)]


@register_op("ai.onnx.ml.SVMProbabilities", attrs={"classes": 2}, infer=_votes_infer, examples=[
    Example({"classes": 3}, [_THREE, np.array([-1, -2, -0.5], np.float32), np.array([0.1, 0, -0.1], np.float32)], 1e-4)])
def probabilities(op: Op, decisions: np.ndarray, slope: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Probabilities of classes [N, classes] from decisions between pairs of them.

    Each pair's is a logistic function of its decision (Platt); they are coupled by the second method of Wu, Lin and Weng
    (2004).
    """
    count = op["classes"]
    wide = decisions.astype(np.float64) * slope + offset
    first = np.clip(np.where(wide >= 0, np.exp(-np.abs(wide)), 1.0) / (1 + np.exp(-np.abs(wide))), 1e-7, 1 - 1e-7)
    pair = np.zeros((len(decisions), count, count))
    for p, (i, j) in enumerate(_pairs(count)):
        pair[:, i, j], pair[:, j, i] = first[:, p], 1 - first[:, p]
    return np.array([_coupled(r) for r in pair], np.float64).reshape(-1, count).astype(F32)


def _coupled(r: np.ndarray) -> np.ndarray:
    count = len(r)
    q = -r.T * r
    np.fill_diagonal(q, (r ** 2).sum(0) - np.diag(r) ** 2)
    p = np.full(count, 1 / count)
    for _ in range(max(100, count)):
        qp = q @ p
        fit = p @ qp
        if np.abs(qp - fit).max() < 0.005 / count:
            break
        for t in range(count):
            difference = (fit - qp[t]) / q[t, t]
            p[t] += difference
            fit = (fit + difference * (difference * q[t, t] + 2 * qp[t])) / (1 + difference) ** 2
            qp = (qp + difference * q[t]) / (1 + difference)
            p /= 1 + difference
    return p
