"""Versions: of the distribution (all first-party packages move together), and of the Python plugin API."""

__version__ = "0.1.0"

#: (major, minor). A plugin built for (M, m) works with a core of (M, n) for n >= m.
API_VERSION = (1, 0)
