"""Whether a converted model gives what its source gives in the framework's own runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import plugins
from ..converter import Reference
from ..errors import ConversionError, MNNError
from ..ir import Graph, TensorInfo
from ..ops import find
from .differences import Difference, difference, worst_of

#: What unknown dimensions of inputs are taken as, one after another until the reference takes them: those of images
#: (third and fourth of four), and all others; the first of an input is 1.
_GUESSES = ((64, 8), (224, 16), (32, 1))
#: Largest whole number in random inputs, one after another: indices into small tables must stay inside.
_INTEGERS = (9, 1)


@dataclass(frozen=True)
class Verification:
    """worst: the output that differs most. shapes: of the inputs. reason: why nothing was compared, else ""."""

    worst: Difference | None = None
    shapes: Mapping[str, tuple[int, ...]] | None = None
    tolerance: float = 0.0
    reference: str = ""
    reason: str = ""

    @property
    def failed(self) -> bool:
        return self.worst is not None and not self.worst.within(self.tolerance)

    def __str__(self) -> str:
        if self.worst is None:
            return f"not verified: {self.reason}"
        if not self.failed:
            return (f"verified against {self.reference}: the worst output {self.worst.tensor!r} differs by "
                    f"{self.worst.error:.2g} of its largest value, {self.worst.absolute:.2g} at most")
        given = ", ".join(f"{n}={','.join(map(str, s))}" for n, s in (self.shapes or {}).items())
        return "\n  ".join([f"output {self.worst.tensor!r} differs from {self.reference} by {self.worst.error:.3g} of its "
                            f"largest value (allowed {self.tolerance:g}), inputs {given}",
                            *self.worst.lines("here", self.reference)])


def verify(graph: Graph, reference: Reference, shapes: Mapping[str, Sequence[int]] | None = None,
           tolerance: float = 1e-3, backend: str = "cpu") -> Verification:
    """Runs a graph and its source on the same random inputs, of a fixed seed, and compares the outputs.

    shapes: of inputs whose dimensions are not all known; others are guessed. tolerance: largest difference relative to the
    largest value of an output. Raises what our side raises if it cannot run the graph.
    """
    reason = _unfit(graph)
    if reason:
        return Verification(reason=reason)
    from ..session import load

    for sizes, top in [(s, t) for s in _GUESSES for t in _INTEGERS]:
        feeds = random_feeds(graph.inputs, shapes or {}, sizes, top)
        try:
            expected = reference.run(feeds)
        except (MNNError, RuntimeError, ValueError) as error:
            reason = f"{reference.name} does not run it on guessed inputs; give shapes ({str(error).strip().splitlines()[-1]})"
            continue
        ours = load(graph, backend=backend).run(feeds)
        found = [difference(o.name, np.asarray(ours[o.name]), expected[o.name]) for o in graph.outputs
                 if isinstance(expected.get(o.name), np.ndarray)]
        if not found:
            return Verification(reason=f"{reference.name} shows none of its outputs")
        bad = [d for d in found if not d.within(tolerance)]
        return Verification(worst_of(bad or found), {n: v.shape for n, v in feeds.items()}, tolerance, reference.name)
    return Verification(reason=reason)


def verify_conversion(source: Any, converter: str | None, graph: Graph, shapes: Mapping[str, Sequence[int]] | None, keep: bool,
                      on_verified: Callable[[Verification], None] | None) -> None:
    """What `convert` does to verify; see there. Raises ConversionError if the graph is wrong, or cannot be compared."""
    if isinstance(source, Graph) or (converter is None and Path(source).suffix.lower() in (".mnn", ".json")):
        raise ConversionError("there is nothing to verify a .mnn, .json or Graph against; only models of other frameworks")
    reader = plugins.converter(converter) if converter is not None else plugins.converter_for(Path(source))
    try:
        reference = reader.reference(source, every=False)
    except ConversionError as error:
        found = Verification(reason=str(error))
    else:
        found = verify(graph, reference, shapes)
    if on_verified is not None:
        on_verified(found)
    elif found.worst is None and not keep:
        raise ConversionError(f"{found}; nothing was written")
    if found.failed and not keep:
        raise ConversionError(f"verification failed, and nothing was written: {found}")


def _unfit(graph: Graph) -> str:
    """Why random inputs cannot tell whether a graph is right; "" if they can."""
    for info in graph.inputs:
        if info.kind != "tensor" or info.shape is None or (info.dtype is not None and info.dtype.kind not in "biuf"):
            return f"input {info} cannot be made up"
    for op in (op for g in (graph, *graph.subgraphs.values()) for op in g.ops):
        known = find(op.type)
        if known is None:
            return f"{op} has no definition here, so that the model does not run"
        if not known.pure and not any(key.endswith("_graph") for key in op.attrs):  # bodies are looked at themselves
            return f"{op} gives other values in every run"
    return ""


def random_feeds(infos: Sequence[TensorInfo], shapes: Mapping[str, Sequence[int]], sizes: tuple[int, int] = _GUESSES[0],
                 top: int = _INTEGERS[0]) -> dict[str, Any]:
    """Random inputs by name: normal floats, whole numbers from 0 to `top`; dimensions of one name are equal."""
    rng, named, feeds = np.random.default_rng(0), dict[str, int](), dict[str, Any]()
    for info in infos:  # dimensions that are given count for others of the same name
        named.update({n: int(size) for n, size in zip(info.dim_names, shapes.get(info.name, ())) if n})
    for info in infos:
        dims = []
        for axis, size in enumerate(info.shape or ()):
            name = info.dim_names[axis] if axis < len(info.dim_names) else None
            guess = 1 if axis == 0 else sizes[0] if len(info.shape or ()) == 4 and axis > 1 else sizes[1]
            dims.append(size if size is not None else named.setdefault(name, guess) if name else guess)
        shape, dtype = tuple(shapes.get(info.name, dims)), info.dtype or np.dtype(np.float32)
        if dtype.kind == "f":
            feeds[info.name] = rng.standard_normal(shape).astype(dtype)
        else:
            feeds[info.name] = rng.integers(0, 1 if dtype.kind == "b" else top, shape, endpoint=True).astype(dtype)
    return feeds
