"""Constant indices that count from the end, and indices in batches: the real MNN means something else by them, so files hold
plain ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import onnxruntime
import peers

import mnn_core as mnn

TUPLES = "i = Constant <value = int64[2, 2] {0, -1, 2, -4}> ()"
COLUMNS = "i = Constant <value = int64[1, 4] {0, -1, 1, -2}> ()"
BODIES = {
    "gather_nd": f"{TUPLES} y = GatherND (x, i)",
    "gather_nd_rows": "i = Constant <value = int64[2, 1] {-1, -3}> () y = GatherND (x, i)",
    "gather_nd_batch": """i = Constant <value = int64[3, 1] {-1, 0, 2}> () o = Constant <value_ints = [0]> ()
        t = Constant <value_ints = [3]> () z = Slice (x, o, t) y = GatherND <batch_dims = 1> (z, i)""",
    "gather_nd_moved": """r = Constant <value = int64[1, 1] {-2}> () n = Shape <end = 1> (x)
        one = Constant <value_ints = [1]> () t = Concat <axis = 0> (n, one) e = Expand (r, t) y = GatherND (x, e)""",
    "gather_elements": f"{COLUMNS} y = GatherElements <axis = 0> (x, i)",
    "scatter_nd": f"{TUPLES} u = Constant <value = float[2] {{5, 6}}> () y = ScatterND (x, i, u)",
    "scatter_nd_add": f"{TUPLES} u = Constant <value = float[2] {{5, 6}}> () y = ScatterND <reduction = \"add\"> (x, i, u)",
    "scatter_elements": f"""{COLUMNS} u = Constant <value = float[1, 4] {{5, 6, 7, 8}}> ()
        y = ScatterElements <axis = 0> (x, i, u)""",
}
HEAD = '<ir_version: 8, opset_import: ["" : 18]> g (float[n, 4] x) => (float[...] y) '


def test_negative_indices(tmp_path: Path) -> None:
    feeds = [{"x": np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)} for n in (3, 5)]
    jobs, wanted = [], []
    for name, body in BODIES.items():
        proto = onnx.parser.parse_model(f"{HEAD.replace('[...]', '')}{{ {body} }}")
        session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
        wanted.append([session.run(None, feed)[0] for feed in feeds])
        mnn.convert(proto, tmp_path / f"{name}.mnn", converter="onnx")
        jobs += [(tmp_path / f"{name}.mnn", [feed], ["y"]) for feed in feeds]
        for backend in ("numpy", "cpu"):
            model = mnn.load(tmp_path / f"{name}.mnn", backend=backend)
            for feed, want in zip(feeds, wanted[-1]):
                np.testing.assert_array_equal(model.run(feed)["y"], want, err_msg=name)
    theirs = peers.run_many(jobs, tmp_path)
    for i, (name, pair) in enumerate(zip(BODIES, wanted)):
        for got, want in zip(theirs[2 * i:2 * i + 2], pair):
            assert not isinstance(got, str), (name, got)
            np.testing.assert_array_equal(got[0][0], want, err_msg=name)
