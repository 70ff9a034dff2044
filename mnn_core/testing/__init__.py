"""The conformance kit: every example of every op, on a backend, against the op's NumPy definition.

A backend's whole test file:

    from mnn_core.testing import conformance
    test_kernels = conformance("my-backend")
"""

from .conformance import Result, conformance, run_conformance

__all__ = ["Result", "conformance", "run_conformance"]
