"""The OCR example reads a real page as rapidocr-onnxruntime 1.4.4 does, on the same networks."""

from __future__ import annotations

import difflib
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image

PROGRAM = Path(__file__).parents[2] / "examples" / "ocr" / "ocr.py"

#: What rapidocr_onnxruntime.RapidOCR()(page.png) gives, recorded.
PAGE = """Region-basedsegmentation
Let us first determine markers of the coins and the
background.These markers are pixels that we can label
unambiguously as either object or background.Here,
histogram ofgreyvalues:"""


def test_page_reads_as_by_rapidocr(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(PROGRAM), "--output", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    same = difflib.SequenceMatcher(None, done.stdout.strip(), PAGE, autojunk=False).ratio()
    assert same >= 0.98, done.stdout
    with Image.open(tmp_path / "page.ocr.png") as picture:
        assert picture.size == (2 * 384, 191)
        red = int((np.asarray(picture.convert("RGB")) == (255, 0, 0)).all(2).sum())
    assert red > 1000  # the boxes


def test_file_that_is_no_image(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"no image")
    done = subprocess.run([sys.executable, str(PROGRAM), str(tmp_path / "x.png")], capture_output=True, text=True)
    assert done.returncode == 1
    assert "x.png" in done.stderr
