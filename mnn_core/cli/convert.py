"""mnn convert"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from .common import command, print_json


def add(commands: Any) -> None:
    parser = command(commands, "convert", run, "convert a model to .mnn (or to .json, to read it)",
                     "mnn convert model.onnx model.mnn --weight-quant-bits 8")
    parser.add_argument("source", help=".onnx, .mnn, .json or another file that an installed converter reads")
    parser.add_argument("target", help=".mnn or .json")
    parser.add_argument("--optimize-level", type=int, default=1, choices=(0, 1, 2), help="0: rewrite nothing (default: 1)")
    parser.add_argument("--fp16", action="store_true", help="store weights as 16-bit floats")
    parser.add_argument("--weight-quant-bits", type=int, choices=range(2, 9), metavar="2..8",
                        help="store weights as integers")
    parser.add_argument("--weight-quant-asymmetric", action="store_true", help="with a zero point")
    parser.add_argument("--weight-quant-block", type=int, metavar="N", help="one scale per N input channels (N %% 16 == 0)")
    parser.add_argument("--save-external-data", action="store_true", help="weights in a file of their own, TARGET.weight")
    parser.add_argument("--allow-custom-op", action="store_true", help="keep operators that nobody knows, as custom ops")
    parser.add_argument("--biz-code", help="free text stored in the file")
    parser.add_argument("--json", action="store_true", help="what was done, as JSON")


OPTIONS = ("optimize_level", "fp16", "weight_quant_bits", "weight_quant_asymmetric", "weight_quant_block", "save_external_data",
           "allow_custom_op", "biz_code")


def run(args: argparse.Namespace) -> int:
    from ..convert import convert

    began = time.perf_counter()
    options = {key: getattr(args, key) for key in OPTIONS if getattr(args, key) not in (None, False)}
    graph = convert(args.source, args.target, **options)
    size = Path(args.target).stat().st_size
    found = {"source": args.source, "target": args.target, "bytes": size, "ops": len(graph.ops),
             "seconds": time.perf_counter() - began}
    if args.json:
        print_json(found)
    else:
        print(f"{args.target}: {size:,} bytes, {len(graph.ops)} ops, in {found['seconds']:.1f} s", file=sys.stderr)
    return 0
