"""mnn info"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

from ..ir import Graph, TensorInfo
from .common import command, print_json, table


def add(commands: Any) -> None:
    parser = command(commands, "info", run, "show a model's inputs, outputs, operators, weights and metadata",
                     "mnn info model.mnn")
    parser.add_argument("model", help=".mnn, or a file that an installed converter reads")
    parser.add_argument("--ops", action="store_true", help="list every op with its tensors")
    parser.add_argument("--json", action="store_true")


def summary(graph: Graph) -> dict[str, Any]:
    """What there is to say about a graph, as plain data."""
    every = [graph, *graph.subgraphs.values()]

    def tensor(info: TensorInfo) -> dict[str, Any]:
        names = (*info.dim_names, *[None] * len(info.shape or ()))
        dims = [d if d is not None else name for d, name in zip(info.shape or (), names)]
        return {"name": info.name, "dtype": str(info.dtype) if info.dtype is not None else None,
                "shape": dims if info.shape is not None else None}

    sizes = [int(_size(c)) for g in every for c in g.constants.values()]
    return {
        "inputs": [tensor(i) for i in graph.inputs],
        "outputs": [tensor(o) for o in graph.outputs],
        "operators": dict(Counter(op.type for g in every for op in g.ops).most_common()),
        "subgraphs": {name: len(sub.ops) for name, sub in graph.subgraphs.items()},
        "parameters": sum(sizes),
        "metadata": dict(graph.metadata),
        **{k: v for k, v in graph.extra.items() if isinstance(v, (str, int)) and v != ""},
    }


def _size(constant: Any) -> int:
    size = 1
    for d in constant.shape:
        size *= d
    return size


def run(args: argparse.Namespace) -> int:
    from ..convert import read_graph

    graph = read_graph(args.model)
    found = {"file": str(args.model), "bytes": Path(args.model).stat().st_size, **summary(graph)}
    if args.json:
        print_json(found)
        return 0
    print(f"{args.model}: {found['bytes']:,} bytes, {found['parameters']:,} parameters, {sum(found['operators'].values())} ops")
    print("inputs:", *(f"\n  {i}" for i in graph.inputs))
    print("outputs:", *(f"\n  {o}" for o in graph.outputs))
    print("operators:", ", ".join(f"{name} {count}" for name, count in found["operators"].items()))
    for key in found.keys() - {"file", "bytes", "parameters", "operators", "inputs", "outputs", "subgraphs", "metadata"}:
        print(f"{key}: {found[key]}")
    for key, value in found["metadata"].items():
        start = value[:100].replace("\n", " ")
        print(f"metadata {key}: {start}" + (f"... ({len(value)} characters)" if len(value) > 100 else ""))
    if args.ops:
        print(table([(op.type, op.name, ", ".join(op.inputs), ", ".join(op.outputs)) for op in graph.ops],
                    ("type", "name", "inputs", "outputs")))
    return 0
