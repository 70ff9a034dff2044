"""Backends: the interface, and the built-in reference backend."""

from .base import Backend, BackendConfig, Device, Executable, KernelBackend, PythonKernel, Segment, Support

__all__ = ["Backend", "BackendConfig", "Device", "Executable", "KernelBackend", "PythonKernel", "Segment", "Support"]
