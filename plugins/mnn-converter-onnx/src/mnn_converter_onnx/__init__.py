"""ONNX converter of mnn-core. Light: everything heavy is imported when a model is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mnn_core

if TYPE_CHECKING:
    from mnn_core import Converter

mnn_api = (1, 0)


@mnn_core.hookimpl
def mnn_converter() -> Converter:
    """The converter for `.onnx` files."""
    from .converter import OnnxConverter

    return OnnxConverter()
