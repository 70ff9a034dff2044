"""mnn-core: a deep-learning inference engine of plugins.

    import mnn_core as mnn

    model = mnn.load("model.mnn")
    outputs = model.run({"x": array})

Names are imported when they are first used, so that `import mnn_core` stays light.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .version import API_VERSION, __version__

if TYPE_CHECKING:
    from . import backends, convert, plugins
    from .backends import Backend, BackendConfig, Device, Executable, KernelBackend, Segment, Support
    from .backends.native import NativeBackend
    from .converter import Converter
    from .errors import (
        BackendError,
        CancelledError,
        ConversionError,
        GraphError,
        InputError,
        InputTypeError,
        KernelError,
        MNNError,
        ModelFormatError,
        NarrowingWarning,
        PlacementWarning,
        PluginError,
        ShapeError,
        UnsupportedOpError,
    )
    from .hooks import hookimpl
    from .ir import Graph, Op, PackedConstant, Region, Spec, TensorInfo
    from .ops import Example, Lowered, like_first
    from .ops import register as register_op
    from .passes import Pass
    from .runtime import CancelToken
    from .session import Model, load

#: Public name -> module of this package that has it; "module:name" where it has another name there.
_WHERE = {
    **dict.fromkeys(("Backend", "BackendConfig", "Device", "Executable", "KernelBackend", "Segment", "Support"), "backends"),
    "NativeBackend": "backends.native",
    "Converter": "converter",
    **dict.fromkeys(("BackendError", "CancelledError", "ConversionError", "GraphError", "InputError", "InputTypeError",
                     "KernelError", "MNNError", "ModelFormatError", "NarrowingWarning", "PlacementWarning", "PluginError",
                     "ShapeError", "UnsupportedOpError"), "errors"),
    "hookimpl": "hooks",
    **dict.fromkeys(("Graph", "Op", "PackedConstant", "Region", "Spec", "TensorInfo"), "ir"),
    **dict.fromkeys(("Example", "Lowered", "like_first"), "ops"),
    "register_op": "ops:register",
    "Pass": "passes",
    "CancelToken": "runtime",
    "Model": "session",
    "load": "session",
}

#: Modules that can be called as functions: `mnn.backends()`, `mnn.convert(...)`, `mnn.plugins()`.
_MODULES = ("backends", "convert", "plugins")


def get_include() -> str:
    """Folder of the C header `mnn/kernel.h`."""
    return str(Path(__file__).parent / "include")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _WHERE[name].partition(":")
    value = getattr(import_module(f".{module}", __name__), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "API_VERSION",
    "Backend",
    "BackendConfig",
    "BackendError",
    "CancelToken",
    "CancelledError",
    "ConversionError",
    "Converter",
    "Device",
    "Example",
    "Executable",
    "Graph",
    "GraphError",
    "InputError",
    "InputTypeError",
    "KernelBackend",
    "KernelError",
    "Lowered",
    "MNNError",
    "Model",
    "ModelFormatError",
    "NarrowingWarning",
    "NativeBackend",
    "Op",
    "PackedConstant",
    "Pass",
    "PlacementWarning",
    "PluginError",
    "Region",
    "Segment",
    "ShapeError",
    "Spec",
    "Support",
    "TensorInfo",
    "UnsupportedOpError",
    "__version__",
    "backends",
    "convert",
    "get_include",
    "hookimpl",
    "like_first",
    "load",
    "plugins",
    "register_op",
]
