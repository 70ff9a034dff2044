"""Resize and Upsample. What MNN's Interp can do goes there; everything else is resampled axis by axis (resample.py)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mnn_core import ModelFormatError

from ..builder import Builder
from ..node import Node
from ..resample import Axis, Method, resample
from ..rules import Unsupported, rule, wrong

_TRANSFORMS = {"half_pixel": "HalfPixels", "pytorch_half_pixel": "PytorchHalfPixels", "align_corners": "AlignCorners",
               "asymmetric": "Asymmetric", "half_pixel_symmetric": "", "tf_half_pixel_for_nn": "", "tf_crop_and_resize": ""}
_NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
_MODES = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "cubic": "cubic"}


@rule("Upsample")
def upsample(node: Node, b: Builder) -> None:
    """Scales are an attribute up to opset 8, then an input."""
    scales = node.input(1) if node.version >= 9 else b.const(np.float32(node["scales"]))
    _resize(node, b, Method(_mode(node), "asymmetric", "floor"), scales, "", "")


@rule("Resize", until=10)
def resize_10(node: Node, b: Builder) -> None:
    _resize(node, b, Method(_mode(node), "asymmetric", "floor"), node.inputs[1], "", "")


@rule("Resize", since=11)
def resize(node: Node, b: Builder) -> None:
    """(x, roi, scales, sizes): of scales and sizes one is given, absent ones are "" or empty."""
    transform = node.get("coordinate_transformation_mode", "half_pixel")
    nearest = node.get("nearest_mode", "round_prefer_floor")
    if transform not in _TRANSFORMS:
        raise wrong("coordinate_transformation_mode", transform, f"one of {', '.join(_TRANSFORMS)}")
    if nearest not in _NEAREST:
        raise wrong("nearest_mode", nearest, f"one of {', '.join(_NEAREST)}")
    method = Method(_mode(node), transform, nearest, node.get("cubic_coeff_a", -0.75), bool(node.get("exclude_outside", 0)),
                    node.get("extrapolation_value", 0.0), bool(node.get("antialias", 0)))

    def given(index: int) -> str:
        name = node.input(index)
        value = b.value(name) if name else None
        return "" if value is not None and value.size == 0 else name

    roi, scales, sizes = (given(i) for i in (1, 2, 3))
    if bool(scales) == bool(sizes):
        raise ModelFormatError(f"{node}: expected either scales or sizes, not {'both' if scales else 'none'}")
    _resize(node, b, method, scales, sizes, roi)


def _mode(node: Node) -> str:
    mode = node.get("mode", "nearest")
    if mode not in _MODES:
        raise wrong("mode", mode, "'nearest', 'linear' or 'cubic'")
    return _MODES[mode]


def _resize(node: Node, b: Builder, method: Method, scales: str, sizes: str, roi: str) -> None:
    """Interpolated integers are truncated, as those of ONNX's reference are."""
    x = node.inputs[0]
    if not b.is_float(x) and method.mode != "nearest":
        floats, made = b.cast(x, np.float32), b.context.fresh(f"{node.name}/floats")
        b.declare(floats, None, b.rank(x))
        _resize(replace(node, inputs=[floats, *node.inputs[1:]], outputs=[made]), b, method, scales, sizes, roi)
        b.cast(made, b.dtype(x), node.outputs)
        return
    rank, values = b.rank(x), b.value(scales) if scales else None
    given = values if values is not None else b.value(sizes) if sizes else None
    axes = node.get("axes")
    if axes is None:
        rank = len(given) if given is not None else rank
        if rank is None:
            raise Unsupported("a tensor of unknown rank, with scales or sizes that are not constant")
        b.declare(x, None, rank)
        axes = tuple(range(rank))
    elif rank is None and any(a < 0 for a in axes):
        raise Unsupported("negative axes of a tensor of unknown rank")
    axes = tuple(a % rank if rank is not None else a for a in axes)
    if given is not None and len(given) != len(axes):
        raise ModelFormatError(f"{node}: {len(given)} {'scales' if scales else 'sizes'} for {len(axes)} axes")
    policy = node.get("keep_aspect_ratio_policy", "stretch")
    ratio = ""
    if sizes and policy != "stretch":
        sizes, ratio = _keep_aspect(b, x, axes, sizes, policy)
        given = b.value(sizes)
    if rank == 4 and policy == "stretch" and b.is_float(x) and _plain(b, x, method, axes, values, sizes):
        _interp(node, b, x, method, axes, values, sizes)
        return
    resized = []
    for i, axis in enumerate(axes):
        if values is not None and values[i] == 1 and method.transform != "tf_crop_and_resize":
            continue
        size = b.shape(x)
        if sizes and given is not None and size is not None and axis < len(size) and size[axis] == given[i] and \
                method.transform != "tf_crop_and_resize":
            continue
        scale = ratio or _pick(b, scales, i)
        resized.append(Axis(axis, scale, _pick(b, sizes, i), _pick(b, roi, i), _pick(b, roi, i + len(axes))))
    resample(b, x, method, resized, node.outputs)


def _pick(b: Builder, vector: str, index: int) -> str:
    return b.op("GatherV2", [vector, b.const(np.int32(index)), b.const(np.int32(0))]) if vector else ""


def _keep_aspect(b: Builder, x: str, axes: tuple[int, ...], sizes: str, policy: str) -> tuple[str, str]:
    """(sizes, scale) with one scale for all axes: the least or greatest that the sizes ask for."""
    kinds = {"not_larger": "MINIMUM", "not_smaller": "MAXIMUM"}
    if policy not in kinds:
        raise wrong("keep_aspect_ratio_policy", policy, "'stretch', 'not_larger' or 'not_smaller'")
    old = b.cast(b.op("GatherV2", [b.shape_of(x), b.ints(*axes), b.const(np.int32(0))], dtype=np.int64), np.float32)
    ratio = b.binary("REALDIV", b.cast(sizes, np.float32), old)
    scale = b.op("Reduction", [ratio], operation=kinds[policy], dim=(0,), keepDims=False)
    rounded = b.unary("FLOOR", b.binary("ADD", b.binary("MUL", old, scale), b.const(np.float32(0.5))))
    return b.cast(rounded, np.int64), scale


def _plain(b: Builder, x: str, method: Method, axes: tuple[int, ...], scales: np.ndarray | None, sizes: str) -> bool:
    """Whether Interp does it: images scaled in height and width, by a method that it has."""
    if method.antialias or method.exclude_outside or not _TRANSFORMS[method.transform]:
        return False
    shape = b.shape(x)
    if scales is not None:
        if any(s != 1 for a, s in zip(axes, scales) if a < 2):
            return False
    elif sizes and any(a < 2 for a in axes):
        value = b.value(sizes)
        if value is not None and shape is not None and len(shape) == 4 and \
                any(a < 2 and shape[a] not in (None, v) for a, v in zip(axes, value)):
            return False
    elif not sizes:
        return False
    if method.mode != "nearest":
        return scales is None or _whole(scales)
    if method.transform == "asymmetric" and method.nearest == "floor":
        return scales is None or _whole(scales)
    return scales is not None and _whole(scales) and method.transform == "half_pixel" and method.nearest.startswith("round")


def _whole(scales: np.ndarray) -> bool:
    """Whether output size / input size is the scale itself, for every input size."""
    return bool(np.all((scales == np.round(scales)) & (scales >= 1)))


def _interp(node: Node, b: Builder, x: str, method: Method, axes: tuple[int, ...], scales: np.ndarray | None,
            sizes: str) -> None:
    if method.mode == "nearest":
        method = Method("nearest", "asymmetric", "floor")
    attrs = {"resizeType": {"nearest": 1, "linear": 2, "cubic": 3}[method.mode], "ctm": _TRANSFORMS[method.transform],
             "alignCorners": method.transform == "align_corners", "halfPixelCenters": "half_pixel" in method.transform,
             "cubicCoeffA": method.cubic_a}
    if scales is not None:
        full = np.ones(4, np.float32)
        full[list(axes)] = scales
        target = b.const(full)
    elif axes == (0, 1, 2, 3):
        target = sizes
    else:
        order = b.shape_of(x)
        parts = [_vector(b, sizes, axes.index(i)) if i in axes else _vector(b, order, i) for i in range(4)]
        target = b.op("Concat", parts, axis=0)
    b.op("Interp", [x, target], node.outputs, dtype=b.dtype(x), **attrs)


def _vector(b: Builder, vector: str, index: int) -> str:
    return b.op("GatherV2", [vector, b.ints(index), b.const(np.int32(0))], dtype=np.int64)
