"""Finding lines of text: a DB network gives a probability for each pixel, from which rotated boxes are taken.

Liao et al., "Real-time Scene Text Detection with Differentiable Binarization", AAAI 2020, and the settings of PP-OCRv4.
"""

from __future__ import annotations

import cv2
import numpy as np

import mnn_core as mnn

SHORT_SIDE = 736  # smaller pages are enlarged to this
THRESHOLD = 0.3  # a pixel belongs to text
BOX_THRESHOLD = 0.5  # mean probability that a box must have
UNCLIP = 1.6  # the network marks shrunken text; boxes grow by area * UNCLIP / perimeter
SMALLEST = 3  # pixels
LARGEST_COUNT = 1000


def network_input(image: np.ndarray) -> np.ndarray:
    """A BGR uint8 image (h, w, 3) as float32 (1, 3, H, W) in -1..1, H and W multiples of 32."""
    h, w = image.shape[:2]
    scale = max(1.0, SHORT_SIDE / min(h, w))
    size = [max(32, round(int(side * scale) / 32) * 32) for side in (w, h)]
    resized = cv2.resize(image, size).astype(np.float32)
    return np.ascontiguousarray(((resized / 255 - 0.5) / 0.5).transpose(2, 0, 1)[None], np.float32)


def corners(rectangle: tuple) -> np.ndarray:
    """Corners (4, 2) of an OpenCV rotated rectangle: top left, top right, bottom right, bottom left."""
    by_x = sorted(cv2.boxPoints(rectangle).tolist())
    left, right = sorted(by_x[:2], key=lambda p: p[1]), sorted(by_x[2:], key=lambda p: p[1])
    return np.array([left[0], right[0], right[1], left[1]], np.float32)


def mean_inside(probability: np.ndarray, box: np.ndarray) -> float:
    """Mean probability inside a quadrangle."""
    h, w = probability.shape
    x0, y0 = np.clip(np.floor(box.min(0)).astype(int), 0, (w - 1, h - 1))
    x1, y1 = np.clip(np.ceil(box.max(0)).astype(int), 0, (w - 1, h - 1))
    mask = np.zeros((y1 - y0 + 1, x1 - x0 + 1), np.uint8)
    cv2.fillPoly(mask, [(box - (x0, y0)).astype(np.int32)], 1)
    return cv2.mean(probability[y0 : y1 + 1, x0 : x1 + 1], mask)[0]


def boxes_of(probability: np.ndarray, width: int, height: int) -> list[np.ndarray]:
    """Boxes of a probability map (H, W), each (4, 2) corners in the pixels of an image of width x height."""
    text = cv2.dilate((probability > THRESHOLD).astype(np.uint8), np.ones((2, 2), np.uint8))
    contours, _ = cv2.findContours(text, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    scale = np.array([width / probability.shape[1], height / probability.shape[0]])
    found = []
    for contour in contours[:LARGEST_COUNT]:
        centre, (w, h), angle = cv2.minAreaRect(contour)
        if min(w, h) < SMALLEST or mean_inside(probability, corners((centre, (w, h), angle))) < BOX_THRESHOLD:
            continue
        grow = 2 * (w * h * UNCLIP / (2 * (w + h)))
        box = corners((centre, (w + grow, h + grow), angle))
        found.append(np.clip(np.round(box * scale), 0, (width, height)).astype(np.float32))
    return found


def reading_order(boxes: list[np.ndarray], same_line: float = 10) -> list[np.ndarray]:
    """Top to bottom, and left to right where the top corners differ by less than `same_line` pixels."""
    ordered: list[np.ndarray] = []
    for box in sorted(boxes, key=lambda b: (b[0, 1], b[0, 0])):
        place = len(ordered)
        while place and abs(box[0, 1] - ordered[place - 1][0, 1]) < same_line and box[0, 0] < ordered[place - 1][0, 0]:
            place -= 1
        ordered.insert(place, box)
    return ordered


class Detector:
    """Finds the boxes of text lines."""

    def __init__(self, path: str) -> None:
        self.model = mnn.load(path)

    def __call__(self, image: np.ndarray) -> list[np.ndarray]:
        """Boxes (4, 2) in reading order, of a BGR image."""
        (probability,) = self.model.run({"x": network_input(image)}).values()
        return reading_order(boxes_of(probability[0, 0], image.shape[1], image.shape[0]))
