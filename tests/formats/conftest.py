"""Makes the graphs of this folder and the fuzz target importable."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "fuzz")]
