"""Conversion rules, one file per family of operators."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules


@cache
def load_rules() -> None:
    """Imports every file of this package, which registers its rules."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
