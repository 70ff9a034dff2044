"""Ops whose inputs are all constants are computed once, before the model is saved."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import MNNError
from ..ir import Graph, Op, Spec, decoded
from ..ops import find
from . import Pass

#: A result may be this big, or four times what it is computed from: `Fill` must not fill the file.
_ALWAYS_BYTES = 1 << 16
#: Heavy ops are computed here only on inputs up to this many bytes.
_HEAVY_BYTES = 1 << 20
_HEAVY = frozenset({"Convolution", "ConvolutionDepthwise", "Deconvolution", "DeconvolutionDepthwise", "Convolution3D",
                    "ConvTranspose3D", "LSTM", "RNN", "RNNSequenceGRU", "Attention", "LinearAttention"})


def fold_op(op: Op, values: Sequence[np.ndarray | None]) -> list[np.ndarray] | None:
    """The outputs of an op on known inputs; None if it cannot be computed now, or would give too much."""
    found = find(op.type)
    if found is None or not found.pure:
        return None
    given = sum(v.nbytes for v in values if v is not None)
    if op.type in _HEAVY and given > _HEAVY_BYTES:
        return None
    try:
        if not found.dynamic and not any(v is not None and v.dtype.kind == "O" for v in values):
            specs = found.infer(op, [None if v is None else Spec.of(v) for v in values])
            if sum(s.nbytes for s in specs) > max(_ALWAYS_BYTES, 4 * given):
                return None
        with np.errstate(all="ignore"):
            result = found.compute(op, *values)
    except (MNNError, ValueError, TypeError, IndexError, ArithmeticError, MemoryError):
        return None  # running the op will raise it again, with the input shapes in the message
    arrays = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(arrays) < len(op.outputs) or any(not isinstance(a, np.ndarray) for a in arrays):
        return None
    if any(a.dtype.kind == "O" and not all(isinstance(v, str) for v in a.reshape(-1)) for a in arrays):
        return None  # a sequence: files hold tensors only
    return [np.array(a, order="C") for a in arrays[:len(op.outputs)]]


def run(graph: Graph) -> int:
    """Folds every op that depends on constants only."""
    changed, kept = 0, []
    for op in graph.ops:
        constants = [graph.constants.get(name) for name in op.inputs]
        if not any(op.inputs) or any(name and c is None for name, c in zip(op.inputs, constants)):
            kept.append(op)
            continue
        packed = any(c is not None and not isinstance(c, np.ndarray) for c in constants)
        results = None if packed else fold_op(op, [None if c is None else decoded(c) for c in constants])
        if results is None:
            kept.append(op)
            continue
        graph.constants.update({name: value for name, value in zip(op.outputs, results) if name})
        changed += 1
    graph.ops[:] = kept
    return changed


constant_folding = Pass("constant-folding", run, "compute what depends on constants only")
