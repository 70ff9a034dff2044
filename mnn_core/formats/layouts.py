"""MNN's data formats, out of and back into a graph.

In files, tensors have a format: NCHW, NHWC, or NC4HW4 (channel-blocked, shapes written as NCHW), and ConvertTensor ops change
it. In a Graph, image ops see NCHW, and that is all: NCHW and NC4HW4 are the same there, and only conversions from and to NHWC
remain, as ConvertTensor ops (a permutation of dimensions 1 and last).
"""

from __future__ import annotations

from dataclasses import replace

from ..ir import Graph, Op

#: Ops that compute in NC4HW4: their first input and their outputs have it.
IMAGE_OPS = frozenset({
    "Convolution", "Convolution3D", "ConvolutionDepthwise", "Deconvolution", "DeconvolutionDepthwise", "ConvTranspose3D",
    "ConvInt8", "DepthwiseConvInt8", "GridSample", "PReLU", "Dilation2D", "Pooling", "Pooling3D", "ROIPooling", "ROIAlign",
    "Resize", "SpatialProduct", "Proposal", "PriorBox", "DetectionOutput", "LRN", "Interp", "Interp3D", "Crop", "Scale",
    "TfQuantizedConv2D", "QuantizedDepthwiseConv2D", "BatchNorm", "InstanceNorm", "Moments", "QuantizedAvgPool", "QuantizedAdd",
    "Int8ToFloat", "FloatToInt8", "SeqLen2Spatial", "FmhaV2"})
#: Elementwise ops of one input that run in any format.
FOLLOWERS = frozenset({"ReLU", "ReLU6", "ELU", "Selu", "Sigmoid", "TanH", "UnaryOp"})


def to_logical(graph: Graph) -> None:
    """Removes data formats from a graph as it was read; `graph.extra` has its inputs' formats and its ops' tags."""
    formats: dict[str, str] = dict(graph.extra.pop("formats", {}))
    tags: dict[str, str] = graph.extra.pop("tags", {})
    renamed: dict[str, str] = {}
    outputs = {o.name for o in graph.outputs}
    ops: list[Op] = []

    def convert(name: str, source: str, dest: str) -> str:
        made = graph.fresh_name(f"{name}.{dest.lower()}")
        while any(made in op.outputs for op in ops):
            made += "_"
        ops.append(Op("ConvertTensor", [name], [made], {"source": source, "dest": dest}, name=made))
        formats[made] = dest
        return made

    for op in graph.ops:
        op.inputs = [renamed.get(n, n) for n in op.inputs]
        first = formats.get(op.inputs[0]) if op.inputs else None
        if op.type == "ConvertTensor" and len(op.inputs) == 1 and len(op.outputs) == 1:
            dest = op.attrs.get("dest", "NCHW")
            formats[op.outputs[0]] = dest
            source = first or op.attrs.get("source", "NCHW")
            if (source == "NHWC") == (dest == "NHWC"):
                if op.outputs[0] in outputs:
                    ops.append(Op("Identity", op.inputs, op.outputs, name=op.name))
                else:
                    renamed[op.outputs[0]] = op.inputs[0]
                    if op.inputs[0] not in formats or formats[op.inputs[0]] == "NCHW":
                        formats[op.inputs[0]] = first or "NCHW"
                continue
            op.attrs = {"source": "NHWC" if source == "NHWC" else "NCHW", "dest": "NHWC" if dest == "NHWC" else "NCHW"}
            ops.append(op)
            continue
        result = first
        if op.type in IMAGE_OPS:
            if first == "NHWC" and op.inputs:
                op.inputs[0] = convert(op.inputs[0], "NHWC", "NCHW")
            result = "NC4HW4"
        elif op.type == "Shape" and first == "NC4HW4" and tags.get(op.outputs[0]) == "NHWC":
            op.inputs[0] = convert(op.inputs[0], "NCHW", "NHWC")
            result = None
        elif op.type not in ("Concat", "BinaryOp", "Eltwise", "Select", "Pack"):
            result = first
        else:
            result = next((formats[n] for n in op.inputs if n in formats), None)
        ops.append(op)
        for name in op.outputs:
            if result is not None:
                formats[name] = result
    graph.ops = ops
    graph.outputs = [replace(o, name=renamed.get(o.name, o.name)) for o in graph.outputs]


def to_formats(graph: Graph) -> list[Op]:
    """The ops of a graph with ConvertTensor ops, so that MNN's image ops get NC4HW4 and all others NCHW.

    Elementwise ops of one input stay in NC4HW4 behind an image op. Conversions between NCHW and NHWC become permutations.
    """
    ops: list[Op] = []
    blocked: dict[str, str] = {}  # tensor -> its name in NC4HW4
    plain = {i.name for i in graph.inputs} | set(graph.constants)
    taken = set(graph.tensor_names())

    def fresh(stem: str) -> str:
        while stem in taken:
            stem += "_"
        taken.add(stem)
        return stem

    def as_blocked(name: str) -> str:
        if name not in blocked:
            blocked[name] = fresh(f"{name}__c4")
            ops.append(Op("ConvertTensor", [name], [blocked[name]], {"source": "NCHW", "dest": "NC4HW4"}, name=blocked[name]))
        return blocked[name]

    def as_plain(name: str) -> str:
        if name and name not in plain:
            plain.add(name)
            ops.append(Op("ConvertTensor", [blocked[name]], [name], {"source": "NC4HW4", "dest": "NCHW"}, name=f"{name}__nchw"))
        return name

    for op in graph.ops:
        image = op.type in IMAGE_OPS
        if image or (op.type in FOLLOWERS and len(op.inputs) == 1 and op.inputs[0] in blocked):
            inputs = [as_blocked(op.inputs[0]), *map(as_plain, op.inputs[1:])]
            outputs = [fresh(f"{n}__c4") for n in op.outputs]
            ops.append(replace(op, inputs=inputs, outputs=outputs))
            blocked.update(zip(op.outputs, outputs))
            continue
        inputs = [as_plain(n) for n in op.inputs]
        if op.type == "ConvertTensor":
            dims = (0, 2, 3, 1) if op["dest"] == "NHWC" else (0, 3, 1, 2)
            op = Op("Permute", inputs, op.outputs, {"dims": dims}, name=op.name)
        ops.append(replace(op, inputs=inputs))
        plain.update(op.outputs)
    for info in graph.outputs:
        as_plain(info.name)
    return ops
