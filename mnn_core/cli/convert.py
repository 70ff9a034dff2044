"""mnn convert"""

from __future__ import annotations

import argparse
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import ConversionError, InputError
from .common import command, print_json, table
from .convert_trace import Trace

#: Options of MNNConvert that mean nothing here -> why.
REFUSED = {
    "--benchmarkModel": "files without weights are not written: `mnn bench` measures any model with the weights that it has",
    "--compressionParamsFile": "parameter files of MNNCompress are not read; --weight-quant-bits quantises weights",
    "--customOpLibs": "libraries of TorchScript ops are not loaded; register ops of your own with mnn_core.register_op",
    "--detectSparseSpeedUp": "this engine has no kernels for sparse weights",
    "--splitBlockQuant": "every backend here reads block-quantised weights as they are",
    "--prototxt": "Caffe networks are not read by any installed converter",
    "--rknn": "files for RKNN devices are not written",
    "--debug": "use --dump-pass to see what passes do, and --traceback to see where an error was raised",
}
#: Sizes of sources beyond which --verify must be asked for: the reference holds them in memory.
_VERIFY_UP_TO = 500_000_000


def add(commands: Any) -> None:
    parser = command(commands, "convert", run, "convert a model to .mnn (or to .json, to read it)",
                     "mnn convert model.onnx model.mnn --weight-quant-bits 8\n  "
                     "mnn convert -f ONNX --modelFile model.onnx --MNNModel model.mnn --fp16 --bizCode demo")
    parser.add_argument("source", nargs="?", help=".onnx, .mnn, .json or another file that an installed converter reads")
    parser.add_argument("target", nargs="?", help=".mnn or .json")
    parser.add_argument("--json", action="store_true", help="what was done, as JSON")
    _what(parser)
    _weights(parser.add_argument_group("weights"))
    _graph(parser.add_argument_group("graph"))
    _checks(parser.add_argument_group("checks", "the target is written only if they pass, unless --keep"))
    refused = parser.add_argument_group("refused", "options of MNNConvert that mean nothing here; each says why")
    for name in REFUSED:
        refused.add_argument(name, nargs="?", const=True, metavar="...", help=argparse.SUPPRESS)
    refused.description = f"{refused.description}: {' '.join(REFUSED)}"


def _what(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("MNNConvert's way to say it")
    group.add_argument("-f", "--framework", type=str.upper, choices=("ONNX", "MNN", "JSON", "TF", "CAFFE", "TFLITE", "TORCH"),
                       metavar="KIND", help="of the source, where its name does not tell: ONNX, MNN, JSON, ...")
    group.add_argument("--modelFile", dest="model_file", metavar="SOURCE", help="the source")
    group.add_argument("--MNNModel", dest="mnn_model", metavar="TARGET", help="the target")
    group.add_argument("--JsonFile", dest="json_file", metavar="FILE", help="with a .mnn source: write it as MNN's JSON")
    group.add_argument("--info", action="store_true", help="show the source's interface and metadata, as `mnn info`")
    group.add_argument("--OP", action="store_true", help="list the operators that sources may have (see mnn ops)")
    group.add_argument("--targetVersion", dest="target_version", metavar="V", help="MNN version to write for: 3.6 or newer")


def _weights(group: Any) -> None:
    group.add_argument("--fp16", action="store_true", help="store weights as 16-bit floats")
    group.add_argument("--weight-quant-bits", "--weightQuantBits", type=int, choices=(0, *range(2, 9)), metavar="2..8",
                       help="store weights of convolutions, matrix products and recurrent layers as integers (0: do not)")
    group.add_argument("--weight-quant-asymmetric", "--weightQuantAsymmetric", action="store_true", help="with a zero point")
    group.add_argument("--weight-quant-block", "--weightQuantBlock", type=int, metavar="N",
                       help="one scale per N input channels (N %% 16 == 0; -1: one per output channel)")
    group.add_argument("--weight-quant-scale-bits", "--weightQuantScaleBit", type=int, choices=(16, 32), metavar="16|32",
                       help="bits of a scale (default: 32)")
    group.add_argument("--hqq", action="store_true", help="zero points by half-quadratic quantisation (asymmetric)")
    group.add_argument("--convert-matmul-to-conv", "--convertMatmulToConv", type=int, choices=(0, 1), metavar="0|1",
                       help="products with a constant matrix become 1x1 convolutions (default: where weights are packed)")
    group.add_argument("--align-denormalized", "--alignDenormalizedValue", type=int, choices=(0, 1), metavar="0|1",
                       help="weights below 1.18e-38 become 0 (default: 1)")
    group.add_argument("--save-external-data", "--saveExternalData", action="store_true",
                       help="weights in a file of their own, TARGET.weight")


def _graph(group: Any) -> None:
    group.add_argument("--optimize-level", "--optimizeLevel", type=int, default=1, choices=(0, 1, 2),
                       help="0: rewrite nothing (default: 1; 2 is the same: no pass of ours is wrong for some inputs)")
    group.add_argument("--optimize-prefer", "--optimizePrefer", type=int, choices=(0, 1, 2), metavar="0|1|2",
                       help="normal, small or fast; accepted as MNN has it: no pass of ours trades size for speed")
    group.add_argument("--passes", action="store_true", help="list the passes, and do nothing else")
    group.add_argument("--dump-pass", "--dumpPass", action="store_true", help="show what each pass changes")
    group.add_argument("--skip-pass", action="append", default=[], metavar="NAME", help="leave a pass out; may repeat")
    group.add_argument("--transformer-fuse", "--transformerFuse", action="store_true", help="fuse attention and the like")
    group.add_argument("--for-training", "--forTraining", action="store_true", help="keep batch normalisations and Dropout")
    group.add_argument("--keep-input-format", "--keepInputFormat", action=argparse.BooleanOptionalAction, default=True,
                       help="inputs and outputs stay NCHW (default); without: images are NC4HW4 there")
    group.add_argument("--batch", type=int, metavar="N", help="the first dimension of inputs that leave it open")
    group.add_argument("--save-static-model", "--saveStaticModel", action="store_true",
                       help="fix all shapes, and compute what follows from them")
    group.add_argument("--shape", "-s", action="append", default=[], metavar="[NAME=]1,3,224,224",
                       help="of an input, for --save-static-model and --verify; may repeat")
    group.add_argument("--inputConfigFile", dest="input_config_file", metavar="FILE",
                       help="shapes of inputs as lines `input_names = a,b` and `input_dims = 1x3x224x224,1x10`")
    group.add_argument("--allow-custom-op", "--allowCustomOp", action="store_true",
                       help="keep operators that nobody knows, as custom ops")
    group.add_argument("--biz-code", "--bizCode", help="free text stored in the file")
    group.add_argument("--auth-code", "--authCode", help="another free text, which MNN's users authenticate models with")


def _checks(group: Any) -> None:
    group.add_argument("--verify", action=argparse.BooleanOptionalAction, default=None,
                       help="compare with the source in its own runtime, on random inputs (default: if onnxruntime is "
                            "installed, for ONNX sources up to 500 MB)")
    group.add_argument("--keep", action="store_true", help="write the target although a check failed; the exit code stays 1")
    group.add_argument("--testdir", metavar="DIR", help="compare with stored results: input.json and a .txt of each tensor")
    group.add_argument("--testconfig", metavar="FILE", help='how to run them: JSON like {"backend": "numpy"}')
    group.add_argument("--threshold", "--thredhold", type=float, default=0.01, metavar="X",
                       help="allowed relative error of --testdir (default: 0.01)")


OPTIONS = ("optimize_level", "optimize_prefer", "fp16", "weight_quant_bits", "weight_quant_asymmetric", "weight_quant_block",
           "weight_quant_scale_bits", "hqq", "save_external_data", "transformer_fuse", "for_training", "batch",
           "save_static_model", "biz_code", "auth_code")


def usage(text: str) -> int:
    """Tells wrong usage."""
    print(f"mnn convert: {text} (see mnn convert --help)", file=sys.stderr)
    return 2


def run(args: argparse.Namespace) -> int:
    for name, why in REFUSED.items():
        if getattr(args, name[2:]) is not None:
            return usage(f"{name} is refused: {why}")
    if args.passes:
        return _list_passes(args)
    if args.OP:
        from . import ops

        return ops.run(argparse.Namespace(framework=(args.framework or "onnx").lower(), backend=None, json=args.json))
    if args.source is not None and args.model_file is not None and args.target is None:
        args.target, args.source = args.source, None
    source = args.source if args.source is not None else args.model_file
    target = args.target if args.target is not None else args.mnn_model
    if source is None:
        return usage("the source is missing")
    if args.info or args.json_file:
        return _show(args, source)
    if target is None:
        return usage("the target is missing")
    wrong = _wrong(args)
    return usage(wrong) if wrong else _convert(args, source, target)


def _wrong(args: argparse.Namespace) -> str:
    if args.target_version is not None:
        try:
            numbers = tuple(int(n) for n in args.target_version.split(".")[:2])
        except ValueError:
            return f"--targetVersion {args.target_version}: expected a version like 3.6"
        if numbers < (3, 6):
            return f"--targetVersion {args.target_version} is refused: files are written for MNN 3.6 and newer"
    known = _pass_names()
    unknown = [n for n in args.skip_pass if n not in known]
    if unknown:
        return f"--skip-pass {unknown[0]}: there is no such pass; `mnn convert --passes` lists them"
    if args.weight_quant_block is not None and args.weight_quant_block < 1 and args.weight_quant_block != -1:
        return f"--weight-quant-block {args.weight_quant_block}: expected a number of input channels, or -1"
    if args.testconfig and not args.testdir:
        return "--testconfig needs --testdir"
    return ""


def _pass_names() -> dict[str, str]:
    from .. import plugins
    from ..passes.pipeline import PASSES

    return {p.name: p.description for p in (*PASSES, *plugins.passes())}


def _list_passes(args: argparse.Namespace) -> int:
    rows = list(_pass_names().items())
    if args.json:
        print_json([dict(zip(("pass", "description"), row)) for row in rows])
    else:
        print(table(rows, ("pass", "what it does")))
    return 0


def _show(args: argparse.Namespace, source: str) -> int:
    if args.json_file:
        from ..formats.mnn_json import dump
        from ..formats.whole import write_text

        write_text(args.json_file, dump(Path(source)))
        print(f"{args.json_file}: {source} as MNN's JSON", file=sys.stderr)
    if args.info:
        from . import info

        return info.run(argparse.Namespace(model=source, json=args.json, ops=False))
    return 0


def _converter(args: argparse.Namespace, source: str) -> str | None:
    """The converter that --framework names, where the file's extension names none or another."""
    suffix = {"MNN": ".mnn", "JSON": ".json"}.get(args.framework or "")
    found = Path(source).suffix.lower()
    if args.framework is None or (suffix is None and found == f".{args.framework.lower()}"):
        return None
    if suffix is not None:
        if found != suffix:
            raise ConversionError(f"-f {args.framework} reads files that end in {suffix}; {source!r} does not")
        return None
    return str(args.framework.lower())


def _convert(args: argparse.Namespace, source: str, target: str) -> int:
    from ..convert import convert
    from ..formats import foreign_ops

    began = time.perf_counter()
    converter = _converter(args, source)
    options: dict[str, Any] = {k: getattr(args, k) for k in OPTIONS if getattr(args, k) not in (None, False)}
    if options.get("weight_quant_block") == -1:
        del options["weight_quant_block"]
    for key in ("convert_matmul_to_conv", "align_denormalized"):
        if getattr(args, key) is not None:
            options[key] = bool(getattr(args, key))
    if args.allow_custom_op:
        options["allow_custom_op"] = True
    shapes = _shapes(args, source, converter)
    found: list[Any] = []
    trace = Trace() if args.dump_pass else None
    verifying = _verifies(args, source, converter)
    if args.testdir:
        from .convert_test import check

        graph = convert(source, converter=converter, keep_input_format=args.keep_input_format, input_shapes=shapes, **options)
        failed = check(graph, Path(args.testdir), args.testconfig, args.threshold)
        if failed and not args.keep:
            print(f"mnn convert: {failed}; nothing was written", file=sys.stderr)
            return 1
    try:
        graph = convert(source, target, converter=converter, skip_passes=args.skip_pass, on_pass=trace,
                        keep_input_format=args.keep_input_format, input_shapes=shapes, verify=verifying, keep=args.keep,
                        on_verified=found.append, **options)
    except ConversionError as error:
        if not (found and found[0].failed):
            raise
        print(f"mnn convert: {error}", file=sys.stderr)
        return 1
    verification = found[0] if found else None
    if args.verify and verification is not None and verification.worst is None:
        raise ConversionError(f"{verification}; {target} was written")
    size = Path(target).stat().st_size
    foreign = sorted({op.type for op in foreign_ops(graph)})
    done = {"source": source, "target": target, "bytes": size, "ops": len(graph.ops), "seconds": time.perf_counter() - began,
            "not_in_mnn": foreign, "verification": _report(verification)}
    if args.json:
        print_json(done)
    else:
        print(f"{target}: {size:,} bytes, {len(graph.ops)} ops, in {done['seconds']:.1f} s", file=sys.stderr)
        if verification is not None:
            print(verification, file=sys.stderr)
        if foreign:
            print(f"the real MNN cannot run: {', '.join(foreign)} (stored as Extra ops, for this engine)", file=sys.stderr)
    return int(bool(verification is not None and verification.failed) or bool(args.testdir and failed))


def _report(found: Any) -> dict[str, Any] | None:
    if found is None:
        return None
    worst = found.worst
    return {"reason": found.reason} if worst is None else {
        "reference": found.reference, "tensor": worst.tensor, "error": worst.error, "absolute": worst.absolute,
        "index": worst.worst, "shape": worst.shape, "inputs": found.shapes, "passed": not found.failed}


def _shapes(args: argparse.Namespace, source: str, converter: str | None) -> dict[str, tuple[int, ...]]:
    from ..passes.static_shapes import read_shapes

    shapes = dict(read_shapes(args.input_config_file)) if args.input_config_file else {}
    for item in args.shape:
        name, equals, text = item.rpartition("=")
        if not equals:
            from ..convert import read_graph

            names = [i.name for i in read_graph(source, converter).inputs]
            if len(names) != 1:
                raise InputError(f"--shape {item}: the model has {len(names)} inputs ({', '.join(names)}); say NAME={item}")
            (name,) = names
        try:
            shapes[name] = tuple(int(d) for d in text.split(",") if d)
        except ValueError as error:
            raise InputError(f"--shape {item}: expected whole numbers and commas") from error
    return shapes


def _verifies(args: argparse.Namespace, source: str, converter: str | None) -> bool:
    """Whether to verify: as asked; by default, ONNX models of moderate size if there is something to compare with."""
    if args.verify is not None:
        return bool(args.verify)
    path = Path(source)
    if path.suffix.lower() != ".onnx" or args.for_training or args.allow_custom_op or not path.is_file() or \
            find_spec("onnxruntime") is None:
        return False
    beside = [p for p in path.parent.iterdir() if p.suffix in (".data", ".bin", ".weight", ".weights") or
              p.name.startswith(path.name)]
    return sum(p.stat().st_size for p in {path, *beside} if p.is_file()) <= _VERIFY_UP_TO
