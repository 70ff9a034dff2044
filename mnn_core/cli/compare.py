"""mnn compare: the first tensor in which our engine differs from a reference."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .common import add_model_options, command, print_json, table
from .inputs import add_input_options, read_inputs


def add(commands: Any) -> None:
    parser = command(commands, "compare", run,
                     "find the first tensor that differs from a reference: the framework's own runtime (onnxruntime) for model "
                     "files of a framework, the NumPy definitions of the ops for .mnn files",
                     "mnn compare model.onnx --shape 1,3,224,224")
    parser.add_argument("model")
    add_input_options(parser)
    add_model_options(parser)
    parser.add_argument("--tolerance", type=float, default=1e-3,
                        help="largest difference, relative to the largest value (default: 1e-3)")
    parser.add_argument("--all", action="store_true", help="list every compared tensor")
    parser.add_argument("--json", action="store_true")


@dataclass
class Difference:
    """One tensor on both sides. error: largest difference / largest value of the reference (inf if shapes differ)."""

    tensor: str
    error: float
    shape: tuple[int, ...]
    reference_shape: tuple[int, ...]
    range: tuple[float, float]
    reference_range: tuple[float, float]
    worst: tuple[int, ...] | None


def difference(name: str, ours: np.ndarray, reference: np.ndarray) -> Difference:
    """Compares one tensor; NaNs are equal to NaNs, infinities to themselves."""
    def extent(x: np.ndarray) -> tuple[float, float]:
        return (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)

    error, worst = 0.0, None
    if ours.shape != reference.shape:
        error = float("inf")
    elif ours.size:
        a, b = ours.astype(np.float64), reference.astype(np.float64)
        with np.errstate(invalid="ignore"):
            distance = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
        distance[np.isnan(distance)] = np.inf
        index = int(distance.argmax())
        finite = np.abs(b[np.isfinite(b)])
        error = float(distance.flat[index] / max(float(finite.max()) if finite.size else 0.0, 1e-6))
        worst = tuple(int(i) for i in np.unravel_index(index, ours.shape))
    return Difference(name, error, ours.shape, reference.shape, extent(ours), extent(reference), worst)


def capture(model: Any, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Every tensor that a model computes, by name, in the order of computation."""
    found: dict[str, np.ndarray] = {}

    def keep(_op: Any, tensors: Mapping[str, np.ndarray]) -> None:
        found.update({name: np.array(value) for name, value in tensors.items()})

    found.update(model.run_with_callback(feeds, after=keep))
    return found


def run(args: argparse.Namespace) -> int:
    from ..convert import convert
    from ..plugins import converter_for
    from ..session import load

    backend = args.backend.split(",") if "," in args.backend else args.backend
    settings = {"threads": args.threads, "precision": args.precision, "strict": args.strict}
    if Path(args.model).suffix.lower() == ".mnn":
        model, source = load(args.model, backend=backend, **settings), "the NumPy backend"
        feeds = read_inputs(model.inputs, args)
        expected = capture(load(args.model, backend="numpy"), feeds)
    else:
        reference = converter_for(args.model).reference(args.model)
        source = reference.name
        model = load(convert(args.model, optimize_level=0), backend=backend, **settings)
        feeds = read_inputs(model.inputs, args)
        expected = reference.run(feeds)
    ours = capture(model, feeds)
    compared = [difference(name, ours[name], value) for name, value in expected.items() if name in ours]
    first = next((d for d in compared if not d.error <= args.tolerance), None)
    if args.json:
        print_json({"reference": source, "compared": len(compared), "first_difference": asdict(first) if first else None,
                    "worst": max((d.error for d in compared), default=0.0)})
        return int(first is not None)
    if args.all:
        print(table([(d.tensor, d.error, list(d.shape)) for d in compared], ("tensor", "error", "shape")))
    if first is None:
        worst = max(compared, key=lambda d: d.error, default=None)
        print(f"{len(compared)} tensors equal those of {source} within {args.tolerance:g}"
              + (f"; the worst is {worst.tensor!r} with {worst.error:.2g}" if worst else ""))
        return 0
    print(f"first difference from {source}: tensor {first.tensor!r}, error {first.error:.3g} (allowed "
          f"{args.tolerance:g})")
    print(table([("ours", list(first.shape), *first.range), (source, list(first.reference_shape), *first.reference_range)],
                ("", "shape", "min", "max")))
    if first.worst is not None:
        here, there = ours[first.tensor][first.worst], expected[first.tensor][first.worst]
        print(f"worst at {list(first.worst)}: {here} here, {there} there")
    return 1
