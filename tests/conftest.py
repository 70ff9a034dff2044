"""Makes the test helpers of this folder importable."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def network_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where networks are built and converted, once for all tests."""
    return tmp_path_factory.mktemp("networks")
