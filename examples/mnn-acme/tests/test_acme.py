import numpy as np
import onnx.parser
import pytest

import mnn_core as mnn
from mnn_core.testing import conformance

MODEL = """<ir_version: 8, opset_import: ["" : 17, "com.acme" : 1]> acme (float[n] x) => (float[n] y)
{ c = com.acme.Cubic <a = 2.0, b = 1.0> (x)  y = Abs(c) }"""

test_kernels = conformance("acme")


@pytest.mark.filterwarnings("ignore::mnn_core.errors.PlacementWarning")
@pytest.mark.parametrize("backend", ["numpy", "acme", "cpu"])
def test_onnx_model_with_our_op(tmp_path, backend):
    (tmp_path / "m.onnx").write_bytes(onnx.parser.parse_model(MODEL).SerializeToString())
    mnn.convert(tmp_path / "m.onnx", tmp_path / "m.mnn")
    model = mnn.load(tmp_path / "m.mnn", backend=backend)
    assert model.run({"x": np.float32([1, -2])})["y"].tolist() == [3, 15]
