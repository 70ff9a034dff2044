"""Ops of classical machine learning. Light: the ops are imported when a model is loaded."""

from __future__ import annotations

import mnn_core

mnn_api = (1, 0)


@mnn_core.hookimpl
def mnn_register_ops() -> None:
    """Registers the ops of every module of this package."""
    from . import dictionaries, encoders, svm, trees, words  # noqa: F401 - registering is what they do
