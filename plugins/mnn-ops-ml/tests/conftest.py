"""Makes the test helpers of the converter importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "mnn-converter-onnx" / "tests"))
