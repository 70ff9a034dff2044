"""Random small ONNX models, on which the engine is compared with onnxruntime."""

from __future__ import annotations

import onnx

from . import control, elementwise, images, index, matrix, norm, quant, reduction, sequence, shape
from .cases import Case, cases
from .families import FAMILIES, versions


def converted() -> set[str]:
    """The operators of the standard that the converter has rules for."""
    from mnn_converter_onnx import rules
    from mnn_converter_onnx.ops import load_rules

    load_rules()
    return {name for name in rules.table() if versions(name)}


def supported() -> list[str]:
    """What can be drawn and converted: by a rule, or as the function by which the standard defines it."""
    schemas = {name: onnx.defs.get_schema(name) for name in FAMILIES}
    functions = {name for name, s in schemas.items() if s.has_function or s.has_context_dependent_function}
    return sorted(set(FAMILIES) & (converted() | functions))


__all__ = ["FAMILIES", "Case", "cases", "control", "converted", "elementwise", "images", "index", "matrix", "norm", "quant",
           "reduction", "sequence", "shape", "supported"]
