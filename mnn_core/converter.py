"""What a converter is: a plugin that reads the files of another framework."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from .errors import ConversionError
from .ir import Graph


class Reference(ABC):
    """A model file opened in its framework's own runtime, to compare with."""

    name: str

    @abstractmethod
    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Every tensor that the runtime can show, by name, in the order of computation."""


class Converter(ABC):
    """Reads one kind of model file. id: "onnx". extensions: (".onnx",)."""

    id: ClassVar[str]
    extensions: ClassVar[tuple[str, ...]]

    @abstractmethod
    def load(self, source: str | Path | bytes | Any, **options: Any) -> Graph:
        """Reads a model file (or its bytes, or the framework's own object) into a Graph.

        Raises ModelFormatError for a damaged file and ConversionError, naming every reason, for one with unsupported parts.
        """

    def describe(self) -> list[dict[str, str]]:
        """The framework's operators in detail, for `mnn ops` and its page: rows with equal keys."""
        return [{"operator": name, "versions": text} for name, text in sorted(self.operators().items())]

    @abstractmethod
    def operators(self) -> Mapping[str, str]:
        """The framework's operators that are converted: name -> versions and constraints, for people."""

    def reference(self, source: str | Path | bytes | Any, every: bool = True) -> Reference:
        """The model in the framework's own runtime, with every tensor as an output or only its own ones.

        Raises ConversionError where the runtime is not installed, or cannot load the model.
        """
        raise ConversionError(f"the {self.id} converter knows no runtime to compare {source!s} with")
