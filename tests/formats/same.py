"""Whether two graphs are equal, weights in their stored form included."""

from __future__ import annotations

from typing import Any

import numpy as np

from mnn_core import Graph
from mnn_core.formats import HalfConstant, QuantizedWeight


def assert_same_value(a: Any, b: Any, where: str) -> None:
    """Fails unless two attributes or constants are equal."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        np.testing.assert_array_equal(a, b, err_msg=where)
        assert np.asarray(a).shape == np.asarray(b).shape, where
    elif isinstance(a, dict):
        assert isinstance(b, dict), where
        assert a.keys() == b.keys(), where
        for key in a:
            assert_same_value(a[key], b[key], f"{where}.{key}")
    elif isinstance(a, tuple) and isinstance(b, tuple):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b)):
            assert_same_value(x, y, f"{where}[{i}]")
    elif isinstance(a, HalfConstant):
        assert isinstance(b, HalfConstant), where
        assert (a.shape, a.kind) == (b.shape, b.kind), where
        np.testing.assert_array_equal(a.raw, b.raw, err_msg=where)
    elif isinstance(a, QuantizedWeight):
        assert isinstance(b, QuantizedWeight), where
        assert a.shape == b.shape, where
        assert_same_value(dict(a.quan), dict(b.quan), where)
    else:
        assert a == b, where


def assert_same(a: Graph, b: Graph) -> None:
    """Fails unless two graphs are equal up to the order of constants."""
    assert (a.inputs, a.outputs, a.metadata) == (b.inputs, b.outputs, b.metadata)
    assert [(o.type, o.name, o.inputs, o.outputs, o.param) for o in a.ops] == \
        [(o.type, o.name, o.inputs, o.outputs, o.param) for o in b.ops]
    for x, y in zip(a.ops, b.ops):
        assert_same_value(x.attrs, y.attrs, str(x))
    assert a.constants.keys() == b.constants.keys()
    for name in a.constants:
        assert_same_value(a.constants[name], b.constants[name], name)
    assert_same_value(a.extra, b.extra, "extra")
    assert a.subgraphs.keys() == b.subgraphs.keys()
    for name in a.subgraphs:
        assert_same(a.subgraphs[name], b.subgraphs[name])
