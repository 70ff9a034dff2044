"""Plain data: Graph, Op, TensorInfo, dtypes, attribute schemas. Imports nothing else of mnn_core but errors."""

from .graph import Graph, Op
from .tensor import Constant, PackedConstant, Spec, TensorInfo, decoded

__all__ = ["Constant", "Graph", "Op", "PackedConstant", "Spec", "TensorInfo", "decoded"]
