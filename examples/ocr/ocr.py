"""Reads the text of an image with PP-OCRv4 networks, on mnn_core.

    python examples/ocr/ocr.py [IMAGE ...] [--output FOLDER] [--font FILE]

Without IMAGE it reads page.png of scikit-image. Prints the lines in reading order, and writes NAME.ocr.png, the image with the
boxes found and what was read in them. The networks come out of the PyPI package rapidocr-onnxruntime (as data: nothing of it
is installed), and are converted to .mnn files once, beside where they are kept.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from assets import fetch
from detect import Detector
from PIL import Image, ImageDraw, ImageFont, UnidentifiedImageError
from recognize import Orientation, Recognizer, straighten

import mnn_core as mnn

PACKAGE = "rapidocr-onnxruntime==1.4.4"
NETWORKS = {"detection": "ch_PP-OCRv4_det_infer", "orientation": "ch_ppocr_mobile_v2.0_cls_infer",
            "recognition": "ch_PP-OCRv4_rec_infer"}
LEAST_SCORE = 0.5
SIDES = 30, 2000  # smaller and larger images are scaled to have no side outside of these
FLATTEST = 8  # wider images are padded above and below
PAGE = ("scikit-image==0.26.0", "skimage/data/page.png")


@dataclass
class Line:
    """A line that was read: box (4, 2) in image pixels, text, and mean probability of its characters."""

    box: np.ndarray
    text: str
    score: float


def network(role: str) -> str:
    """Path of a network as .mnn, converted when it is needed for the first time."""
    source = fetch(PACKAGE, f"rapidocr_onnxruntime/models/{NETWORKS[role]}.onnx")
    target = source.with_suffix(f".{mnn.__version__}.mnn")
    if not target.exists():
        mnn.convert(source, target)
    return str(target)


def fit(image: Image.Image) -> tuple[Image.Image, int]:
    """The image within SIDES, and the height of the black bars added above and below very flat ones."""
    scale = min(1.0, SIDES[1] / max(image.size)) * max(1.0, SIDES[0] / min(image.size))
    if scale != 1.0:
        image = image.resize([max(32, round(side * scale / 32) * 32) for side in image.size], Image.Resampling.BILINEAR)
    w, h = image.size
    if h > SIDES[0] and w <= FLATTEST * h:
        return image, 0
    bar = abs(2 * max(w // FLATTEST, SIDES[0]) - h) // 2
    padded = Image.new("RGB", (w, h + 2 * bar))
    padded.paste(image, (0, bar))
    return padded, bar


class Reader:
    """The three networks together."""

    def __init__(self) -> None:
        self.detect = Detector(network("detection"))
        self.turn = Orientation(network("orientation"))
        self.recognize = Recognizer(network("recognition"))

    def __call__(self, image: Image.Image) -> list[Line]:
        """Lines of text of an image, in reading order."""
        fitted, bar = fit(image.convert("RGB"))
        pixels = np.ascontiguousarray(np.asarray(fitted)[:, :, ::-1])  # the networks were trained on BGR
        boxes = self.detect(pixels)
        lines = self.turn([straighten(pixels, box) for box in boxes])
        scale = image.width / fitted.width, image.height / (fitted.height - 2 * bar)
        return [Line(np.maximum(box - (0, bar), 0) * scale, text, score)
                for box, (text, score) in zip(boxes, self.recognize(lines)) if score >= LEAST_SCORE]


def annotated(image: Image.Image, lines: list[Line], font: str | None = None) -> Image.Image:
    """The image with boxes, and beside it the text at the same places. font: a font file (Pillow's own has no Chinese)."""
    picture = Image.new("RGB", (2 * image.width, image.height), "white")
    picture.paste(image.convert("RGB"))
    draw = ImageDraw.Draw(picture)
    for line in lines:
        corners = [tuple(map(float, corner)) for corner in line.box]
        draw.polygon(corners, outline="red")
        size = max(8, int(np.ptp(line.box[:, 1]) * 0.6))
        face = ImageFont.truetype(font, size) if font else ImageFont.load_default(size)
        draw.text((corners[0][0] + image.width, corners[0][1]), line.text, fill="black", font=face)
    return picture


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image", nargs="*", help="images to read (default: scikit-image's page.png)")
    parser.add_argument("--output", default=".", help="folder for the annotated pictures (default: the current one)")
    parser.add_argument("--font", help="font file for the text in the picture, where Pillow's own font lacks its characters")
    args = parser.parse_args()
    images = args.image or [str(fetch(*PAGE))]
    read = Reader()
    for path in images:
        try:
            image = Image.open(path)
            image.load()
        except (OSError, UnidentifiedImageError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 1
        lines = read(image)
        print("\n".join(line.text for line in lines))
        target = Path(args.output) / f"{Path(path).stem}.ocr.png"
        annotated(image, lines, args.font).save(target)
        print(f"({len(lines)} lines of {path}; picture: {target})", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
