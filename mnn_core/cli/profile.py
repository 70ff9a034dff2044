"""mnn profile"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from .common import add_model_options, command, load_model, print_json
from .inputs import add_input_options, read_inputs


def add(commands: Any) -> None:
    parser = command(commands, "profile", run, "time each step of a model",
                     "mnn profile model.mnn --shape 1,3,224,224 --top 20")
    parser.add_argument("model", help=".mnn, or a file that an installed converter reads")
    add_input_options(parser)
    add_model_options(parser)
    parser.add_argument("--top", type=int, metavar="K", help="only the K slowest steps")
    parser.add_argument("--placement", action="store_true", help="show which backend runs each op, and why others do not")
    parser.add_argument("--json", action="store_true")


def run(args: argparse.Namespace) -> int:
    model = load_model(args.model, args)
    feeds = read_inputs(model.inputs, args)
    model.run(feeds)
    found = model.profile(feeds)
    if args.json:
        print_json({"profile": asdict(found), "placement": [asdict(p) for p in model.placement()]})
        return 0
    print(found.table(args.top))
    if args.placement:
        print("\n".join(str(p) for p in model.placement()))
    return 0
