"""mnn-core: a deep-learning inference engine of plugins."""

from pathlib import Path

from .errors import MNNError
from .hooks import hookimpl
from .ir import Graph, Op, TensorInfo

__version__ = "0.1.0"
#: (major, minor) of the Python plugin API.
API_VERSION = (1, 0)


def get_include() -> str:
    """Folder of the C header `mnn/kernel.h`."""
    return str(Path(__file__).parent / "include")


__all__ = ["API_VERSION", "Graph", "MNNError", "Op", "TensorInfo", "__version__", "get_include", "hookimpl"]
