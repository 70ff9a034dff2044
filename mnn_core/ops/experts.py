"""Mixtures of experts: com.microsoft.MoE, of onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._rules import FLOAT32, as_array, present, require_float
from .registry import Example, register
from .unary import INEXACT, sigmoid

#: Activations of one number; onnxruntime's "gelu" is the form with tanh here.
_FUNCTIONS = {"relu": lambda x: np.maximum(x, 0), "silu": lambda x: x * sigmoid(x), "identity": lambda x: x,
              "gelu": INEXACT["GELU"]}


def _f(*shape: int) -> Spec:
    return Spec(shape, FLOAT32)


def _infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, router, first, second = (present(op, inputs, i) for i in (0, 1, 2, 4))
    require_float(op, x)
    fits = x.rank in (2, 3) and router.rank == 2 and first.rank == second.rank == 3
    if not fits or router.shape[0] * x.shape[-1] != x.size or not first.shape[0] == second.shape[0] == router.shape[1]:
        raise ShapeError(f"{op}: expected tokens (.., H), a row of routing scores (tokens, experts), and weights (experts, "
                         f"rows, H) and (experts, H, inner); found {x}, {router}, {first} and {second}")
    inner, gated = second.shape[2], op["activation_type"] == "swiglu" and op["swiglu_fusion"]
    if first.shape[1:] != (inner * (2 if gated else 1), x.shape[-1]) or second.shape[1] != x.shape[-1]:
        raise ShapeError(f"{op}: weights {first} and {second} do not fit tokens {x}")
    if not 1 <= op["k"] <= router.shape[1]:
        raise ShapeError(f"{op}: k is {op['k']}; expected 1 to {router.shape[1]} experts")
    if op["activation_type"] not in (*_FUNCTIONS, "swiglu"):
        raise ShapeError(f"{op}: activation {op['activation_type']!r} is not known; expected "
                         f"{', '.join((*_FUNCTIONS, 'swiglu'))}")
    return [x.without_value()]


def _swiglu(op: Op, gate: np.ndarray, linear: np.ndarray) -> np.ndarray:
    """gate * sigmoid(alpha * gate) * (linear + beta), both clamped to the limit if there is one."""
    limit = op["swiglu_limit"]
    if limit is not None:
        gate, linear = np.minimum(gate, limit), np.clip(linear, -limit, limit)
    return gate * sigmoid(op["activation_alpha"] * gate) * (linear + op["activation_beta"])


def _expert(op: Op, x: np.ndarray, e: int, weights: Sequence[np.ndarray | None]) -> np.ndarray:
    """One expert's result for some tokens. weights: first, its bias, second, its bias, third, its bias."""
    first, first_bias, second, second_bias, third, third_bias = weights

    def layer(x: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None) -> np.ndarray:
        assert weight is not None
        y = x @ weight[e].T
        return y if bias is None else y + bias[e]

    h, kind = layer(x, first, first_bias), op["activation_type"]
    if kind == "swiglu":
        if op["swiglu_fusion"] == 1:
            h = _swiglu(op, h[:, ::2], h[:, 1::2])
        elif op["swiglu_fusion"] == 2:
            h = _swiglu(op, *np.split(h, 2, 1))
        else:
            h = _swiglu(op, h, layer(x, third, third_bias))
    else:
        h = _FUNCTIONS[kind](h)
        h = h if third is None else h * layer(x, third, third_bias)
    return layer(h, second, second_bias)


@register("com.microsoft.MoE", infer=_infer, attrs={
    "k": 1, "activation_type": "relu", "normalize_routing_weights": 0, "activation_alpha": 1.0, "activation_beta": 0.0,
    "swiglu_fusion": 0, "swiglu_limit": None,
}, examples=[
    Example({"k": 2, "normalize_routing_weights": 1}, [_f(5, 6), _f(5, 4), _f(4, 8, 6), None, _f(4, 6, 8)]),
    Example({"activation_type": "silu"}, [_f(2, 3, 6), _f(6, 4), _f(4, 8, 6), _f(4, 8), _f(4, 6, 8), _f(4, 6)], name="silu"),
    Example({"activation_type": "swiglu", "swiglu_fusion": 1, "k": 3, "swiglu_limit": 1.0, "activation_beta": 1.0},
            [_f(5, 6), _f(5, 4), _f(4, 16, 6), _f(4, 16), _f(4, 6, 8), _f(4, 6)], name="swiglu"),
    Example({"activation_type": "swiglu"}, [_f(5, 6), _f(5, 2), _f(2, 8, 6), None, _f(2, 6, 8), None, _f(2, 8, 6)],
            name="third"),
])
def moe(op: Op, x: np.ndarray, router: np.ndarray, first: np.ndarray, first_bias: np.ndarray | None, second: np.ndarray,
        second_bias: np.ndarray | None = None, third: np.ndarray | None = None, third_bias: np.ndarray | None = None,
        mixing: np.ndarray | None = None) -> np.ndarray:
    """The weighted sum of what the k experts of the highest routing scores make of each token x (.., H).

    router (tokens, experts): their softmax gives the weights, which sum to 1 for the k ones if they are normalised; input 8,
    of the same shape, gives them instead. Weights of experts are (experts, outputs, inputs), biases (experts, outputs).
    """
    tokens = x.reshape(-1, x.shape[-1])
    out = np.zeros_like(tokens)
    best = np.argsort(-router, axis=1, kind="stable")[:, : op["k"]]
    with np.errstate(all="ignore"):
        if mixing is None:
            scores = np.exp(router - router.max(1, keepdims=True, initial=-np.inf))
            scores = scores / scores.sum(1, keepdims=True)
        else:
            scores = mixing
        share = np.take_along_axis(scores, best, 1)
        if op["normalize_routing_weights"]:
            share = share / share.sum(1, keepdims=True)
        for e in range(first.shape[0]):
            rows, place = np.nonzero(best == e)
            if rows.size:
                made = _expert(op, tokens[rows], e, (first, first_bias, second, second_bias, third, third_bias))
                out[rows] += share[rows, place, None] * made
        return as_array(out.reshape(x.shape), x.dtype)
