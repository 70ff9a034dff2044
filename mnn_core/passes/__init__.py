"""Graph to graph rewrites: each a small function with a name, in one pipeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..ir import Graph


class Pass(NamedTuple):
    """run rewrites the graph in place and returns how many places it changed."""

    name: str
    run: Callable[[Graph], int]
    description: str = ""
