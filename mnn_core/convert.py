"""Converting: a model file of any framework becomes a Graph, optimised, and a `.mnn` file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import plugins
from ._callable import make_callable
from .errors import ConversionError
from .ir import Graph
from .passes.pipeline import TRAINING, TRANSFORMER, optimize
from .passes.static_shapes import make_static, set_batch

if TYPE_CHECKING:
    from .testing.verify import Verification


def convert(
    source: str | Path | bytes | Graph | Any, target: str | Path | None = None, *, converter: str | None = None,
    optimize_level: int = 1, optimize_prefer: int = 0, skip_passes: Collection[str] = (),
    on_pass: Callable[[str, Graph, int], None] | None = None, transformer_fuse: bool = False, fp16: bool = False,
    weight_quant_bits: int = 0, weight_quant_asymmetric: bool = False, weight_quant_block: int = 0,
    weight_quant_scale_bits: int = 32, hqq: bool = False, convert_matmul_to_conv: bool | None = None,
    align_denormalized: bool = True, save_external_data: bool = False, keep_input_format: bool = True,
    for_training: bool = False, batch: int | None = None, save_static_model: bool = False,
    input_shapes: Mapping[str, Sequence[int]] | None = None, biz_code: str = "", auth_code: str = "", verify: bool = False,
    keep: bool = False, on_verified: Callable[[Verification], None] | None = None, **options: Any,
) -> Graph:
    """Converts a model and, if `target` is given, saves it there as `.mnn` (or `.json`, to be read).

    source: a model file, whose extension tells the framework; a Graph; or, with `converter`, bytes or the framework's own
    object. The target appears whole or not at all.

    Rewriting: optimize_level 0 rewrites nothing. optimize_prefer (0 normal, 1 small, 2 fast) is accepted as MNN has it; no
    pass of ours trades size for speed. skip_passes: names of passes to leave out. on_pass(name, graph, changes) is called
    before the passes, with no name, and after each pass that changed something. transformer_fuse: also the passes that make
    single ops of attention and the like. for_training: keep batch normalisations and Dropout. keep_input_format=False: images
    go in and out in NC4HW4. batch: the first dimension of inputs that leave it open. save_static_model: fix the shapes, those
    that the model leaves open by input_shapes (name -> shape), and compute what follows from them.

    Weights: fp16: as 16-bit floats. weight_quant_bits: as integers of 2 to 8 bits, weight_quant_asymmetric with a zero point,
    weight_quant_block with a scale for so many input channels, weight_quant_scale_bits=16 with scales as 16-bit floats, hqq
    with the zero points of half-quadratic quantisation. convert_matmul_to_conv: products with a constant matrix become 1x1
    convolutions, which is done by itself where their weights are packed. align_denormalized: weights too small for a normal
    float become 0. save_external_data: weights in a file of their own, `target`.weight.

    biz_code, auth_code: free text. verify: run the result and its source on random inputs (of input_shapes, if given) and raise
    ConversionError, before anything is written, if they differ or cannot be compared; keep: write all the same. on_verified is
    called with what was found. options: go to the converter (`allow_custom_op=True` keeps operators that nobody knows).

    Raises ConversionError listing everything that is unsupported, and ModelFormatError for a damaged file.
    """
    if target is not None:
        from .formats.whole import check_target

        check_target(source, Path(target))
    if optimize_level not in (0, 1, 2) or optimize_prefer not in (0, 1, 2):
        raise ConversionError(f"optimize_level {optimize_level}, optimize_prefer {optimize_prefer}: expected 0, 1 or 2")
    if for_training:
        options["for_training"], skip_passes = True, {*skip_passes, *TRAINING}
    graph = read_graph(source, converter, **options)
    if batch is not None:
        set_batch(graph, batch)
    optimize(graph, optimize_level, {*skip_passes, *(() if transformer_fuse else TRANSFORMER)}, plugins.passes(), on_pass)
    if save_static_model:
        make_static(graph, input_shapes)
    graph.extra.update({k: text for k, text in (("bizCode", biz_code), ("authCode", auth_code)) if text})
    if verify:
        from .testing.verify import verify_conversion

        verify_conversion(source, converter, graph, input_shapes, keep, on_verified)
    if target is None:
        return graph
    from . import formats

    if Path(target).suffix.lower() == ".json":
        formats.write_json(graph, target)
    else:
        formats.write_mnn(graph, target, fp16=fp16, weight_quant_bits=weight_quant_bits or None,
                          weight_quant_asymmetric=weight_quant_asymmetric, weight_quant_block=weight_quant_block or None,
                          weight_quant_scale_bits=weight_quant_scale_bits, hqq=hqq, keep_input_format=keep_input_format,
                          convert_matmul_to_conv=convert_matmul_to_conv, align_denormalized=align_denormalized,
                          save_external_data=save_external_data)
    return graph


def read_graph(source: str | Path | bytes | Graph | Any, converter: str | None = None, **options: Any) -> Graph:
    """Reads a model of any kind as it is, without optimisation; see `convert` for the arguments."""
    if isinstance(source, Graph):
        return source
    if converter is not None:
        return plugins.converter(converter).load(source, **options)
    if not isinstance(source, (str, Path)):
        raise ConversionError(f"a {type(source).__name__} does not tell its framework; name the converter: converter=\"onnx\"")
    path = Path(source)
    if not path.is_file():
        raise ConversionError(f"there is no file {str(path)!r}")
    extension = path.suffix.lower()
    if extension in (".mnn", ".json"):
        from . import formats

        plugins.load_ops()
        return formats.read_mnn(path) if extension == ".mnn" else formats.read_json(path)
    return plugins.converter_for(path).load(path, **options)


_call = convert
make_callable(__name__)
