"""Rounding to storage types, against ml_dtypes, which is another's implementation of them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from mnn_core.ops.low_precision import FLOATS, round_float, round_power


def _numbers() -> np.ndarray:
    rng = np.random.default_rng(5)
    spread = rng.standard_normal(20_000) * 10.0 ** rng.uniform(-8, 6, 20_000)
    halves = np.arange(-40, 40) / 16
    return np.concatenate([spread, halves, [0, -0.0, 448, 464, 465, 480, 240, 248, 57344, 61440, 61439]]).astype(np.float32)


@pytest.mark.parametrize("to", sorted(FLOATS))
def test_rounding_is_that_of_ml_dtypes(to: str) -> None:
    x = _numbers()
    want = x.astype(getattr(ml_dtypes, to)).astype(np.float32)
    got = round_float(x, to, saturate=False)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[np.isfinite(got)]), np.signbit(want[np.isfinite(want)]))


@pytest.mark.parametrize("to", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn"])
def test_saturation(to: str) -> None:
    largest = float(ml_dtypes.finfo(to).max)
    x = np.array([1e9, -1e9, np.inf, -np.inf, largest, np.nan], np.float32)
    got = round_float(x, to)
    assert got[:5].tolist() == [largest, -largest, largest, -largest, largest]
    assert np.isnan(got[5])


def test_powers_of_two() -> None:
    x = np.array([0.75, 1, 1.25, 1.5, 1.75, 3, 2.0**-130, 0], np.float32)
    assert round_power(x, "up", True).tolist() == [1, 1, 2, 2, 2, 4, 2.0**-127, 2.0**-127]
    assert round_power(x, "down", True).tolist() == [0.5, 1, 1, 1, 1, 2, 2.0**-127, 2.0**-127]
    assert round_power(x, "nearest", True).tolist() == [1, 1, 1, 2, 2, 4, 2.0**-127, 2.0**-127]
    assert np.isnan(round_power(np.array([-1, np.nan], np.float32), "up", True)).all()
    assert round_power(np.array([3e38], np.float32), "up", True).tolist() == [2.0**127]
    assert np.isnan(round_power(np.array([3e38, np.inf], np.float32), "up", False)).all()
