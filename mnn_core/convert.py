"""Converting: a model file of any framework becomes a Graph, optimised, and a `.mnn` file."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from . import plugins
from ._callable import make_callable
from .errors import ConversionError
from .ir import Graph
from .passes.pipeline import optimize


def convert(
    source: str | Path | bytes | Graph | Any,
    target: str | Path | None = None,
    *,
    converter: str | None = None,
    optimize_level: int = 1,
    skip_passes: Collection[str] = (),
    fp16: bool = False,
    weight_quant_bits: int = 0,
    weight_quant_asymmetric: bool = False,
    weight_quant_block: int = 0,
    save_external_data: bool = False,
    biz_code: str = "",
    **options: Any,
) -> Graph:
    """Converts a model and, if `target` is given, saves it there as `.mnn` (or `.json`, to be read).

    source: a model file, whose extension tells the framework; a Graph; or, with `converter`, bytes or the framework's own
    object. optimize_level: 0 rewrites nothing. skip_passes: names of passes to leave out. fp16: weights as 16-bit floats.
    weight_quant_bits: weights as integers of 2 to 8 bits, weight_quant_asymmetric with a zero point, weight_quant_block with a
    scale for so many input channels. save_external_data: weights in a file of their own, `target`.weight. biz_code: free
    text. options: go to the converter (`allow_custom_op=True` keeps operators that nobody knows).

    The target appears whole or not at all. Raises ConversionError listing everything that is unsupported, and ModelFormatError
    for a damaged file.
    """
    if target is not None:
        _check_target(source, Path(target))
    graph = read_graph(source, converter, **options)
    optimize(graph, optimize_level, skip_passes, plugins.passes())
    if biz_code:
        graph.extra["bizCode"] = biz_code
    if target is None:
        return graph
    from . import formats

    if Path(target).suffix.lower() == ".json":
        formats.write_json(graph, target)
    else:
        formats.write_mnn(graph, target, fp16=fp16, weight_quant_bits=weight_quant_bits or None,
                          weight_quant_asymmetric=weight_quant_asymmetric, weight_quant_block=weight_quant_block or None,
                          save_external_data=save_external_data)
    return graph


def _check_target(source: Any, target: Path) -> None:
    if not target.name:
        raise ConversionError(f"the target {str(target)!r} is no name of a file")
    if target.is_dir():
        raise ConversionError(f"the target {str(target)!r} is a folder; give the name of a file")
    if isinstance(source, (str, Path)) and Path(source).suffix.lower() not in (".mnn", ".json") and target.exists() \
            and target.resolve() == Path(source).resolve():
        raise ConversionError(f"the target {str(target)!r} is the source, which would be lost; give another name")


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
    if extension == ".mnn":
        from .formats import read_mnn

        plugins.load_ops()
        return read_mnn(path)
    if extension == ".json":
        from .formats import read_json

        plugins.load_ops()
        return read_json(path)
    return plugins.converter_for(path).load(path, **options)


_call = convert
make_callable(__name__)
