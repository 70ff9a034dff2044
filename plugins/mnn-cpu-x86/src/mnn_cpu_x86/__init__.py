"""CPU backend for x86: C++ kernels for SSE4.1, AVX2 and AVX-512, chosen when loaded."""

from __future__ import annotations

import sys
from importlib.resources import files

import mnn_core as mnn

mnn_api = (1, 0)


class CpuX86(mnn.NativeBackend):
    """Runs the kernels of this package's library."""

    id = "cpu-x86"
    priority = 100
    library_path = str(files(__name__).joinpath("kernels.dll" if sys.platform == "win32" else "kernels.so"))


@mnn.hookimpl
def mnn_backend() -> type[mnn.Backend]:
    return CpuX86
