"""An argument parser whose errors are one line, and which takes MNN's way to write flags."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

_TRUE, _FALSE = frozenset({"1", "true", "on", "yes"}), frozenset({"0", "false", "off", "no"})


class Parser(argparse.ArgumentParser):
    """Wrong usage is told in one line, with exit code 2. Flags may be written `--flag=1`, `--flag=true` and `--flag=0`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})
        self.subcommand = " " in self.prog

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message} (see {self.prog} --help)", file=sys.stderr)
        sys.exit(2)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        given = sys.argv[1:] if args is None else list(args)
        found, left = super().parse_known_args(self._plain(given), namespace)
        if left and self.subcommand:
            self.error(f"unknown argument {left[0]!r}")
        return found, left

    def _plain(self, given: Sequence[str]) -> list[str]:
        """Arguments with `--flag=1` as `--flag`, and without `--flag=0` (as `--no-flag` where there is one)."""
        plain: list[str] = []
        for item in given:
            name, equals, value = item.partition("=")
            action = self._option_string_actions.get(name)
            if not equals or action is None or action.nargs != 0 or value.lower() not in _TRUE | _FALSE:
                plain.append(item)
            elif value.lower() in _TRUE:
                plain.append(name)
            else:
                plain += [o for o in action.option_strings if o.startswith("--no-")][:1]
        return plain
