"""Makes the .onnx files of this folder: small random networks, exported from PyTorch by both of its exporters.

    pip install torch==2.13.0 onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.32.0 sympy
    python tests/data/torch/make.py [NAME ...]

The TorchScript exporter (dynamo=False) writes NAME_ts11 and NAME_ts17 after the operator set, the newer one (dynamo=True)
NAME_dyn18 and NAME_dyn23, and NAME_raw18 without its optimiser; NAME_fused is NAME_ts17 after onnxruntime's transformer
optimizer, NAME_half is it in 16-bit floats. The seed is fixed, so that the same versions make the same networks; every size
named in `dims` is free in the files.
"""

from __future__ import annotations

import io
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx
import torch
from onnxruntime.transformers import float16, optimizer
from onnxscript import opset18
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parent))
import text
import vision

HERE = Path(__file__).parent
LARGEST = 80_000
BOTH = ("ts11", "ts17", "dyn18", "dyn23")
HALF = (*BOTH, "half")


@torch.library.custom_op("detect::nms", mutates_args=())
def nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """Indices of the boxes (corners) that are kept, best first; torchvision's operator, which not every build has."""
    order, kept = scores.argsort(descending=True).tolist(), []
    for i in order:
        low, high = torch.maximum(boxes[i, :2], boxes[kept, :2]), torch.minimum(boxes[i, 2:], boxes[kept, 2:])
        inner = (high - low).clamp(min=0).prod(-1)
        area = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
        if not (inner / (area[i] + area[kept] - inner) > threshold).any():
            kept.append(i)
    return torch.tensor(kept, dtype=torch.int64)


@nms.register_fake
def _(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    return boxes.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)


def nms_torchscript(g, boxes, scores, threshold):
    """As torchvision's symbolic function says it in ONNX."""
    def unsqueezed(x, axis):
        return torch.onnx.symbolic_helper._unsqueeze_helper(g, x, [axis])

    most = g.op("Constant", value_t=torch.tensor([2 ** 31 - 1]))
    limit = g.op("Constant", value_t=torch.tensor([torch.onnx.symbolic_helper._get_const(threshold, "f", "threshold")]))
    found = g.op("NonMaxSuppression", unsqueezed(boxes, 0), unsqueezed(unsqueezed(scores, 0), 0), most, limit)
    column = torch.onnx.symbolic_helper._slice_helper(g, found, axes=[1], starts=[2], ends=[3])
    return torch.onnx.symbolic_helper._squeeze_helper(g, column, [1])


def nms_onnxscript(boxes, scores, threshold: float):
    most = opset18.Constant(value_ints=[2 ** 31 - 1])
    limit = opset18.Reshape(opset18.Constant(value_float=threshold), opset18.Constant(value_ints=[1]))
    axis, axes = opset18.Constant(value_ints=[0]), opset18.Constant(value_ints=[0, 1])
    found = opset18.NonMaxSuppression(opset18.Unsqueeze(boxes, axis), opset18.Unsqueeze(scores, axes), most, limit)
    return opset18.Squeeze(opset18.Gather(found, opset18.Constant(value_ints=[2]), axis=1), opset18.Constant(value_ints=[1]))


def ids(high: int, *shape: int) -> Tensor:
    return torch.randint(high, shape)


@dataclass
class Case:
    """A network, the inputs it is traced with, and the names of free dimensions of each input."""

    make: Callable[[], nn.Module]
    inputs: Sequence[Tensor]
    dims: dict[str, dict[int, str]]
    outputs: Sequence[str]
    styles: Sequence[str] = BOTH
    script: bool = False
    fused_as: str = ""


IMAGE = {"image": {0: "batch", 2: "height", 3: "width"}}
STATES = {"x": {0: "length", 1: "batch"}, "h": {1: "batch"}, "c": {1: "batch"}}
CACHE = {"input_ids": {0: "batch", 1: "length"}, "attention_mask": {0: "batch", 1: "total"},
         **{n: {0: "batch", 2: "past"} for n in ("k0", "v0", "k1", "v1")}}
LATER = ("ts14", "ts17", "dyn18", "dyn23")
NEW = ("dyn18", "dyn23")
MODERN = ("ts17", "dyn18", "dyn23")

CASES = {
    "resnet": Case(vision.ResNet, [torch.rand(2, 3, 40, 48)], IMAGE, ["scores"], HALF),
    "mobilenet": Case(vision.MobileNet, [torch.rand(2, 3, 32, 40)], IMAGE, ["scores"]),
    "unet": Case(vision.UNet, [torch.rand(2, 1, 22, 27)], IMAGE, ["mask"], HALF),
    "vit": Case(vision.ViT, [torch.rand(2, 3, 24, 32)], IMAGE, ["scores"], (*LATER, "fused", "half"), fused_as="vit"),
    "window": Case(vision.Window, [torch.rand(2, 3, 16, 24)], {"image": {0: "batch"}}, ["scores"]),
    "detector": Case(lambda: vision.Detector(torch.ops.detect.nms), [torch.rand(1, 3, 48, 64)],
                     {"image": {2: "height", 3: "width"}}, ["boxes", "scores", "labels"]),
    "warp": Case(vision.Warp, [torch.rand(2, 2, 12, 14)], IMAGE, ["warped"], MODERN),
    "styler": Case(vision.Styler, [torch.rand(2, 3, 16, 20)], IMAGE, ["image_out", "patches"],
                   ("ts12", "ts17", "dyn18", "dyn23")),
    "video": Case(vision.Video, [torch.rand(2, 2, 6, 12, 14)], {"clip": {0: "batch", 2: "frames"}}, ["scores"]),
    "bert": Case(text.Bert, [ids(64, 2, 7), torch.ones(2, 7, dtype=torch.int64), ids(2, 2, 7)],
                 {n: {0: "batch", 1: "length"} for n in ("input_ids", "attention_mask", "token_type_ids")},
                 ["hidden", "pooled"], (*HALF, "fused"), fused_as="bert"),
    "lstm": Case(lambda: text.Tagger(nn.LSTM), [ids(50, 2, 7)], {"words": {0: "batch", 1: "length"}}, ["tags", "h", "c"]),
    "gru": Case(lambda: text.Tagger(nn.GRU), [ids(50, 2, 7)], {"words": {0: "batch", 1: "length"}}, ["tags", "h"]),
    "lstm_states": Case(lambda: text.Stateful(nn.LSTM), [torch.randn(7, 2, 5), torch.randn(3, 2, 6), torch.randn(3, 2, 6)],
                        STATES, ["y", "h_out", "c_out"]),
    "rnn_states": Case(lambda: text.Stateful(nn.RNN, nonlinearity="relu"), [torch.randn(7, 2, 5), torch.randn(3, 2, 6)],
                       {n: STATES[n] for n in ("x", "h")}, ["y", "h_out"]),
    "packed": Case(text.Packed, [torch.randn(3, 7, 4), torch.tensor([7, 5, 2])], {"x": {0: "batch", 1: "length"},
                   "lengths": {0: "batch"}}, ["y", "h", "c", "last"], ("ts11", "ts17")),
    "decoder": Case(text.Decoder, [ids(48, 2, 3), torch.ones(2, 8, dtype=torch.int64),
                                   *(torch.randn(2, 2, 5, 4) for _ in range(4))], CACHE,
                    ["logits", "k0_out", "v0_out", "k1_out", "v1_out"], (*LATER, "raw18", "fused", "half"),
                    fused_as="gpt2"),
    "translator": Case(text.Translator, [ids(40, 2, 7), ids(40, 2, 5)], {"source": {0: "batch", 1: "length"},
                       "target": {0: "batch", 1: "written"}}, ["logits"], LATER),
    "spectral": Case(text.Spectral, [torch.randn(2, 400)], {"samples": {0: "batch", 1: "length"}}, ["y"], NEW),
    "framed": Case(text.Framed, [torch.randn(2, 400)], {"samples": {0: "batch", 1: "length"}}, ["y"]),
    "index": Case(text.Index, [torch.randn(2, 6, 4), ids(6, 2, 3)], {"x": {0: "batch", 1: "length"}, "at": {0: "batch"}},
                  ["y", "best", "place", "ordered", "z", "sums", "found", "hot", "turned"], (*LATER, "raw18")),
    "script": Case(text.Script, [torch.randn(5, 2, 4), torch.tensor(0.5)], {"x": {0: "length", 1: "batch"}, "limit": {}},
                   ["y", "seen", "total", "steps"], ("ts12", "ts17"), script=True),
    "control": Case(text.Control, [torch.randn(5, 2, 4), torch.tensor(0.5)], {"x": {0: "length", 1: "batch"}, "limit": {}},
                    ["y", "seen", "total", "steps"], NEW),
}


def export(case: Case, style: str) -> onnx.ModelProto:
    """The ONNX model of a case in a style: an exporter ("ts", "dyn") and the operator set."""
    torch.manual_seed(0)
    module = case.make().eval()
    for name, value in module.named_buffers():
        if name.endswith("running_mean"):
            value.copy_(torch.randn_like(value) * 0.2)
        elif name.endswith("running_var"):
            value.copy_(torch.rand_like(value) + 0.5)
    if style == "fused":
        fused = optimizer.optimize_model(export(case, "ts17"), case.fused_as, num_heads=4, hidden_size=16, opt_level=0)
        return fused.model
    if style == "half":
        return float16.convert_float_to_float16(export(case, "ts17"))
    opset, names = int(style[-2:]), list(case.dims)
    if style.startswith("ts"):
        target = io.BytesIO()
        found = torch.jit.script(module) if case.script else module
        free = {n: d for n, d in case.dims.items() if d}
        torch.onnx.export(found, tuple(case.inputs), target, dynamo=False, opset_version=opset, input_names=names,
                          output_names=list(case.outputs), dynamic_axes=free)
        return onnx.load_from_string(target.getvalue())
    sizes = {n: torch.export.Dim(n) for d in case.dims.values() for n in d.values() if n != "total"}
    if "total" in str(case.dims):
        sizes["total"] = torch.export.Dim.DYNAMIC
    shapes = tuple({axis: sizes[n] for axis, n in dims.items()} for dims in case.dims.values())
    program = torch.onnx.export(module, tuple(case.inputs), dynamo=True, opset_version=opset, input_names=names, verbose=False,
                                output_names=list(case.outputs), dynamic_shapes=shapes, optimize=style != "raw18",
                                custom_translation_table={torch.ops.detect.nms.default: nms_onnxscript})
    return program.model_proto


def tidy(model: onnx.ModelProto) -> bytes:
    """Without the exporter's notes about source lines."""
    def clean(graph) -> None:
        del graph.value_info[:]
        for node in graph.node:
            node.doc_string = ""
            del node.metadata_props[:]
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    clean(attribute.g)

    clean(model.graph)
    for function in model.functions:
        clean(function)
    for thing in (*model.graph.initializer, *model.graph.input, *model.graph.output, model.graph, model):
        if hasattr(thing, "metadata_props"):
            del thing.metadata_props[:]
    if all(n.domain == "" and onnx.defs.has(n.op_type) for n in model.graph.node):
        onnx.checker.check_model(model)
    return model.SerializeToString()


def make(name: str, style: str) -> None:
    """Writes one file."""
    torch.backends.mha.set_fastpath_enabled(False)  # the fast path has no ONNX form
    torch.onnx.register_custom_op_symbolic("detect::nms", nms_torchscript, 11)
    warnings.filterwarnings("ignore")
    data = tidy(export(CASES[name], style))
    if len(data) > LARGEST:
        raise SystemExit(f"{name}_{style} has {len(data)} bytes, more than {LARGEST}")
    (HERE / f"{name}_{style}.onnx").write_bytes(data)
    print(f"{name}_{style}: {len(data)} bytes", flush=True)


def main(wanted: Sequence[str]) -> int:
    """Each file is made by a process of its own: an export leaves traces that can fix the sizes of the next."""
    every = [(name, style) for name, case in CASES.items() for style in case.styles]
    chosen = [(n, s) for n, s in every if not wanted or n in wanted or f"{n}_{s}" in wanted]
    if len(chosen) == 1:
        make(*chosen[0])
        return 0
    return sum(subprocess.run([sys.executable, __file__, f"{n}_{s}"]).returncode != 0 for n, s in chosen)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
