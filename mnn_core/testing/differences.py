"""How far two sides of one tensor are apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Differences that 32-bit floats of the size of 1 have anyway.
_NOISE = 1e-6


@dataclass
class Difference:
    """One tensor on both sides. error: largest difference / largest value of the reference (inf if shapes differ).

    absolute: the largest difference itself; worst: its index, and values: what both sides have there.
    """

    tensor: str
    error: float
    shape: tuple[int, ...]
    reference_shape: tuple[int, ...]
    range: tuple[float, float]
    reference_range: tuple[float, float]
    worst: tuple[int, ...] | None
    absolute: float = 0.0
    values: tuple[float, float] | None = None

    def within(self, tolerance: float) -> bool:
        """Whether the difference is allowed. Below 1e-6 every one is: a sigmoid near 0 has no more exact digits."""
        return self.error <= tolerance or self.absolute <= _NOISE

    def lines(self, ours: str = "ours", reference: str = "reference") -> list[str]:
        """Shapes, ranges and the worst place, for people."""
        found = [f"{name}: shape {list(shape)}, values {low:.6g} to {high:.6g}" for name, shape, (low, high) in (
            (ours, self.shape, self.range), (reference, self.reference_shape, self.reference_range))]
        if self.worst is not None and self.values is not None:
            found.append(f"worst at {list(self.worst)}: {self.values[0]:.9g} against {self.values[1]:.9g} "
                         f"(absolute {self.absolute:.3g}, relative to the largest value {self.error:.3g})")
        return found


def difference(name: str, ours: np.ndarray, reference: np.ndarray) -> Difference:
    """Compares one tensor; NaNs are equal to NaNs, infinities to themselves, and text to equal text."""
    ours, reference = (x.astype(np.float32) if x.dtype.kind == "V" else x for x in (ours, reference))  # bfloat16 and the like
    if ours.dtype.kind not in "biuf" or reference.dtype.kind not in "biuf":
        same = ours.shape == reference.shape and bool((ours == reference).all())
        return Difference(name, 0.0 if same else float("inf"), ours.shape, reference.shape, (0, 0), (0, 0), None)

    def extent(x: np.ndarray) -> tuple[float, float]:
        return (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)

    error, absolute, worst, values = 0.0, 0.0, None, None
    if ours.shape != reference.shape:
        error = absolute = float("inf")
    elif ours.size:
        a, b = ours.astype(np.float64), reference.astype(np.float64)
        with np.errstate(invalid="ignore"):
            distance = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
        distance[np.isnan(distance)] = np.inf
        index = int(distance.argmax())
        finite = np.abs(b[np.isfinite(b)])
        absolute = float(distance.flat[index])
        error = absolute / max(float(finite.max()) if finite.size else 0.0, 1e-6)
        worst = tuple(int(i) for i in np.unravel_index(index, ours.shape))
        values = float(a[worst]), float(b[worst])
    return Difference(name, error, ours.shape, reference.shape, extent(ours), extent(reference), worst, absolute, values)


def worst_of(found: Sequence[Difference]) -> Difference | None:
    """The difference with the largest error."""
    return max(found, key=lambda d: d.error, default=None)


def capture(model: Any, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Every tensor that a model computes, by name, in the order of computation."""
    found: dict[str, np.ndarray] = {}

    def keep(_op: Any, tensors: Mapping[str, np.ndarray]) -> None:
        found.update({name: np.array(value) for name, value in tensors.items()})

    found.update({n: v for n, v in model.run_with_callback(feeds, after=keep).items() if isinstance(v, np.ndarray)})
    return found
