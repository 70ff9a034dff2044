"""Normalisations: LayerNorm, GroupNorm, InstanceNorm, BatchNorm. Means and variances are float64."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import axes_of
from ._rules import FLOAT32, as_array, optional, present, require_float, stage
from .activations import per_channel
from .registry import Example, Lowered, register
from .unary import sigmoid

_IMAGE = Spec((2, 6, 3, 4), FLOAT32)


def _vector(size: int, start: float = 0.5) -> np.ndarray:
    return np.linspace(start, 2, size, dtype=np.float32)


def _standardised(x: np.ndarray, axes: tuple[int, ...], epsilon: float, mean: bool = True) -> np.ndarray:
    """(x - mean) / sqrt(variance + epsilon) over some axes, in float64; without the mean if told so (RMS)."""
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        if mean:
            wide = wide - wide.sum(axis=axes, keepdims=True) / max(math.prod(x.shape[a] for a in axes), 1)
        square = np.square(wide).sum(axis=axes, keepdims=True) / max(math.prod(x.shape[a] for a in axes), 1)
        return wide / np.sqrt(square + epsilon)


def _layer_parts(op: Op, inputs: Sequence[Spec | None]) -> tuple[Spec, Spec | None, Spec | None, Spec | None]:
    """x, what is added to it first, gamma, beta. An op of two outputs has [x, added, gamma, beta]."""
    x, rest = present(op, inputs), list(inputs[1:])
    added = rest.pop(0) if len(op.outputs) == 2 and rest else None
    return x, added, optional(rest, 0), optional(rest, 1)


def _layer_axes(op: Op, rank: int) -> tuple[int, ...]:
    return axes_of(op, op["axis"] if len(op["axis"]) else (-1,), rank)


def _layer_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, added, gamma, beta = _layer_parts(op, inputs)
    require_float(op, x)
    if added is not None and added.shape != x.shape:
        raise ShapeError(f"{op}: adds {added} to {x}; expected equal shapes")
    if op["group"] > 1:
        if x.rank < 2 or x.shape[1] % op["group"]:
            raise ShapeError(f"{op}: {x} does not split into {op['group']} groups along dimension 1")
        allowed = {x.shape[1], x.size // max(x.shape[0] * op["group"], 1)}
    else:
        allowed = {math.prod(x.shape[a] for a in _layer_axes(op, x.rank))}
    for name, spec in (("gamma", gamma), ("beta", beta)):
        if spec is not None and spec.size not in allowed:
            counts = " or ".join(map(str, sorted(allowed)))
            raise ShapeError(f"{op}: {name} {spec} does not fit {x}; expected {counts} numbers")
    return [x.without_value()] * (2 if len(op.outputs) == 2 else 1)


def _grouped(op: Op, x: np.ndarray, gamma: np.ndarray | None, beta: np.ndarray | None) -> np.ndarray:
    """Normalises [N, groups, rest] over the rest; gamma and beta have a number for each channel, or for each of the rest."""
    split = x.reshape(x.shape[0], op["group"], x.size // max(x.shape[0] * op["group"], 1))
    y = _standardised(split, (2,), op["epsilon"], not op["useRMSNorm"]).reshape(x.shape)
    for values, join in ((gamma, np.multiply), (beta, np.add)):
        if values is not None and values.size == x.shape[1]:
            y = join(y, values.reshape(-1, *[1] * (x.ndim - 2)))
        elif values is not None:
            y = join(y.reshape(split.shape), values.reshape(-1)).reshape(x.shape)
    return y


@register("LayerNorm", param="LayerNorm", infer=_layer_infer, examples=[
    Example({"axis": (-1,), "epsilon": 1e-5}, [Spec((2, 3, 8), FLOAT32), _vector(8), _vector(8)]),
    Example({"axis": (-1,), "epsilon": 1e-6, "useRMSNorm": True}, [Spec((2, 3, 40), FLOAT32), _vector(40), None], name="rms"),
    Example({"axis": (1, 2), "epsilon": 1e-5}, [Spec((2, 3, 8), FLOAT32)], name="plain"),
    Example({"axis": (1,), "epsilon": 1e-5}, [Spec((2, 6, 5), FLOAT32), _vector(6), _vector(6)], name="middle"),
    Example({"axis": (-1,), "epsilon": 1e-5}, [Spec((0, 8), FLOAT32), _vector(8), _vector(8)], name="empty"),
    Example({"group": 3, "epsilon": 1e-5}, [_IMAGE, _vector(6), _vector(6)], name="groups"),
])
def layer_norm(op: Op, x: np.ndarray, *rest: np.ndarray | None) -> np.ndarray | tuple[np.ndarray, ...]:
    """x normalised over `axis` (or within `group` groups of channels), times gamma, plus beta, which may be absent.

    With two outputs input 1 is added to x first, and output 0 is that sum.
    """
    parts = list(rest)
    total = x
    if len(op.outputs) == 2:
        with np.errstate(all="ignore"):
            total = as_array(x + parts.pop(0), x.dtype)
    gamma, beta = optional(parts, 0), optional(parts, 1)
    with np.errstate(all="ignore"):
        if op["group"] > 1:
            y = _grouped(op, total, gamma, beta)
        else:
            axes = _layer_axes(op, x.ndim)
            shape = [x.shape[i] if i in axes else 1 for i in range(x.ndim)]
            y = _standardised(total, axes, op["epsilon"], not op["useRMSNorm"])
            y = y if gamma is None else y * gamma.reshape(shape)
            y = y if beta is None else y + beta.reshape(shape)
        result = as_array(y, x.dtype)
    return (total, result) if len(op.outputs) == 2 else result


def _group_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    require_float(op, x)
    if x.rank < 2 or op["group"] < 1 or x.shape[1] % op["group"]:
        raise ShapeError(f"{op}: {x} does not split into {op['group']} groups along dimension 1")
    for index in (1, 2):
        spec = optional(inputs, index)
        if spec is not None and spec.size != x.shape[1]:
            raise ShapeError(f"{op}: input {index}, {spec}, has not the {x.shape[1]} numbers of the channels of {x}")
    return [x.without_value()]


@register("GroupNorm", param="GroupNorm", infer=_group_infer, examples=[
    Example({"group": 3, "epsilon": 1e-5}, [_IMAGE, _vector(6), _vector(6)]),
    Example({"group": 2, "epsilon": 1e-5, "bSwish": 1}, [_IMAGE, _vector(6), _vector(6), Spec((2, 6), FLOAT32)], name="swish"),
    Example({"group": 6, "epsilon": 1e-5}, [_IMAGE, None, None], name="plain"),
])
def group_norm(op: Op, x: np.ndarray, gamma: np.ndarray | None = None, beta: np.ndarray | None = None,
               added: np.ndarray | None = None) -> np.ndarray:
    """x (plus an optional [N, C] or [C] input 3) normalised in `group` groups of channels, times gamma, plus beta.

    With bSwish the result y is y * sigmoid(y).
    """
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        if added is not None:
            wide = wide + added.reshape(-1, x.shape[1], *[1] * (x.ndim - 2))
        groups = wide.reshape(x.shape[0], op["group"], x.size // max(x.shape[0] * op["group"], 1))
        y = _standardised(groups, (2,), op["epsilon"]).reshape(x.shape)
        y = y if gamma is None else y * per_channel(gamma.reshape(-1), x.ndim)
        y = y if beta is None else y + per_channel(beta.reshape(-1), x.ndim)
        return as_array(y * sigmoid(y) if op["bSwish"] else y, x.dtype)


def _channels_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    require_float(op, x)
    for name in ("slopeData", "meanData", "varData", "biasData"):
        if len(op[name]) and (x.rank < 2 or len(op[name]) != x.shape[1]):
            raise ShapeError(f"{op}: {name} has {len(op[name])} numbers; {x} has another number of channels")
    return [x.without_value()]


def _of_channel(op: Op, name: str, rank: int, default: float) -> np.ndarray:
    """A per-channel attribute, shaped to broadcast."""
    values = np.asarray(op[name], np.float64)
    return values.reshape(-1, *[1] * (rank - 2)) if values.size else np.array(default)


@register("InstanceNorm", param="BatchNorm", infer=_channels_infer, examples=[
    Example({"slopeData": _vector(6), "biasData": _vector(6), "epsilon": 1e-5}, [_IMAGE]),
    Example({"epsilon": 1e-3}, [Spec((2, 3, 7), FLOAT32)], name="plain"),
])
def instance_norm(op: Op, x: np.ndarray, mean: np.ndarray | None = None, variance: np.ndarray | None = None) -> np.ndarray:
    """Each channel of each image normalised, times slopeData, plus biasData. Inputs 1 and 2 may give mean and variance."""
    with np.errstate(all="ignore"):
        if mean is None or variance is None:
            y = _standardised(x, tuple(range(2, x.ndim)), op["epsilon"])
        else:
            shape = (*x.shape[:2], *[1] * (x.ndim - 2))
            deviation = np.sqrt(variance.astype(np.float64).reshape(shape) + op["epsilon"])
            y = (x - mean.astype(np.float64).reshape(shape)) / deviation
        return as_array(y * _of_channel(op, "slopeData", x.ndim, 1) + _of_channel(op, "biasData", x.ndim, 0), x.dtype)


def _batch_lower(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    """One Scale: its factors are known now."""
    factor = _of_channel(op, "slopeData", 2, 1) / np.sqrt(_of_channel(op, "varData", 2, 1) + op["epsilon"])
    bias = _of_channel(op, "biasData", 2, 0) - factor * _of_channel(op, "meanData", 2, 0)
    constants = {stage(op, name): np.broadcast_to(value, outputs[0].shape[1:2]).astype(np.float32)
                 for name, value in (("scale", factor), ("bias", bias))}
    return Lowered([Op("Scale", [op.inputs[0], *constants], list(op.outputs), name=op.name)], constants)


@register("BatchNorm", param="BatchNorm", infer=_channels_infer, lower=_batch_lower, examples=[
    Example({"slopeData": _vector(6), "meanData": _vector(6, -1), "varData": _vector(6, 0.1), "biasData": _vector(6, -2),
             "epsilon": 1e-5}, [_IMAGE]),
    Example({"meanData": _vector(3, -1), "varData": _vector(3, 0.1)}, [Spec((2, 3), FLOAT32)], name="matrix"),
])
def batch_norm(op: Op, x: np.ndarray) -> np.ndarray:
    """(x - meanData) / sqrt(varData + epsilon) * slopeData + biasData, of each channel."""
    with np.errstate(all="ignore"):
        factor = _of_channel(op, "slopeData", x.ndim, 1) / np.sqrt(_of_channel(op, "varData", x.ndim, 1) + op["epsilon"])
        return as_array((x - _of_channel(op, "meanData", x.ndim, 0)) * factor + _of_channel(op, "biasData", x.ndim, 0), x.dtype)
