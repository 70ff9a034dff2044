"""mnn run"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import MNNError
from .common import add_model_options, command, load_model, print_json
from .inputs import add_input_options, read_inputs


def add(commands: Any) -> None:
    parser = command(commands, "run", run, "run a model once and print or save its outputs",
                     "mnn run model.mnn --input x=photo.jpg --mean 127.5 --std 127.5 --output result.npz")
    parser.add_argument("model", help=".mnn, or a file that an installed converter reads")
    add_input_options(parser)
    add_model_options(parser)
    parser.add_argument("--output", "-o", help=".npz for all outputs, or .npy for the only one")
    parser.add_argument("--top", type=int, metavar="K", help="show the K greatest elements of each output")
    parser.add_argument("--json", action="store_true", help="outputs with all their values, as JSON")


def describe(name: str, value: np.ndarray, top: int | None) -> str:
    """A line or two on one output."""
    text = f"{name}: {value.dtype}{list(value.shape)}"
    if value.size and value.dtype.kind in "fiu":
        text += f"  min {value.min():.6g}  max {value.max():.6g}  mean {value.mean():.6g}"
    if top and value.size:
        best = np.argsort(value, axis=None)[::-1][:top]
        text += "".join(f"\n  {[int(d) for d in np.unravel_index(i, value.shape)]}: {value.flat[i]:.6g}" for i in best)
    elif value.size <= 16:
        text += f"\n  {np.array2string(value, precision=6, max_line_width=120)}"
    return text


def run(args: argparse.Namespace) -> int:
    if args.output and Path(args.output).suffix not in (".npy", ".npz"):
        raise MNNError(f"--output {args.output}: expected a file name that ends in .npz, or .npy for a single output")
    model = load_model(args.model, args)
    outputs = model.run(read_inputs(model.inputs, args))
    if args.output:
        if Path(args.output).suffix == ".npy" and len(outputs) == 1:
            np.save(args.output, next(iter(outputs.values())))
        else:
            np.savez(args.output, **outputs)
    if args.json:
        print_json({n: {"dtype": str(v.dtype), "shape": list(v.shape), "values": v.tolist()} for n, v in outputs.items()})
    else:
        print("\n".join(describe(name, value, args.top) for name, value in outputs.items()))
    return 0
