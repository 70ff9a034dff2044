"""Headers shared by the CPU backends: one kernel source, compiled once for each instruction set."""

from pathlib import Path


def include() -> str:
    """Folder to put on the include path, for `#include <mnn_cpu/...>`."""
    return str(Path(__file__).parent / "include")
