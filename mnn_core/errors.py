"""Every error that mnn_core raises on purpose. Each message names who, what was found and expected, and what to do."""

import sys
import warnings


class MNNError(Exception):
    """Base of all errors of mnn_core and its plugins."""


class ModelFormatError(MNNError, ValueError):
    """A model file is damaged, hostile or of an unknown kind."""


class GraphError(MNNError, ValueError):
    """A graph is inconsistent: an op with unknown attributes, a tensor without producer, a cycle."""


class ShapeError(MNNError, ValueError):
    """Shapes or values of an op's inputs do not fit together; names the op and the shapes."""


class InputError(MNNError, ValueError):
    """An input given to a model has the wrong name, rank, shape or dimension."""


class InputTypeError(MNNError, TypeError):
    """An input given to a model has a dtype that cannot be converted without changing a value."""


class UnsupportedOpError(MNNError, NotImplementedError):
    """No backend, or no converter rule, knows an op."""


class ConversionError(MNNError, ValueError):
    """A model of another framework cannot be converted; lists every reason at once."""


class BackendError(MNNError, RuntimeError):
    """A backend is unknown, not installed, broken, or has no device."""


class PluginError(MNNError, RuntimeError):
    """A plugin could not be loaded, or two plugins claim one name."""


class KernelError(MNNError, RuntimeError):
    """A kernel failed while running; names the op, the backend and the reason."""


class OutOfMemoryError(MNNError, MemoryError):
    """A plan needs more memory than there is; says how much."""


class CancelledError(MNNError):
    """The run was cancelled by its caller."""


class PlacementWarning(UserWarning):
    """Some ops run on another backend than the one asked for; the message names them."""


class NarrowingWarning(UserWarning):
    """A constant of a model holds numbers that the type it is computed in does not; they became the nearest that it has."""


def warn(message: str, category: type[Warning]) -> None:
    """Warns at the line outside of mnn_core and its plugins that led here, however deep the call."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("mnn_core", "mnn_converter")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
