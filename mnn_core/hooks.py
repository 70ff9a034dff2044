"""The whole plugin API on one page. Hooks run while loading and planning, never during inference.

A plugin is any object named by an entry point of one of the groups below; the entry point's name is the public id. It
implements the hook of its group with `@mnn_core.hookimpl` and imports what is heavy inside the hook.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from .backends import Backend
    from .converter import Converter
    from .passes import Pass

hookspec = pluggy.HookspecMarker("mnn")
hookimpl = pluggy.HookimplMarker("mnn")

#: Entry-point group -> the hook that a plugin of the group implements.
GROUPS = {
    "mnn.backends": "mnn_backend",
    "mnn.converters": "mnn_converter",
    "mnn.ops": "mnn_register_ops",
    "mnn.passes": "mnn_passes",
    "mnn.commands": "mnn_command",
}


@hookspec(firstresult=True)
def mnn_backend() -> type[Backend]:
    """Return the backend class."""
    raise AssertionError


@hookspec(firstresult=True)
def mnn_converter() -> Converter:
    """Return a converter: which files it reads, and how they become a Graph."""
    raise AssertionError


@hookspec
def mnn_register_ops() -> None:
    """Register ops with `mnn_core.register_op`. Called once, before the first model is loaded."""


@hookspec
def mnn_passes() -> list[Pass]:
    """Return graph passes to add to the pipeline."""
    raise AssertionError


@hookspec
def mnn_command(subparsers: Any) -> argparse.ArgumentParser | None:
    """Add a subcommand of `mnn` to argparse subparsers; set_defaults(run=function(args) -> exit code)."""
