"""Random graphs from the command line, any number with any seed; prints minimal models that go wrong.

    cd tests && python -m random_graphs [--count N] [--seed S] [--operators Conv,Gemm] [--chains] [--quick]
"""

from __future__ import annotations

import argparse
import re
import resource
import sys
import time
import traceback
import warnings

from hypothesis import HealthCheck, Phase, given, seed, settings

from . import cases, supported
from .cases import Case, Counts
from .check import Fault, check

#: Bytes of address space for all: a fault that asks for more is a fault, and not the end of the machine.
SPACE = 4 << 30


def campaign(name: str, operators: list[str], length: tuple[int, int], count: int, start: int, counts: Counts,
             shrink: bool) -> list[str]:
    """Draws cases; returns what went wrong. shrink: stop at the first fault and make its model small, else go on and return
    the smallest model of each kind of fault."""
    found: dict[str, str] = {}

    @settings(max_examples=count, deadline=None, database=None, report_multiple_bugs=False, print_blob=False,
              suppress_health_check=list(HealthCheck), phases=[Phase.generate, *([Phase.shrink] if shrink else [])])
    @seed(start)
    @given(cases(operators, length, counts))
    def run(case: Case) -> None:
        try:
            check(case)
        except Fault as fault:
            kind, text = re.sub(r"[-+\d.einfa, \[\]]+", "", str(fault)), f"==== {name}: {fault}\n{case!r}"
            if shrink:
                found.clear()
                found[kind] = text
                raise
            if kind not in found or len(text) < len(found[kind]):
                found[kind] = text

    try:
        run()
    except Fault:
        pass
    except Exception:  # a fault of the generator's own
        return [*found.values(), f"==== {name}: {traceback.format_exc()}"]
    return list(found.values())


def main() -> None:
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20, help="graphs per operator, or of chains")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--operators", help="comma-separated; all if not given")
    parser.add_argument("--chains", action="store_true", help="graphs of two to eight nodes")
    parser.add_argument("--quick", action="store_true",
                        help="go on after a fault; print the smallest model met of each kind, but do not make it smaller")
    parser.add_argument("--refusals", action="store_true",
                        help="print what onnxruntime or onnx.checker said of discarded nodes")
    options = parser.parse_args()
    counts: Counts = Counts()
    operators = options.operators.split(",") if options.operators else supported()
    start, faults = time.monotonic(), 0
    jobs = [("chains", operators, (2, 8))] if options.chains else [(o, [o], (1, 1)) for o in operators]
    for name, chosen, length in jobs:
        for text in campaign(name, chosen, length, options.count, options.seed, counts, not options.quick):
            faults += 1
            print(text, flush=True)
    print(f"{counts['model', 'run']} graphs in {time.monotonic() - start:.0f} s, {faults} faults")
    for op in operators:
        ran, refused = counts[op, "run"], counts[op, "refused"]
        if not ran or refused > 5 * ran:
            print(f"{op}: {ran} nodes ran, onnxruntime refused {refused}")
    if options.refusals:
        for (text, kind), number in counts.items():
            if kind == "why":
                print(f"{number} x {text}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
