"""erf, erfc and the inverse of erf for arrays, in double precision, from Python's math module."""

from __future__ import annotations

import math

import numpy as np

erf = np.vectorize(math.erf, otypes=[np.float64])
erfc = np.vectorize(math.erfc, otypes=[np.float64])


def erfinv(x: np.ndarray) -> np.ndarray:
    """The y with erf(y) = x: float64 in, float64 out, about 1e-9 relative; +-inf at +-1 and NaN outside.

    Starts from Winitzki's closed form (2e-3) and refines it by Halley steps.
    """
    a = 0.147
    with np.errstate(all="ignore"):
        log = np.log1p(-x * x)
        half = 2 / (math.pi * a) + log / 2
        # sqrt(half^2 - log/a) - half, written without cancellation for small x
        y = np.copysign(np.sqrt((-log / a) / (np.sqrt(half * half - log / a) + half)), x)
        for _ in range(3):
            step = (erf(y) - x) * (math.sqrt(math.pi) / 2) * np.exp(y * y)
            y = y - step / (1 + y * step)
        return np.where(np.abs(x) < 1, y, np.where(np.abs(x) == 1, np.copysign(np.inf, x), np.nan))
