"""The `mnn` command. Each subcommand is a file of this folder, or a plugin's."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from .. import plugins
from ..errors import MNNError
from ..version import __version__
from . import bench, compare, convert, info, ops, profile, run
from . import plugins as plugins_command
from .parser import Parser

COMMANDS = (convert, run, info, bench, profile, compare, ops, plugins_command)

EXIT_OK, EXIT_DIFFERENT, EXIT_USAGE, EXIT_FAILED = 0, 1, 2, 3


def parser() -> argparse.ArgumentParser:
    """The whole command line, commands of plugins included."""
    root = Parser(
        prog="mnn", description="Converts, runs and examines neural networks.",
        epilog="exit codes: 0 done, 1 a comparison or test failed, 2 wrong usage, 3 an error")
    root.add_argument("--version", action="version", version=f"mnn-core {__version__}")
    root.add_argument("--traceback", action="store_true", help="show where an error was raised")
    commands = root.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add(commands)
    plugins.commands(commands)
    return root


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the `mnn` command and returns its exit code."""
    args = parser().parse_args(argv)
    if any("\0" in v for v in vars(args).values() if isinstance(v, str)):
        print(f"mnn {args.command}: an argument holds a zero byte", file=sys.stderr)
        return EXIT_USAGE
    try:
        code = args.run(args) or EXIT_OK
        sys.stdout.flush()  # here, where a reader that left is still noticed
        return code
    except BrokenPipeError:  # the reader of our output left: what follows has nowhere to go
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except (MNNError, OSError, MemoryError) as error:
        if args.traceback:
            raise
        print(f"mnn {args.command}: {error}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
