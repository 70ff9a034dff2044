"""Plain data: Graph, Op, TensorInfo, dtypes, attribute schemas. Imports nothing else of mnn_core but errors."""

from .graph import Graph, Op
from .region import Region
from .tensor import Constant, PackedConstant, Spec, TensorInfo, decoded

__all__ = ["Constant", "Graph", "Op", "PackedConstant", "Region", "Spec", "TensorInfo", "decoded"]
