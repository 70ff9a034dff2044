"""Which backends a model gets: those that were asked for, then the host's for what these lack."""

from __future__ import annotations

from collections.abc import Sequence

from .. import plugins
from ..errors import BackendError, warn
from .base import Backend, BackendConfig

_told: set[str] = set()


def open_backends(backend: str | Sequence[str], config: BackendConfig) -> list[Backend]:
    """The backends of a model in order of preference, the reference backend last; the config's options are the first one's.

    backend: an id, "cpu" or "auto" for the fastest CPU backend, or several in order. Raises BackendError for one that is
    unknown, not installed or without a device; what was named is never silently left out.
    """
    asked = [backend] if isinstance(backend, str) else list(backend)
    if not asked:
        raise BackendError("backend=[]: name at least one backend, or leave it out for the fastest CPU backend")
    names: list[str] = []
    for name in asked:
        names += _cpu(tell=True) if name in ("cpu", "auto") else [name]
    opened: list[Backend] = []
    for name in dict.fromkeys(names):
        opened.append(_open_one(name, config if not opened else _without_options(config)))
    if isinstance(backend, str) and not opened[0].host:
        opened += [_open_one(name, _without_options(config)) for name in _cpu(tell=False)]
    if all(b.id != "numpy" for b in opened):
        opened.append(_open_one("numpy", _without_options(config)))
    return opened


def _open_one(name: str, config: BackendConfig) -> Backend:
    cls, devices = plugins.open_backend(name)
    return cls(devices[0], config)


def _without_options(config: BackendConfig) -> BackendConfig:
    return BackendConfig(config.threads, config.precision, config.memory, config.power)


def _cpu(tell: bool) -> list[str]:
    """The fastest CPU backend that is installed."""
    found, remark = plugins.cpu_backends()
    if found:
        return found[:1]
    if tell and remark not in _told:
        _told.add(remark)
        warn(remark, RuntimeWarning)
    return ["numpy"]
