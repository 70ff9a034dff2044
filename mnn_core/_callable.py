"""Modules that are also functions: `mnn.plugins` is a module, `mnn.plugins()` lists the plugins."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class CallableModule(ModuleType):
    """A module with a function `_call`, which runs when the module is called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)


def make_callable(name: str) -> None:
    """Makes the module of that name callable."""
    sys.modules[name].__class__ = CallableModule
