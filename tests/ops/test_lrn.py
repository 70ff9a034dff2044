"""LRN with windows wider than the axis: as one that covers it all, and no slower."""

import numpy as np
import pytest

from mnn_core.ir import Op
from mnn_core.ops.lrn import lrn


@pytest.mark.parametrize("size", [13, 2**31 - 1])
def test_a_window_beyond_the_axis_sums_all_of_it(size: int) -> None:
    x = np.arange(2 * 6 * 2, dtype=np.float32).reshape(2, 6, 2, 1)
    op = Op("LRN", ["x"], ["y"], {"localSize": size, "alpha": 2.0, "beta": 0.5, "bias": 1.0})
    want = x / np.sqrt(1 + 2 * np.square(x.astype(np.float64)).sum(1, keepdims=True) / size)
    np.testing.assert_allclose(lrn(op, x), want, rtol=1e-6)
