"""Cast and CastLike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ..ir.dtypes import NUMPY_OF, stored_dtype
from ._rules import as_array, present
from .registry import Example, Lowered, register


def cast(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """An array in another dtype.

    To bool: whether x is not 0 (NaN is not). Float to integer: truncated toward zero; what an int32 cannot hold, NaN and
    infinities too, becomes -2^31 (int64: -2^63). Then, as between integers, narrower types keep the low bits: float 300 is
    int8 44, NaN is int8 0. This is what x86 does and onnxruntime shows there; here it holds on every backend.
    """
    if dtype.kind == "b":
        return as_array(x != 0, dtype)
    if x.dtype.kind == "f" and dtype.kind in "iu":
        wide = np.dtype(np.int64) if dtype.itemsize == 8 else np.dtype(np.int32)
        limit = float(np.iinfo(wide).min)
        x = as_array(np.where((x >= limit) & (x < -limit), x, limit), wide)
    return as_array(x, dtype)


def _target(op: Op) -> np.dtype:
    name = op["dstT"]
    if name not in NUMPY_OF or name == "DT_STRING":
        raise ShapeError(f"{op}: cannot cast to {name!r}; expected one of {', '.join(n for n in NUMPY_OF if n != 'DT_STRING')}")
    return NUMPY_OF[name]


def _infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    """The input's shape, in the dtype in which MNN keeps values of the wanted one."""
    return [Spec(present(op, inputs).shape, stored_dtype(_target(op)))]


def _lower(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered | None:
    """A cast between types that are kept alike, such as int64 to int32, changes nothing."""
    x, target = present(op, inputs), _target(op)
    if x.dtype != outputs[0].dtype or target.kind == "b" or (target.kind in "iu" and target.itemsize < x.dtype.itemsize):
        return None
    return Lowered([Op("Identity", list(op.inputs), list(op.outputs), name=op.name)])


_F, _I = np.dtype(np.float32), np.dtype(np.int32)
_ODD = np.array([300, -300, 3e9, np.nan, np.inf, -np.inf, 2.7, -2.7, 127.9, -0.5], np.float32)


@register("Cast", param="CastParam", infer=_infer, lower=_lower, examples=[
    *(Example({"dstT": t}, [Spec((2, 3, 5), s)], name=f"{s.name}-{t}") for s in (_F, _I)
      for t in ("DT_FLOAT", "DT_INT32", "DT_UINT8", "DT_INT8", "DT_BOOL")),
    *(Example({"dstT": "DT_FLOAT"}, [Spec((7,), np.dtype(s))], name=f"{s}-DT_FLOAT") for s in ("uint8", "int8")),
    *(Example({"dstT": "DT_INT32"}, [Spec((7,), np.dtype(s))], name=f"{s}-DT_INT32") for s in ("uint8", "int8")),
    *(Example({"dstT": t}, [_ODD], name=f"odd-{t}") for t in ("DT_INT32", "DT_UINT8", "DT_INT8", "DT_BOOL")),
])
def cast_op(op: Op, x: np.ndarray) -> np.ndarray:
    """x as dstT; see `cast`. The result is kept in the dtype that MNN uses for it: bool as int32 0/1, int64 as int32."""
    target = _target(op)
    kept = stored_dtype(target)
    narrowing = target.kind == "b" or (target.kind in "iu" and target.itemsize < kept.itemsize)
    return as_array(cast(x, target if narrowing else kept), kept)


def _like_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    return [Spec(present(op, inputs).shape, present(op, inputs, 1).dtype)]


def _like_lower(op: Op, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> Lowered | None:
    """A Cast, unless the dtypes are the same already."""
    x, like = present(op, inputs), present(op, inputs, 1)
    if x.dtype == like.dtype:
        return Lowered([Op("Identity", op.inputs[:1], list(op.outputs), name=op.name)])
    if stored_dtype(like.dtype) != like.dtype:
        return None
    name = next(n for n, dtype in NUMPY_OF.items() if dtype == like.dtype)
    return Lowered([Op("Cast", op.inputs[:1], list(op.outputs), {"dstT": name}, op.name)])


@register("CastLike", infer=_like_infer, lower=_like_lower, examples=[
    Example({}, [Spec((2, 3), _F), Spec((1,), _I)]), Example({}, [Spec((2, 3), _I), Spec((), _F)]),
])
def cast_like(op: Op, x: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Input 0 in the dtype of input 1; see `cast`."""
    return cast(x, like.dtype)
