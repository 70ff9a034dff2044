"""Normalisations and losses."""

from __future__ import annotations

import numpy as np

from .draft import Draft, Tensor
from .families import family


def _weights(g: Draft, x: Tensor, *shape: int, count: int = 2) -> list[Tensor]:
    return [g.tensor([x.dtype], shape=shape, constant=True if g.flag() else None) for _ in range(count)]


@family("BatchNormalization")
def batch_norm(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (2, 5))
    c = x.shape[1]
    return g.node(op, [x, *_weights(g, x, c, count=3), g.given(g.values(x.dtype, (c,), 0.5, 2))],
                  epsilon=g.pick([None, 0.01]), momentum=g.pick([None, 0.5]))


@family("InstanceNormalization")
def instance_norm(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (3, 5))
    return g.node(op, [x, *_weights(g, x, x.shape[1])], epsilon=g.pick([None, 0.01]))


@family("LayerNormalization", "RMSNormalization")
def layer_norm(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 4))
    axis = g.axis(x.rank)
    shape = g.broadcast(x.shape[axis:], grow=False) if g.rarely() else x.shape[axis:]
    if op == "RMSNormalization":
        return g.node(op, [x, *_weights(g, x, *shape, count=1)], axis=axis, epsilon=g.pick([None, 0.01]))
    outputs = g.pick([1, 2, 3])
    return g.node(op, [x, *_weights(g, x, *shape, count=g.integer(1, 2))], outputs, axis=axis, epsilon=g.pick([None, 0.01]))


@family("GroupNormalization")
def group_norm(g: Draft, op: str) -> list[Tensor]:
    groups = g.integer(1, 3)
    x = g.tensor(g.types(op), shape=(g.integer(1, 2), groups * g.integer(1, 3), *g.dims(g.integer(1, 3))))
    return g.node(op, [x, *_weights(g, x, groups if g.opset < 21 else x.shape[1])], num_groups=groups,
                  epsilon=g.pick([None, 0.01]))


@family("LpNormalization")
def lp_norm(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 4))
    return g.node(op, [x], axis=g.axis(x.rank) if g.flag() else None, p=g.pick([None, 1, 2]))


@family("MeanVarianceNormalization")
def mean_variance_norm(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (4, 4))
    return g.node(op, [x], axes=sorted(a % 4 for a in g.axes(4)) if g.flag() else None)


@family("Softmax", "LogSoftmax", "Hardmax")
def softmax(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 4))
    axis = g.axis(x.rank) if g.integer(0, 2) else None
    return g.node(op, [x], axis=axis)


@family("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(g: Draft, op: str) -> list[Tensor]:
    classes = g.integer(2, 4)
    x = g.tensor(g.types(op), shape=(g.integer(1, 3), classes, *g.dims(g.integer(0, 2))))
    target = g.rng.integers(0, classes, (x.shape[0], *x.shape[2:])).astype(g.pick([np.int64, np.int32]))
    weight = g.given(g.values(x.dtype, (classes,), 0.5, 2)) if g.flag() else None
    outputs = 2 if op == "SoftmaxCrossEntropyLoss" and g.flag() else 1
    return g.node(op, [x, g.given(target), weight], outputs, ignore_index=g.pick([None, 0, -1]),
                  reduction=g.pick([None, "none", "mean", "sum"]))
