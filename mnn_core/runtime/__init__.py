"""The native runtime."""

from ._runtime import KERNEL_ABI

__all__ = ["KERNEL_ABI"]
