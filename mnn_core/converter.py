"""What a converter is: a plugin that reads the files of another framework."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from .ir import Graph


class Converter(ABC):
    """Reads one kind of model file. id: "onnx". extensions: (".onnx",)."""

    id: ClassVar[str]
    extensions: ClassVar[tuple[str, ...]]

    @abstractmethod
    def load(self, source: str | Path | bytes | Any, **options: Any) -> Graph:
        """Reads a model file (or its bytes, or the framework's own object) into a Graph.

        Raises ModelFormatError for a damaged file and ConversionError, naming every reason, for one with unsupported parts.
        """
