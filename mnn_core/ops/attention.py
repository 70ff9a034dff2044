"""Attention without state, as the pass `attention` makes it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import need
from ._rules import FLOAT32, as_array, optional, require_float
from .registry import Example, Lowered, register


def _infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    q, k, v = (need(op, inputs, i) for i in range(3))
    require_float(op, q)
    if min(q.rank, k.rank, v.rank) < 2 or q.shape[-1] != k.shape[-2] or k.shape[-1] != v.shape[-2]:
        raise ShapeError(f"{op}: Q {q}, K' {k} and V {v} do not fit; expected [..., L, D], [..., D, S] and [..., S, E]")
    scores = (*np.broadcast_shapes(q.shape[:-2], k.shape[:-2]), q.shape[-2], k.shape[-1])
    mask = optional(inputs, 3)
    if mask is not None:
        scores = np.broadcast_shapes(scores, mask.shape)
    return [Spec((*np.broadcast_shapes(scores[:-2], v.shape[:-2]), scores[-2], v.shape[-1]), FLOAT32)]


def _lower(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    """The ops that the pattern was made of."""
    out = op.outputs[0]
    names = [f"{out}/{part}" for part in ("query", "scores", "masked", "weights")]
    ops = [Op("BinaryOp", [op.inputs[0], f"{out}/scale"], [names[0]], {"opType": "MUL"}),
           Op("MatMul", [names[0], op.inputs[1]], [names[1]])]
    if len(op.inputs) > 3 and op.inputs[3]:
        ops.append(Op("BinaryOp", [names[1], op.inputs[3]], [names[2]], {"opType": "ADD"}))
    ops.append(Op("Softmax", ops[-1].outputs[:], [names[3]], {"axis": -1}))
    constants = {f"{out}/scale": np.array(op["scale"], FLOAT32)}
    if op["nan_to_zero"]:
        nan, kept = f"{out}/nan", f"{out}/kept"
        constants[f"{out}/zero"] = np.array(0, FLOAT32)
        ops += [Op("BinaryOp", [names[3], names[3]], [nan], {"opType": "NOTEQUAL"}),
                Op("Select", [nan, f"{out}/zero", names[3]], [kept])]
    ops.append(Op("MatMul", [ops[-1].outputs[0], op.inputs[2]], [out]))
    return Lowered(ops, constants)


@register("transformer.Attention", attrs={"scale": 1.0, "nan_to_zero": False}, infer=_infer, lower=_lower, examples=[
    Example({"scale": 0.5}, [Spec((2, 3, 5, 4), FLOAT32), Spec((2, 3, 4, 6), FLOAT32), Spec((2, 3, 6, 4), FLOAT32)], 1e-4),
    Example({"scale": 0.25}, [Spec((2, 3, 5, 4), FLOAT32), Spec((2, 1, 4, 6), FLOAT32), Spec((2, 1, 6, 7), FLOAT32),
                              Spec((1, 1, 5, 6), FLOAT32)], 1e-4, "masked"),
    Example({"nan_to_zero": True}, [Spec((2, 5, 4), FLOAT32), Spec((2, 4, 6), FLOAT32), Spec((2, 6, 4), FLOAT32),
                                    np.array([[0], [0], [-np.inf], [0], [0]], np.float32)], 1e-4, "hidden"),
])
def attention(op: Op, q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """softmax(scale * Q K' + mask) V of Q [..., L, D], K' [..., D, S] (transposed already) and V [..., S, E]: [..., L, E].

    nan_to_zero: a row of weights that are NaN, as where the mask hides every key, counts as zeros.

    Vaswani et al., Attention Is All You Need (2017), equation 1.
    """
    scores = (q.astype(np.float64) * op["scale"]) @ k
    if mask is not None:
        scores = scores + mask
    with np.errstate(all="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = weights / weights.sum(-1, keepdims=True)
        return as_array(np.where(np.isnan(weights), 0, weights) @ v if op["nan_to_zero"] else weights @ v, FLOAT32)
