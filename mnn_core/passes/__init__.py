"""Graph to graph rewrites: each a small function with a name, in one pipeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..ir import Graph


class Pass(NamedTuple):
    """run rewrites the graph in place and returns how many places it changed.

    main_only: it relies on the declared shapes of the graph's inputs, and so does not run on bodies of control flow, whose
    inputs may have other shapes from one turn to the next.
    """

    name: str
    run: Callable[[Graph], int]
    description: str = ""
    main_only: bool = False
