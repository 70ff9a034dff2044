"""Random cases: a model, its inputs, and what onnxruntime gives for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from hypothesis import reject
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from .draft import Draft, Refused, Tensor, model_of, run_onnxruntime, value_info
from .families import FAMILIES, known, versions

#: The operator sets that onnxruntime runs.
OPSETS = (7, 27)

class Counts(Counter[tuple[str, str]]):
    """(operator, "run" or "refused") -> how many nodes; ("model", ...) -> how many models."""



@dataclass
class Case:
    """A model, its inputs, and its right outputs: name -> value and tolerance relative to the largest element.

    refusals: why nodes that were drawn are not in it. through_file: whether it is to be tried from a file as well.
    """

    model: onnx.ModelProto
    feeds: dict[str, Any]
    wants: dict[str, tuple[Any, float]]
    through_file: bool = False

    def __repr__(self) -> str:
        feeds = "\n".join(f"  {n} = {v.dtype}{list(v.shape)} {v.reshape(-1)[:64].tolist()}" for n, v in self.feeds.items())
        text = "\n".join(line[:2000] for line in onnx.printer.to_text(self.model).splitlines())
        return f"\n{text}\nwith inputs\n{feeds}\n"


def _dims(draft: Draft, tensor: Tensor) -> list[Any]:
    """How an input declares its shape: fixed, by names, or not."""
    kind = 0 if tensor.fixed else draft.integer(0, 2)
    return [d if kind == 0 else f"N{d}" if kind == 1 else None for d in tensor.shape]


def finish(draft: Draft) -> Case:
    """The model of what was drawn. Raises Refused if it is no valid model, or onnxruntime does not run it."""
    made = [t for t in draft.tensors if any(t.name in n.output for n, _ in draft.nodes)]
    outputs = [t for t in made if isinstance(t.value, np.ndarray) and (t not in draft.used or draft.rarely())]
    inputs = [t for t in draft.inputs if t in draft.used]
    graph = helper.make_graph(
        [n for n, _ in draft.nodes], "g", [value_info(t, _dims(draft, t)) for t in inputs],
        [value_info(t, [None] * t.rank) for t in outputs],
        [numpy_helper.from_array(t.value, t.name) for t in draft.tensors if t.constant and t in draft.used])
    model = model_of(graph, draft.opset, *{n.domain for n, _ in draft.nodes})
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        raise Refused(f"onnx.checker: {error}") from None
    feeds = {t.name: t.value for t in inputs}
    values = run_onnxruntime(model.SerializeToString(), feeds) if len(draft.nodes) > 1 else [t.value for t in outputs]
    return Case(model, feeds, {t.name: (v, t.noise * 10) for t, v in zip(outputs, values)}, draft.rarely())


@st.composite
def cases(draw: Any, operators: Sequence[str], length: tuple[int, int], counts: Counts) -> Case:
    """Models of some nodes. What onnxruntime does not run is rejected.

    operators: what to choose from. length: least and greatest number of nodes; a single one is drawn in all of its versions.
    """
    if length == (1, 1):
        op = operators[0]
        edges = [*versions(op), OPSETS[1] + 1]
        spans = [(max(a, OPSETS[0]), min(b - 1, OPSETS[1])) for a, b in pairwise(edges)]
        spans = [s for s in reversed(spans) if s[0] <= s[1] and known(op, s[1])]
        low, high = spans[draw(st.integers(0, len(spans) - 1))]
        opset = high - draw(st.integers(0, high - low))
    else:
        opset = draw(st.sampled_from([21, 17, 13, 11, 18, 23, 9, 20, 15, 25, 12, 7, 8, 10, 16, 14, 19, 22, 24, 26]))
        operators = [o for o in operators if known(o, opset)]
    draft = Draft(draw, opset, counts)
    for _ in range(draw(st.integers(*length))):
        op = operators[draw(st.integers(0, len(operators) - 1))]
        for _ in range(3):
            try:
                FAMILIES[op](draft, op)
                break
            except Refused:
                pass
        draft.chained = True
    if not draft.nodes:
        reject()
    try:
        found = finish(draft)
    except Refused as error:
        counts["model", "refused"] += 1
        counts[str(error)[:300], "why"] += 1
        reject()
    counts["model", "run"] += 1
    return found


def differs(got: np.ndarray, want: np.ndarray, tolerance: float) -> str:
    """How a result is wrong; "" if it is not."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    if want.dtype.kind != "f":
        bad = got != want
    else:
        a, b = got.astype(np.float64), want.astype(np.float64)
        finite = np.isfinite(b)
        scale = max(np.abs(b[finite]).max(), 0.01) if finite.any() else 1.0
        with np.errstate(invalid="ignore"):
            bad = np.where(finite, ~(np.abs(a - b) <= tolerance * scale), ~((a == b) | (np.isnan(a) & np.isnan(b))))
    if not bad.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{int(bad.sum())} of {bad.size} elements differ; at {list(at)} {got[at]}, not {want[at]}"
