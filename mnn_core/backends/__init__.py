"""Backends: the interface, and the built-in reference backend. Calling this module lists the backends that work here."""

from .._callable import make_callable
from .base import Backend, BackendConfig, Device, Executable, KernelBackend, PythonKernel, Segment, Support


def _call() -> list[str]:
    """Ids of the backends that a session can be made on now, the fastest first."""
    from .. import plugins
    from ..errors import MNNError

    usable = []
    for name in plugins.backend_ids():
        try:
            usable.append((plugins.open_backend(name)[0].priority, name))
        except MNNError:
            continue  # `mnn_core.plugins()` tells why
    return [name for _, name in sorted(usable, key=lambda u: -u[0])]


make_callable(__name__)

__all__ = ["Backend", "BackendConfig", "Device", "Executable", "KernelBackend", "PythonKernel", "Segment", "Support"]
