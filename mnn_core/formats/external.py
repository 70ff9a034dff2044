"""The file of external weights beside a model, `<model>.mnn.weight`: raw bytes that ops point into."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import ModelFormatError


class ExternalFile:
    """Weight files of a model, memory-mapped when first needed. model: path of the model, None if it came as bytes."""

    def __init__(self, model: Path | None, name: str) -> None:
        self.model, self.name = model, name
        self.maps: dict[str, np.ndarray] = {}

    def _open(self, where: str) -> np.ndarray:
        if self.model is None:
            raise ModelFormatError(f"{self.name}: its weights are in a file beside it; load it from its path, not from bytes")
        folder = self.model.parent.resolve()
        path = self.model.parent / (where or f"{self.model.name}.weight")
        if Path(where).is_absolute() or not path.resolve().is_relative_to(folder):
            raise ModelFormatError(f"{self.name}: external weights {where or path.name!r} lie outside of the model's folder")
        try:
            return np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
        except OSError as error:
            raise ModelFormatError(f"{self.name}: cannot read its external weights {path.name}: {error}") from error

    def sections(self, external: tuple[int, ...], where: str | None, op: str) -> list[np.ndarray]:
        """The sections that an op points to: external is (offset, size, size, ...), in bytes."""
        key = where or ""
        if key not in self.maps:
            self.maps[key] = self._open(key)
        data, at, found = self.maps[key], external[0], []
        for size in external[1:]:
            if at < 0 or size < 0 or at + size > data.size:
                raise ModelFormatError(f"{self.name}: {op}: external weights at bytes {at} to {at + size} lie outside of their "
                                       f"file of {data.size} bytes")
            found.append(data[at : at + size])
            at += size
        return found
