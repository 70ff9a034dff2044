"""MNN's data formats, out of and back into a graph.

In files, tensors have a format: NCHW, NHWC, or NC4HW4 (channel-blocked, shapes written as NCHW), and ConvertTensor ops change
it. In a Graph, image ops see NCHW, and that is all: NCHW and NC4HW4 are the same there, and only conversions from and to NHWC
remain, as ConvertTensor ops (a permutation of dimensions 1 and last).
"""

from __future__ import annotations

from dataclasses import replace

from ..ir import Graph, Op
from .names import Names

#: Ops that compute in NC4HW4: their first input and their outputs have it.
IMAGE_OPS = frozenset({
    "Convolution", "Convolution3D", "ConvolutionDepthwise", "Deconvolution", "DeconvolutionDepthwise", "ConvTranspose3D",
    "ConvInt8", "DepthwiseConvInt8", "GridSample", "PReLU", "Dilation2D", "Pooling", "Pooling3D", "ROIPooling", "ROIAlign",
    "Resize", "SpatialProduct", "Proposal", "PriorBox", "DetectionOutput", "LRN", "Interp", "Interp3D", "Crop", "Scale",
    "TfQuantizedConv2D", "QuantizedDepthwiseConv2D", "BatchNorm", "InstanceNorm", "Moments", "QuantizedAvgPool", "QuantizedAdd",
    "Int8ToFloat", "FloatToInt8", "SeqLen2Spatial", "FmhaV2"})
#: Elementwise ops of one input that run in any format.
FOLLOWERS = frozenset({"ReLU", "ReLU6", "ELU", "Selu", "Sigmoid", "TanH", "UnaryOp"})
#: Ops whose inputs all have the format of their outputs.
_ONE_FORMAT = frozenset({"Concat", "BinaryOp", "Eltwise", "Select", "Pack"})


def to_logical(graph: Graph) -> dict[str, str]:
    """Removes data formats from a graph as it was read; `graph.extra` has its inputs' formats and its ops' tags.

    Returns the new names of tensors that are now the same as others.
    """
    formats: dict[str, str] = dict(graph.extra.pop("formats", {}))
    tags: dict[str, str] = graph.extra.pop("tags", {})
    renamed: dict[str, str] = {}  # a converted tensor -> its source
    finally_: dict[str, str] = {}  # a tensor -> the graph output that is the same, and whose name both get
    outputs = {o.name for o in graph.outputs}
    names = Names(graph.tensor_names())
    fixed = outputs | {i.name for i in graph.inputs} | set(graph.constants)
    ops: list[Op] = []

    def convert(name: str, source: str, dest: str) -> str:
        made = names.fresh(f"{name}.{dest.lower()}")
        ops.append(Op("ConvertTensor", [name], [made], {"source": source, "dest": dest}, name=made))
        formats[made] = dest
        return made

    for op in graph.ops:
        own = [formats.get(n) for n in op.inputs]
        first = own[0] if own and op.outputs else None
        op.inputs = [renamed.get(n, n) for n in op.inputs]
        if op.type == "ConvertTensor" and len(op.inputs) == 1 and len(op.outputs) == 1:
            (name,), (made,) = op.inputs, op.outputs
            dest = op.attrs.get("dest", "NCHW")
            formats[made] = dest
            source = first or op.attrs.get("source", "NCHW")
            if (source == "NHWC") != (dest == "NHWC"):
                op.attrs = {"source": "NHWC" if source == "NHWC" else "NCHW", "dest": "NHWC" if dest == "NHWC" else "NCHW"}
                ops.append(op)
            elif made not in outputs:
                renamed[made] = name
            elif name in fixed or name in finally_:
                ops.append(Op("Identity", op.inputs, op.outputs, name=op.name))
            else:
                finally_[name] = made
            continue
        result = first
        if op.type in IMAGE_OPS:
            if first == "NHWC" and op.inputs:
                op.inputs[0] = convert(op.inputs[0], "NHWC", "NCHW")
            result = "NC4HW4"
        elif op.type == "Shape" and first == "NC4HW4" and tags.get(op.outputs[0]) == "NHWC":
            op.inputs[0] = convert(op.inputs[0], "NCHW", "NHWC")
            result = None
        elif op.type in _ONE_FORMAT:
            result = next((f for f in own if f is not None), None)
        elif op.type == "LayerNorm" and first == "NC4HW4" and tags.get(op.outputs[0]) == "NC4HW4":
            op.attrs = {**op.attrs, "axis": (1,)}  # whatever the file says: MNN goes by the format
        after: Op | None = None
        if first == "NC4HW4" and op.type == "Reshape" and op.attrs.get("dimType") == "NHWC":
            dims = op.attrs.get("dims", ())
            if len(dims) > 2 and len(op.inputs) == 1:
                op.attrs = {**op.attrs, "dims": (dims[0], *dims[2:], dims[1])}
            op.inputs[0] = convert(op.inputs[0], "NCHW", "NHWC")
            made = names.fresh(f"{op.outputs[0]}.nhwc")
            after = Op("ConvertTensor", [made], op.outputs, {"source": "NHWC", "dest": "NCHW"}, name=op.outputs[0])
            op.outputs = [made]
        elif first == "NC4HW4" and op.type in ("ArgMax", "ArgMin") and not _caffe(op):
            # In this format it is Caffe's op: the axis stays, and indices are floats.
            found, kept = (names.fresh(f"{op.outputs[0]}.{part}") for part in ("index", "axis"))
            after = Op("Cast", [kept], op.outputs, {"dstT": "DT_FLOAT"}, name=op.outputs[0])
            op.outputs = [found]
            ops += [op, Op("Unsqueeze", [found], [kept], {"squeezeDims": (op.attrs.get("axis", 0),)}, name=kept)]
            op = after
            after = None
        ops.append(op)
        if after is not None:
            ops.append(after)
            op = after
        for name in op.outputs:
            if result is not None:
                formats[name] = result
    for op in ops:
        op.inputs = [finally_.get(n, n) for n in op.inputs]
        op.outputs = [finally_.get(n, n) for n in op.outputs]
    graph.ops = ops
    return {**{a: finally_.get(b, b) for a, b in renamed.items()}, **finally_}


def _caffe(op: Op) -> bool:
    """Whether an ArgMax has Caffe's form by its attributes alone."""
    return bool(op.attrs.get("outMaxVal", 0) or op.attrs.get("topK", 1) > 1 or op.attrs.get("axis", 0) == 10000)


def blocked_inputs(graph: Graph) -> list[str]:
    """Inputs that are images: those of four dimensions."""
    return [i.name for i in graph.inputs if i.shape is not None and len(i.shape) == 4]


def to_formats(graph: Graph, keep: bool = True) -> tuple[list[Op], dict[str, str]]:
    """The ops of a graph with ConvertTensor ops, so that MNN's image ops get NC4HW4 and all others NCHW.

    keep: inputs and outputs are NCHW; otherwise images come in NC4HW4, and outputs are as the ops make them.

    Elementwise ops of one input stay in NC4HW4 behind an image op. Conversions between NCHW and NHWC become permutations.
    Also returns the tensors that came in: new name -> the tensor that is the same but for its format.
    """
    ops: list[Op] = []
    blocked: dict[str, str] = {}  # tensor -> its name in NC4HW4
    plain = {i.name: i.name for i in graph.inputs} | {n: n for n in graph.constants}  # tensor -> its name in NCHW
    if not keep:
        blocked = {n: n for n in blocked_inputs(graph)}
        plain = {n: n for n in plain if n not in blocked}
    ranks = {i.name: len(i.shape) for i in graph.inputs if i.shape is not None}
    outputs = {o.name for o in graph.outputs}
    fresh = Names(graph.tensor_names()).fresh

    def as_blocked(name: str) -> str:
        if name not in blocked:
            blocked[name] = fresh(f"{name}__c4")
            ops.append(Op("ConvertTensor", [plain[name]], [blocked[name]], {"source": "NCHW", "dest": "NC4HW4"},
                          name=blocked[name]))
        return blocked[name]

    def as_plain(name: str) -> str:
        if name and name not in plain:
            plain[name] = name if keep and name in outputs else fresh(f"{name}__nchw")
            ops.append(Op("ConvertTensor", [blocked[name]], [plain[name]], {"source": "NC4HW4", "dest": "NCHW"},
                          name=f"{name}__nchw"))
        return plain.get(name, "")

    for op in graph.ops:
        follows = op.type in FOLLOWERS and len(op.inputs) == 1
        if op.inputs and op.inputs[0] in ranks and (follows or op.type in IMAGE_OPS or op.type == "ConvertTensor"):
            ranks.update(dict.fromkeys(op.outputs, ranks[op.inputs[0]]))
        if op.type in IMAGE_OPS or (follows and op.inputs[0] in blocked):
            inputs = [as_blocked(op.inputs[0]), *map(as_plain, op.inputs[1:])]
            made = [fresh(f"{n}__c4") if keep and n in outputs else n for n in op.outputs]
            ops.append(replace(op, inputs=inputs, outputs=made))
            blocked.update(zip(op.outputs, made))
            continue
        inputs = [as_plain(n) for n in op.inputs]
        if op.type == "ConvertTensor" and (op["source"] == "NHWC") == (op["dest"] == "NHWC"):
            op = Op("Identity", inputs, op.outputs, name=op.name)
        elif op.type == "ConvertTensor":
            rank = ranks.get(op.inputs[0], 4)
            to_last, from_last = (0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))
            dims = tuple(range(rank)) if rank < 3 else to_last if op["dest"] == "NHWC" else from_last
            op = Op("Permute", inputs, op.outputs, {"dims": dims}, name=op.name)
        ops.append(replace(op, inputs=inputs))
        plain.update(zip(op.outputs, op.outputs))
    for info in graph.outputs if keep else ():
        as_plain(info.name)
    twins = {made: name for where in (blocked, plain) for name, made in where.items() if made != name}
    return ops, twins
