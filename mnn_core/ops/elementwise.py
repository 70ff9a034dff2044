"""Elementwise ops beside UnaryOp and BinaryOp: Scale, Eltwise, Select, and copies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Region, Spec
from ._rules import as_array, broadcast, number_dtype, present, same_dtype, stage
from .activations import channel_rule, per_channel
from .registry import Example, Lowered, register

_F, _I = np.dtype(np.float32), np.dtype(np.int32)
_IMAGE = Spec((2, 3, 4, 5), _F)


@register("Scale", param="Scale", infer=channel_rule, examples=[
    Example({}, [_IMAGE, np.array([1, -2, 0.5], np.float32), np.array([0, 1, 2], np.float32)]),
    Example({}, [Spec((4, 3), _F), np.array([1, -2, 0.5], np.float32), None]),
])
def scale(op: Op, x: np.ndarray, factor: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    """x * scale + bias, one number of each a channel; bias may be absent."""
    with np.errstate(all="ignore"):
        y = x * per_channel(factor, x.ndim)
        return as_array(y if bias is None else y + per_channel(bias, x.ndim), x.dtype)


_ELTWISE = {"PROD": "MUL", "SUM": "ADD", "MAXIMUM": "MAXIMUM", "SUB": "SUB"}
_ELTWISE_NUMPY = {"PROD": np.multiply, "SUM": np.add, "MAXIMUM": np.maximum, "SUB": np.subtract}


def _eltwise_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    """The broadcast of all inputs."""
    specs = [present(op, inputs, i) for i in range(len(inputs))]
    if op["type"] not in _ELTWISE:
        raise ShapeError(f"{op}: unknown type {op['type']!r}; expected one of {', '.join(_ELTWISE)}")
    if len(op["coeff"]) not in (0, len(specs)):
        raise ShapeError(f"{op}: {len(op['coeff'])} coefficients for {len(specs)} inputs")
    return [Spec(broadcast(op, *specs), number_dtype(same_dtype(op, *specs)))]


def _coefficients(op: Op) -> list[float]:
    """The factor of each input; only sums have them."""
    coeff = [float(c) for c in op["coeff"]] if op["type"] == "SUM" else []
    return coeff if any(c != 1 for c in coeff) else []


def _eltwise_lower(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    """A chain of BinaryOps, after a MUL for each coefficient."""
    made, names = Lowered([]), list(op.inputs)
    for i, c in enumerate(_coefficients(op)):
        factor, names[i] = stage(op, f"coeff{i}"), stage(op, f"scaled{i}")
        made.constants[factor] = np.array(c, outputs[0].dtype)
        made.ops.append(Op("BinaryOp", [op.inputs[i], factor], [names[i]], {"opType": "MUL"}))
    if len(names) == 1:
        made.ops.append(Op("Identity", names, list(op.outputs)))
    total = names[0]
    for i, name in enumerate(names[1:], 1):
        out = op.outputs[0] if i == len(names) - 1 else stage(op, f"partial{i}")
        made.ops.append(Op("BinaryOp", [total, name], [out], {"opType": _ELTWISE[op["type"]]}))
        total = out
    return made


@register("Eltwise", param="Eltwise", infer=_eltwise_infer, lower=_eltwise_lower, examples=[
    *(Example({"type": t}, [_IMAGE, _IMAGE, _IMAGE], name=t) for t in _ELTWISE),
    Example({"type": "SUM", "coeff": np.array([2, -0.5], np.float32)}, [_IMAGE, _IMAGE], name="coeff"),
    Example({"type": "SUM"}, [_IMAGE], name="single"),
])
def eltwise(op: Op, *xs: np.ndarray) -> np.ndarray:
    """The inputs joined from left to right by `type`; a SUM may weigh them by `coeff`."""
    dtype = number_dtype(reduce(np.promote_types, (x.dtype for x in xs)))
    terms = [as_array(x, dtype) for x in xs]
    with np.errstate(all="ignore"):
        for i, c in enumerate(_coefficients(op)):
            terms[i] = as_array(terms[i] * c, dtype)
        return as_array(reduce(_ELTWISE_NUMPY[op["type"]], terms), dtype)


def _select_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    condition, yes, no = (present(op, inputs, i) for i in range(3))
    whole, floats = sorted((yes, no), key=lambda s: s.dtype.kind == "f")
    if floats.dtype.kind == "f" != whole.dtype.kind and whole.value is not None and not whole.value.any():
        dtype = floats.dtype  # MNN copies bits, and its converter writes Trilu with an integer 0
    else:
        dtype = same_dtype(op, yes, no)
    return [Spec(broadcast(op, condition, yes, no), dtype)]


@register("Select", infer=_select_infer, examples=[
    Example({}, [Spec((2, 3, 4), _I), Spec((2, 3, 4), _F), Spec((2, 3, 4), _F)]),
    Example({}, [Spec((3, 1), _I), Spec((4,), _F), Spec((), _F)], name="broadcast"),
    Example({}, [Spec((2, 1), _I), Spec((), _I), Spec((1, 3), _I)], name="integers"),
    Example({}, [Spec((0, 1), _I), Spec((1, 3), _F), Spec((), _F)], name="empty"),
])
def select(op: Op, condition: np.ndarray, yes: np.ndarray, no: np.ndarray) -> np.ndarray:
    """Input 1 where input 0 is not 0, else input 2; all three broadcast (ONNX Where). Integers that are 0 go with floats."""
    floats = [x.dtype for x in (yes, no) if x.dtype.kind == "f"]
    dtype = floats[0] if len(floats) == 1 else np.promote_types(yes.dtype, no.dtype)
    return as_array(np.where(condition != 0, yes, no), dtype)


def _copies(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    """Output i is as input i."""
    return [present(op, inputs, i).without_value() for i in range(len(inputs))]


def _copy_lower(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    """One Raster an output, of one region that copies everything."""
    made = Lowered([])
    for source, out, spec in zip(op.inputs, op.outputs, outputs):
        whole = (Region(0, (spec.size,), 0, (1,), 0, (1,)),) if spec.size else ()
        made.ops.append(Op("Raster", [source], [out], {"regions": whole, "shape": spec.shape}, op.name))
    return made


def _copy_op(op_type: str) -> None:
    @register(op_type, infer=_copies, lower=_copy_lower, geometry=True, examples=[
        Example({}, [_IMAGE]), Example({}, [Spec((), _I)]), Example({}, [Spec((0, 2), _F)]),
    ])
    def compute(op: Op, *xs: np.ndarray) -> np.ndarray | tuple[np.ndarray, ...]:
        return xs


for _type in ("Identity", "Dropout", "Copy"):
    _copy_op(_type)


def _zeros_lower(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered:
    raster = {"regions": (), "shape": outputs[0].shape, "fill": 0}
    return Lowered([Op("Raster", list(op.inputs), list(op.outputs), raster, op.name)])


@register("ZerosLike", lower=_zeros_lower, geometry=True, examples=[Example({}, [_IMAGE]), Example({}, [Spec((), _I)])])
def zeros_like(op: Op, x: np.ndarray) -> np.ndarray:
    """Zeros of the shape and dtype of the input."""
    return np.zeros_like(x)
