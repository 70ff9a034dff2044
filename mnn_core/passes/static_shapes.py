"""Models of fixed shapes: dimensions of inputs are set, and what follows from them is computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..errors import ConversionError
from ..ir import Graph, Op, Spec, TensorInfo, decoded
from ..ir.dtypes import stored_dtype
from ..ops import find
from .constant_folding import fold_op
from .dead_code import dead_code


def set_batch(graph: Graph, batch: int) -> None:
    """Sets the first dimension of inputs where it is not known, and dimensions of the same name everywhere."""
    if batch < 1:
        raise ConversionError(f"a batch of {batch}; expected 1 or more")
    names = {i.dim_names[0] for i in graph.inputs if i.shape and i.shape[0] is None and i.dim_names and i.dim_names[0]}

    def fixed(info: TensorInfo, first: bool) -> TensorInfo:
        shape = tuple(batch if d is None and ((first and axis == 0) or (axis < len(info.dim_names) and
                                                                        info.dim_names[axis] in names)) else d
                      for axis, d in enumerate(info.shape or ()))
        return info if info.shape is None else replace(info, shape=shape)

    graph.inputs = [fixed(i, True) for i in graph.inputs]
    graph.outputs = [fixed(o, False) for o in graph.outputs]


def read_shapes(path: str | Path) -> dict[str, tuple[int, ...]]:
    """Shapes of inputs from MNN's --inputConfigFile: lines `input_names = a,b` and `input_dims = 1x3x224x224,1x10`.

    Raises ConversionError for a file of another kind.
    """
    found: dict[str, str] = {}
    for line in Path(path).read_text(encoding="utf-8", errors="replace").splitlines():
        key, equals, value = line.partition("#")[0].partition("=")
        if equals:
            found[key.strip()] = value.strip()
    names = [n.strip() for n in found.get("input_names", "").split(",") if n.strip()]
    dims = [d.strip() for d in found.get("input_dims", "").split(",") if d.strip()]
    try:
        shapes = {name: tuple(int(d) for d in text.split("x")) for name, text in zip(names, dims, strict=True)}
    except ValueError as error:
        raise ConversionError(f"{path}: expected lines like `input_names = a,b` and `input_dims = 1x3x224x224,1x10`: "
                              f"{error}") from error
    if not shapes:
        raise ConversionError(f"{path}: it names no inputs; expected lines like `input_names = x` and `input_dims = 1x3x8x8`")
    return shapes


def make_static(graph: Graph, shapes: Mapping[str, Sequence[int]] | None = None) -> int:
    """Fixes the shapes of all inputs, and replaces by constants what can be computed from them; returns how many ops went.

    shapes: of inputs whose dimensions are not all known. Raises ConversionError naming inputs that stay open, and ShapeError
    if the shapes do not fit the model.
    """
    shapes = dict(shapes or {})
    unknown = sorted(set(shapes) - {i.name for i in graph.inputs})
    if unknown:
        raise ConversionError(f"the model has no input {unknown[0]!r}; it has: {', '.join(i.name for i in graph.inputs)}")
    inputs = [_fixed(info, shapes.get(info.name)) for info in graph.inputs]
    open_ones = [str(i) for i in inputs if i.shape is None or None in i.shape]
    if open_ones:
        raise ConversionError(f"a static model needs the shape of every input; give those of {'; '.join(open_ones)}")
    specs = {i.name: Spec(tuple(d or 0 for d in i.shape or ()), stored_dtype(i.dtype or np.dtype(np.float32))) for i in inputs}
    _infer(graph, specs)
    graph.inputs = inputs
    values = {name: spec.value for name, spec in specs.items() if spec.value is not None and name not in graph.constants}
    kept = [op for op in graph.ops if not op.outputs or any(n and n not in values for n in op.outputs)]
    made = {n for op in kept for n in op.outputs}
    for op in graph.ops:
        for name in op.outputs:
            if name in values and name not in made:
                graph.constants[name] = values[name]
    went, graph.ops = len(graph.ops) - len(kept), kept
    graph.outputs = [replace(o, shape=specs[o.name].shape) if o.name in specs and o.kind == "tensor" else o
                     for o in graph.outputs]
    dead_code.run(graph)
    return went


def _infer(graph: Graph, specs: dict[str, Spec]) -> None:
    """Adds what follows for the graph's tensors to what is known of its inputs. Raises ShapeError if it does not fit."""
    for name, constant in graph.constants.items():
        small = isinstance(constant, np.ndarray) or len(constant.shape) < 2
        specs[name] = Spec.of(decoded(constant)) if small else Spec(tuple(constant.shape), constant.dtype)
    for op in graph.ops:
        known, ins = find(op.type), [specs.get(n) if n else None for n in op.inputs]
        if known is None or not known.pure or known.dynamic or any(n and s is None for n, s in zip(op.inputs, ins)):
            continue
        if any(i < len(ins) and (spec := ins[i]) is not None and spec.value is None for i in known.content):
            continue
        outs = list(known.infer(op, ins))
        if any(o.value is None for o in outs):
            outs = _folded(op, ins) or outs
        specs.update({n: o for n, o in zip(op.outputs, outs) if n})


def _folded(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    """The outputs of an op whose inputs are known; none if they are not, or if the outputs are large."""
    if any(s is not None and s.value is None for s in inputs):
        return []
    return [Spec.of(v) for v in fold_op(op, [None if s is None else s.value for s in inputs]) or ()]


def _fixed(info: TensorInfo, shape: Sequence[int] | None) -> TensorInfo:
    if shape is None:
        return info
    given = tuple(int(d) for d in shape)
    if any(d < 0 for d in given) or (info.shape is not None and (
            len(given) != len(info.shape) or any(w not in (None, g) for g, w in zip(given, info.shape)))):
        raise ConversionError(f"input {info} cannot have the shape {list(given)}")
    return replace(info, shape=given, dim_names=())
