"""Model files: `.mnn` and JSON."""

from .. import ops as _ops  # noqa: F401  (declares the attributes that the reader and the writer go by)
from .foreign import foreign_ops
from .json_view import read_json, write_json
from .quantize import from_codes, quantize
from .reader import read_mnn
from .weights import HalfConstant, QuantizedWeight, half
from .writer import write_mnn

__all__ = ["HalfConstant", "QuantizedWeight", "foreign_ops", "from_codes", "half", "quantize", "read_json", "read_mnn",
           "write_json", "write_mnn"]
