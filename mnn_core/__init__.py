"""mnn-core: a deep-learning inference engine of plugins."""

from pathlib import Path

from .errors import MNNError
from .hooks import hookimpl
from .ir import Graph, Op, TensorInfo
from .version import API_VERSION, __version__


def get_include() -> str:
    """Folder of the C header `mnn/kernel.h`."""
    return str(Path(__file__).parent / "include")


__all__ = ["API_VERSION", "Graph", "MNNError", "Op", "TensorInfo", "__version__", "get_include", "hookimpl"]
