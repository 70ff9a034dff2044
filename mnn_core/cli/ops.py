"""mnn ops"""

from __future__ import annotations

import argparse
from typing import Any

from .. import plugins
from ..ir.schema import OP_NUMBERS
from .common import command, print_json, table


def add(commands: Any) -> None:
    parser = command(commands, "ops", run, "list supported operators: the engine's own, or those that a converter reads",
                     "mnn ops --framework onnx")
    parser.add_argument("--framework", metavar="ID", help="id of an installed converter: what it reads")
    parser.add_argument("--backend", metavar="ID", help="only ops that this backend has kernels of its own for")
    parser.add_argument("--json", action="store_true")


def run(args: argparse.Namespace) -> int:
    from ..ops import all_ops

    plugins.load_ops()
    if args.framework:
        described = plugins.converter(args.framework).describe()
        header: tuple[str, ...] = tuple(described[0]) if described else ("operator",)
        rows: list[tuple[str, ...]] = [tuple(row.values()) for row in described]
    else:
        own = plugins.backend_class(args.backend).op_types() if args.backend else None
        rows = [(name, str(OP_NUMBERS.get(name, "-")), (d.compute.__doc__ or " ").strip().partition("\n")[0])
                for name, d in sorted(all_ops().items()) if own is None or name in own]
        header = ("op", "number", "meaning")
    if args.json:
        print_json([dict(zip(header, row)) for row in rows])
    else:
        print(table([tuple(c if len(c) <= 100 else f"{c[:99]}…" for c in row) for row in rows], header))
        print(f"{len(rows)} operators")
    return 0
