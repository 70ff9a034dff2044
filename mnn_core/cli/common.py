"""What subcommands share: tables, help with an example, options of models."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ..errors import MNNError


def command(commands: Any, name: str, run: Callable[[argparse.Namespace], int | None], summary: str,
            example: str) -> argparse.ArgumentParser:
    """Adds a subcommand whose help ends with an example."""
    made = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".",
                               epilog=f"example:\n  {example}", formatter_class=argparse.RawDescriptionHelpFormatter)
    made.set_defaults(run=run)
    return made


def table(rows: Iterable[Sequence[Any]], header: Sequence[str]) -> str:
    """Rows as text in aligned columns; numbers stand on the right."""
    rows = list(rows)
    cells = [[str(c) for c in header], *([f"{c:,.3f}" if isinstance(c, float) else str(c) for c in row] for row in rows)]
    widths = [max(len(r[i]) for r in cells) for i in range(len(header))]
    right = [bool(rows) and all(isinstance(r[i], (int, float)) for r in rows) for i in range(len(header))]
    lines = ("  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)


def print_json(value: Any) -> None:
    """Prints a value as JSON; what JSON does not know is printed as text."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Options that are arguments of `mnn_core.load`."""
    group = parser.add_argument_group("how to run")
    group.add_argument("--backend", default="cpu", help='id, or several in order of preference: "cuda,cpu" (default: cpu)')
    group.add_argument("--threads", type=int, help="worker threads (default: all cores that this process may use)")
    group.add_argument("--precision", default="normal", choices=("low", "normal", "high"))
    group.add_argument("--strict", action="store_true", help="fail rather than run an op on another backend")
    group.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="backend option; may repeat")


def model_settings(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `mnn_core.load` that `add_model_options` asks for. Raises MNNError for a malformed --option."""
    options = {}
    for item in args.option:
        key, found, value = item.partition("=")
        if not found:
            raise MNNError(f"--option {item}: expected KEY=VALUE")
        options[key] = value
    return {"backend": args.backend.split(",") if "," in args.backend else args.backend, "threads": args.threads,
            "precision": args.precision, "strict": args.strict, "options": options}


def load_model(path: str, args: argparse.Namespace) -> Any:
    """Loads a .mnn file, or converts any other model file on the fly."""
    from ..convert import convert
    from ..session import load

    settings = model_settings(args)
    return load(path if Path(path).suffix.lower() == ".mnn" else convert(path), **settings)
