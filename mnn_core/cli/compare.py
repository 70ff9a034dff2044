"""mnn compare: the first tensor in which our engine differs from a reference."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..ir import Graph, Op
from ..testing.differences import Difference, capture, difference, worst_of
from .common import add_model_options, command, model_settings, print_json, table
from .inputs import add_input_options, read_inputs

#: Largest relative difference that is allowed where --tolerance does not say: of 32-bit floats, 16-bit weights, and integers.
_PLAIN, _HALF, _QUANTISED = 1e-3, 2e-2, 0.2


def add(commands: Any) -> None:
    parser = command(commands, "compare", run,
                     "find the first tensor that differs from a reference: the framework's own runtime (onnxruntime) for model "
                     "files of a framework, the NumPy definitions of the ops for .mnn files, or another model",
                     "mnn compare model.onnx --shape 1,3,224,224 --html report.html\n  mnn compare model.mnn --against "
                     "model.onnx\n  mnn compare model.onnx --fp16")
    parser.add_argument("model")
    parser.add_argument("--against", metavar="FILE", help="the reference: a model file of a framework, or a .mnn file, which "
                        "runs on --against-backend")
    parser.add_argument("--against-backend", default="numpy", metavar="ID", help="backend of a .mnn reference (default: numpy)")
    parser.add_argument("--fp16", action="store_true", help="convert with weights as 16-bit floats first")
    parser.add_argument("--weight-quant-bits", type=int, choices=range(2, 9), metavar="2..8",
                        help="convert with weights of so many bits first")
    parser.add_argument("--optimize-level", type=int, default=0, choices=(0, 1, 2),
                        help="how to convert: 0 keeps every tensor (default)")
    add_input_options(parser)
    add_model_options(parser)
    parser.add_argument("--tolerance", type=float, metavar="X", help="largest difference, relative to the largest value "
                        "(default: 1e-3; 2e-2 with weights of 16 bits, 0.2 with fewer)")
    parser.add_argument("--all", action="store_true", help="list every compared tensor")
    parser.add_argument("--html", metavar="FILE", help="write a report with a picture of the graph around the difference")
    parser.add_argument("--json", action="store_true")


def run(args: argparse.Namespace) -> int:
    if args.tolerance is not None and not args.tolerance >= 0:
        raise InputError(f"--tolerance {args.tolerance}: expected a number of 0 or more")
    graph, tolerance = _graph(args)
    source, ours, expected = _both(args, graph)
    compared = [difference(name, ours[name], value) for name, value in expected.items()
                if name in ours and isinstance(value, np.ndarray) and ours[name].dtype != object]
    first = next((d for d in compared if not d.within(tolerance)), None)
    worst = worst_of(compared)
    maker = next((op for op in graph.ops if first is not None and first.tensor in op.outputs), None)
    if args.html:
        from ..formats.whole import write_text
        from .compare_html import report

        write_text(args.html, report(args.model, source, graph, compared, first, tolerance))
    if args.json:
        print_json({"reference": source, "compared": len(compared), "tolerance": tolerance,
                    "first_difference": {**asdict(first), "op": str(maker) if maker else None} if first else None,
                    "worst": worst.error if worst else 0.0, "worst_tensor": worst.tensor if worst else None})
        return int(first is not None)
    if args.all:
        print(table([(d.tensor, d.error, list(d.shape)) for d in compared], ("tensor", "error", "shape")))
    _print(source, compared, first, worst, maker, tolerance, graph)
    return int(first is not None)


def _print(source: str, compared: list[Difference], first: Difference | None, worst: Difference | None, maker: Op | None,
           tolerance: float, graph: Graph) -> None:
    if first is None:
        print(f"{len(compared)} tensors equal those of {source} within {tolerance:g}"
              + (f"; the worst is {worst.tensor!r} with {worst.error:.2g}" if worst else ""))
        return
    print(f"first difference from {source}: tensor {first.tensor!r}, error {first.error:.3g} (allowed {tolerance:g})"
          + (f", made by {maker}" if maker else ""))
    print(table([("ours", list(first.shape), *first.range), (source, list(first.reference_shape), *first.reference_range)],
                ("", "shape", "min", "max")))
    print("\n".join(first.lines()[2:]))
    if maker is not None:
        errors = {d.tensor: d.error for d in compared}
        for name in maker.inputs:
            if name and name not in graph.constants:
                print(f"its input {name!r}: " + (f"error {errors[name]:.3g}" if name in errors else "not compared"))


def _graph(args: argparse.Namespace) -> tuple[Graph, float]:
    """The model as it is to run, and the allowed difference."""
    from ..convert import convert, read_graph
    from ..formats import read_mnn, write_mnn

    plain = Path(args.model).suffix.lower() in (".mnn", ".json")
    graph = read_graph(args.model) if plain else convert(args.model, optimize_level=args.optimize_level)
    if args.fp16 or args.weight_quant_bits:
        graph = read_mnn(write_mnn(graph, fp16=args.fp16, weight_quant_bits=args.weight_quant_bits))
    kinds = {type(c).__name__ for g in (graph, *graph.subgraphs.values()) for c in g.constants.values()}
    found = _QUANTISED if "QuantizedWeight" in kinds else _HALF if "HalfConstant" in kinds else _PLAIN
    same = plain and not args.fp16 and not args.weight_quant_bits and args.against is None  # the same weights on both sides
    return graph, args.tolerance if args.tolerance is not None else _PLAIN if same else found


def _both(args: argparse.Namespace, graph: Graph) -> tuple[str, Mapping[str, np.ndarray], Mapping[str, np.ndarray]]:
    """Name of the reference, our tensors, and its own."""
    from ..convert import read_graph
    from ..plugins import converter_for
    from ..session import load

    model = load(graph, **model_settings(args))
    feeds = read_inputs(model.inputs, args)
    other = args.against or args.model
    if Path(other).suffix.lower() not in (".mnn", ".json"):
        reference = converter_for(other).reference(other)
        source, expected = reference.name, reference.run(feeds)
    elif args.against is None:
        source, expected = "the NumPy backend", capture(load(read_graph(other), backend="numpy"), feeds)
    else:
        source = f"{other} on {args.against_backend}"
        expected = capture(load(read_graph(other), backend=args.against_backend), feeds)
    return source, capture(model, feeds), expected
