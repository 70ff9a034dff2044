"""Reading lines: straighten a box, turn it if it stands on its head, and decode the CTC output of the recognition network.

Graves et al., "Connectionist Temporal Classification", ICML 2006; networks of PP-OCRv4 (SVTR-LCNet).
"""

from __future__ import annotations

import math

import cv2
import numpy as np

import mnn_core as mnn

HEIGHT = 48
BATCH = 6
CERTAIN_UPSIDE_DOWN = 0.9


def straighten(image: np.ndarray, box: np.ndarray) -> np.ndarray:
    """The content of a box (4, 2), as an upright image; tall ones are turned by 90 degrees."""
    width = int(max(np.linalg.norm(box[0] - box[1]), np.linalg.norm(box[2] - box[3])))
    height = int(max(np.linalg.norm(box[0] - box[3]), np.linalg.norm(box[1] - box[2])))
    target = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    line = cv2.warpPerspective(image, cv2.getPerspectiveTransform(box, target), (width, height),
                               flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    return np.rot90(line) if height >= 1.5 * width else line


def batch_of(lines: list[np.ndarray], width: int) -> np.ndarray:
    """Lines as float32 (n, 3, HEIGHT, width) in -1..1, scaled to HEIGHT and padded with 0 on the right."""
    batch = np.zeros((len(lines), 3, HEIGHT, width), np.float32)
    for slot, line in zip(batch, lines):
        fitted = min(width, math.ceil(HEIGHT * line.shape[1] / line.shape[0]))
        resized = cv2.resize(line, (fitted, HEIGHT)).astype(np.float32)
        slot[:, :, :fitted] = (resized.transpose(2, 0, 1) / 255 - 0.5) / 0.5
    return batch


def by_shape(lines: list[np.ndarray]) -> list[list[int]]:
    """Indices of lines in batches of like aspect ratio, so that little is padded."""
    order = sorted(range(len(lines)), key=lambda i: lines[i].shape[1] / lines[i].shape[0])
    return [order[i : i + BATCH] for i in range(0, len(order), BATCH)]


class Orientation:
    """Turns lines that stand on their head."""

    def __init__(self, path: str) -> None:
        self.model = mnn.load(path)

    def __call__(self, lines: list[np.ndarray]) -> list[np.ndarray]:
        """The lines, upright."""
        upright = list(lines)
        for indices in by_shape(lines):
            (scores,) = self.model.run({"x": batch_of([lines[i] for i in indices], 192)}).values()
            for i, (_, upside_down) in zip(indices, scores):
                if upside_down > CERTAIN_UPSIDE_DOWN:
                    upright[i] = cv2.rotate(lines[i], cv2.ROTATE_180)
        return upright


class Recognizer:
    """Reads upright lines."""

    def __init__(self, path: str) -> None:
        self.model = mnn.load(path)
        # Class 0 is CTC's blank; the space comes last and is not in the file's list.
        self.characters = ["", *self.model.metadata["character"].splitlines(), " "]

    def __call__(self, lines: list[np.ndarray]) -> list[tuple[str, float]]:
        """For each line its text, and the mean probability of its characters (0 when nothing was read)."""
        results = [("", 0.0)] * len(lines)
        for indices in by_shape(lines):
            ratio = max(320 / HEIGHT, *(lines[i].shape[1] / lines[i].shape[0] for i in indices))
            (scores,) = self.model.run({"x": batch_of([lines[i] for i in indices], int(HEIGHT * ratio))}).values()
            for i, steps in zip(indices, scores):
                results[i] = self.decode(steps)
        return results

    def decode(self, steps: np.ndarray) -> tuple[str, float]:
        """Best path of scores (time, classes): repeated classes count once, blanks not at all."""
        best = steps.argmax(1)
        kept = (best != 0) & np.r_[True, best[1:] != best[:-1]]
        text = "".join(self.characters[c] for c in best[kept])
        return text, float(steps.max(1)[kept].mean()) if kept.any() else 0.0
