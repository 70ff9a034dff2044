"""The op set: one file per family. Importing this package registers every built-in op."""

from importlib import import_module
from pkgutil import iter_modules

from .registry import Example, Lowered, OpDef, all_ops, definition, find, like_first, register

for _module in iter_modules(__path__):
    if not _module.name.startswith("_") and _module.name != "registry":
        import_module(f"{__name__}.{_module.name}")

__all__ = ["Example", "Lowered", "OpDef", "all_ops", "definition", "find", "like_first", "register"]
