"""The file of external weights beside a model, `<model>.mnn.weight`: raw bytes that ops point into."""

from __future__ import annotations

from pathlib import Path, PurePath

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
        asked = where or f"{self.model.name}.weight"
        try:
            path, folder = self.model.parent / asked, self.model.parent.resolve()
            if PurePath(asked).is_absolute() or ".." in PurePath(asked).parts or not path.resolve().is_relative_to(folder):
                raise ModelFormatError(f"{self.name}: external weights {asked!r} lie outside of the model's folder")
            if not path.is_file():
                raise ModelFormatError(f"{self.name}: its external weights {asked!r} are not there")
            return np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
        except (OSError, RuntimeError) as error:  # RuntimeError: symbolic links in a circle
            raise ModelFormatError(f"{self.name}: cannot read its external weights {asked!r}: {error}") from error
        except ValueError as error:
            if isinstance(error, ModelFormatError):
                raise
            raise ModelFormatError(f"{self.name}: {asked!r} is no name of a file") from error

    def sections(self, external: tuple[int, ...], where: str | None, op: str) -> list[np.ndarray]:
        """The sections that an op points to, as bytes: external is (offset, size, size, ...)."""
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


def numbers(section: np.ndarray, dtype: type[np.generic], what: str) -> np.ndarray:
    """Bytes as numbers; they are copied only if they are not aligned. Raises ModelFormatError for a fraction of a number."""
    size = np.dtype(dtype).itemsize
    if section.nbytes % size:
        raise ModelFormatError(f"{what}: {section.nbytes} bytes are stored, not a multiple of {size}")
    return np.require(np.ascontiguousarray(section).view(np.uint8).view(dtype), requirements=["C", "A"])
