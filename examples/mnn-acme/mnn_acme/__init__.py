"""A complete third-party package: an op of its own, found in ONNX files too, and a backend that runs two ops."""

import numpy as np

import mnn_core as mnn

mnn_api = (1, 0)  # built for this version of the plugin API


def cubic(op, x):
    """a*x^3 + b."""
    return (op["a"] * x**3 + op["b"]).astype(x.dtype)


@mnn.hookimpl
def mnn_register_ops():
    example = mnn.Example({"a": 2.0}, [mnn.Spec((2, 3), np.dtype(np.float32))])
    mnn.register_op("acme.Cubic", attrs={"a": 1.0, "b": 0.0}, onnx="com.acme.Cubic", examples=[example])(cubic)


class AcmeBackend(mnn.KernelBackend):
    """Runs Cubic and leaky ReLU, in place of a chip that would do them fast; all else stays on the CPU."""

    id = "acme"

    @classmethod
    def probe(cls):
        return [mnn.Device("acme:0", "Acme simulator")]

    def kernel(self, op, inputs, outputs):
        if op.type == "acme.Cubic":
            return lambda ins, outs: np.copyto(outs[0], cubic(op, ins[0]))
        if op.type == "ReLU" and outputs[0].dtype == np.float32:
            return lambda ins, outs: np.copyto(outs[0], np.where(ins[0] > 0, ins[0], ins[0] * np.float32(op["slope"])))
        return mnn.Support(False, f"the Acme chip has no {op.type}")


@mnn.hookimpl
def mnn_backend():
    return AcmeBackend
