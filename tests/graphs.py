"""Small graphs of small ops for tests of the planner; independent of the real op set and of every file format."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mnn_core import Graph, Op, Spec, TensorInfo, register_op
from mnn_core.ops import find

F32, I32, I64 = np.dtype(np.float32), np.dtype(np.int32), np.dtype(np.int64)


def _broadcast(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    return [Spec(np.broadcast_shapes(*(s.shape for s in inputs if s)), inputs[0].dtype)]


def _reshaped(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x, shape = inputs
    return [x.with_shape(np.broadcast_to(0, x.shape).reshape(tuple(shape.value)).shape)]


def _shape_of(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    return [Spec.of(np.array(inputs[0].shape, np.int32))]


if find("test.Add") is None:
    @register_op("test.Add", infer=_broadcast)
    def add(op, a, b):
        return np.add(a, b, dtype=a.dtype)

    @register_op("test.Mul", infer=_broadcast)
    def mul(op, a, b):
        return np.multiply(a, b, dtype=a.dtype)

    @register_op("test.Neg")
    def neg(op, a):
        return -a

    @register_op("test.Less", infer=lambda op, i: [Spec(_broadcast(op, i)[0].shape, I32)])
    def less(op, a, b):
        return (a < b).astype(np.int32)

    @register_op("test.Sum", infer=lambda op, i: [i[0].with_shape(())])
    def total(op, a):
        return np.asarray(a.sum(dtype=a.dtype))

    @register_op("test.Int", infer=lambda op, i: [Spec(i[0].shape, I32)])
    def to_int(op, a):
        return a.astype(np.int32)

    @register_op("test.Reshape", content=(1,), infer=_reshaped)
    def reshape(op, a, shape):
        return a.reshape(tuple(shape))

    @register_op("test.Shape", infer=_shape_of)
    def shape_of(op, a):
        return np.array(a.shape, np.int32)

    @register_op("test.NonZero", dynamic=True)
    def nonzero(op, a):
        return np.stack(np.nonzero(a)).astype(np.int32)

    @register_op("test.Noise", pure=False)
    def noise(op, a):
        return np.random.default_rng().random(a.shape, np.float32)

    @register_op("test.Split", infer=lambda op, i: [i[0].with_shape((i[0].shape[0] // 2, *i[0].shape[1:]))] * 2)
    def split(op, a):
        half = a.shape[0] // 2
        return a[:half], a[half:half * 2]

    @register_op("test.Fail", infer=lambda op, i: [i[0]])
    def fail(op, a):
        raise ValueError("no luck")

    @register_op("test.Sleep")
    def sleep(op, a):
        import time

        time.sleep(0.05)
        return a


def info(name: str, shape=None, dtype=F32, dims=()) -> TensorInfo:
    return TensorInfo(name, np.dtype(dtype) if dtype is not None else None, shape, dims)


def graph(ops, inputs, outputs, constants=None, subgraphs=None, name="") -> Graph:
    """ops: "y = Add(a, b)" lines or Ops; inputs: TensorInfo or names of float32 inputs; outputs: names."""
    return Graph(ops=[_parse(o) if isinstance(o, str) else o for o in ops],
                 inputs=[i if isinstance(i, TensorInfo) else info(i) for i in inputs],
                 outputs=[o if isinstance(o, TensorInfo) else info(o, dtype=None) for o in outputs],
                 constants=constants or {}, subgraphs=subgraphs or {}, name=name)


def _parse(text: str) -> Op:
    left, right = text.split(" = ")
    kind, args = right[:-1].split("(")
    return Op(f"test.{kind}", [a.strip() for a in args.split(",")], [o.strip() for o in left.split(",")])
