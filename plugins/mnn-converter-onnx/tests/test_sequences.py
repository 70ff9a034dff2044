"""Sequences whose parts are known are read without being made: as plain ops, which MNN runs too."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx_cases import assert_same, convert, ours, theirs

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g (float[a, b] x, float[a, b] z) => (float[c, d] y) '
X, Z = (np.random.default_rng(i).standard_normal((7, 3)).astype(np.float32) for i in range(2))


def number(name: str, value: int) -> str:
    return f"{name} = Constant <value = int64 {{{value}}}> () "


def check(body: str, plain: bool) -> None:
    proto = onnx.parser.parse_model(f"{HEAD}{{ {body} }}")
    feeds = {"x": X, "z": Z}
    want = theirs(proto, feeds)
    for level in (0, 1):
        assert_same(ours(proto, feeds, level), want)
    types = {op.type for op in convert(proto).ops}
    assert plain != any(t.startswith("onnx.") for t in types), types


@pytest.mark.parametrize(("split", "index", "plain"), [
    ("int64 {3}", 0, True), ("int64 {3}", 2, True), ("int64 {3}", -1, False), ("int64[3] {2, 4, 1}", 1, True),
    ("int64[3] {2, 4, 1}", -1, True), ("int64[3] {0, 4, 3}", 0, True)])
def test_a_part_of_a_split(split: str, index: int, plain: bool) -> None:
    """Only with a last place in parts of one size is it not known where the part begins."""
    check(f"""n = Constant <value = {split}> () {number('i', index)}
      s = SplitToSequence <axis = 0> (x, n) y = SequenceAt (s, i)""", plain)


@pytest.mark.parametrize("keep", [0, 1])
def test_a_part_of_a_split_into_ones(keep: int) -> None:
    check(f"""{number('i', 1)} s = SplitToSequence <axis = -1, keepdims = {keep}> (x) v = SequenceAt (s, i)
      t = Constant <value = int64[2] {{1, 7}}> () y = Reshape (v, t)""", True)


@pytest.mark.parametrize(("body", "plain"), [
    ("s = SequenceConstruct (x, z) y = ConcatFromSequence <axis = 1> (s)", True),
    ("s = SequenceConstruct (x, z) y = SequenceAt (s, minus)", True),
    ("""e = SequenceEmpty () s = SequenceInsert (e, x) t = SequenceInsert (s, z, zero)
        y = ConcatFromSequence <axis = 0> (t)""", True),
    ("""e = SequenceEmpty () s = SequenceInsert (e, x) t = SequenceInsert (s, z) n = SequenceLength (t)
        f = Cast <to = 1> (n) y = Mul (x, f)""", True),
    ("""s = SequenceConstruct (x, z) w = ConcatFromSequence <axis = -1, new_axis = 1> (s)
        y = ReduceMax <axes = [-1], keepdims = 0> (w)""", True),
    ("s = SequenceConstruct (x, z) d = Size (x) i = Sub (d, d) y = SequenceAt (s, i)", False),
])
def test_parts_put_together_one_by_one(body: str, plain: bool) -> None:
    check(f"{number('zero', 0)} {number('minus', -1)} {body}", plain)
