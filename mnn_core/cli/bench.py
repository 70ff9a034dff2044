"""mnn bench"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any

from .common import add_model_options, command, load_model, print_json
from .inputs import add_input_options, read_inputs


def add(commands: Any) -> None:
    parser = command(commands, "bench", run, "time a model", "mnn bench model.mnn --shape 1,3,224,224 --threads 2")
    parser.add_argument("model", help=".mnn, or a file that an installed converter reads")
    add_input_options(parser)
    add_model_options(parser)
    parser.add_argument("--rounds", type=int, default=50, help="timed runs, at most (default: 50)")
    parser.add_argument("--seconds", type=float, default=10, help="time for them, at most (default: 10)")
    parser.add_argument("--warmup", type=int, default=3, help="runs before, not timed (default: 3)")
    parser.add_argument("--json", action="store_true")


def run(args: argparse.Namespace) -> int:
    began = time.perf_counter()
    model = load_model(args.model, args)
    feeds = read_inputs(model.inputs, args)
    model.run(feeds)
    first = time.perf_counter() - began
    for _ in range(args.warmup):
        model.run(feeds)
    times: list[float] = []
    until = time.perf_counter() + args.seconds
    while len(times) < max(1, args.rounds) and (not times or time.perf_counter() < until):
        start = time.perf_counter()
        model.run(feeds)
        times.append((time.perf_counter() - start) * 1e3)
        if sys.stderr.isatty():
            print(f"\r{len(times)}/{args.rounds}", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r", end="", file=sys.stderr)
    ordered = sorted(times)
    found = {"model": args.model, "backend": args.backend, "rounds": len(times), "min_ms": ordered[0],
             "median_ms": statistics.median(times), "p90_ms": ordered[int(0.9 * (len(times) - 1))],
             "load_to_first_result_ms": first * 1e3}
    if args.json:
        print_json(found)
    else:
        print("  ".join(f"{key} {value:.3f}" if isinstance(value, float) else f"{key} {value}" for key, value in found.items()))
    return 0
