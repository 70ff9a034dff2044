"""Random small ONNX models, on which the engine is compared with onnxruntime."""

from __future__ import annotations

from . import control, elementwise, images, index, matrix, norm, quant, reduction, shape
from .cases import Case, cases
from .families import FAMILIES


def supported() -> list[str]:
    """The operators of the standard that the converter knows and that can be drawn."""
    from mnn_converter_onnx import rules
    from mnn_converter_onnx.ops import load_rules

    load_rules()
    return sorted(set(FAMILIES) & set(rules.table()))


__all__ = ["FAMILIES", "Case", "cases", "control", "elementwise", "images", "index", "matrix", "norm", "quant",
           "reduction", "shape", "supported"]
