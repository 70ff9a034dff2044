"""Convolutions, pooling, and operators that sample images."""

from __future__ import annotations

import numpy as np

from .draft import FLOATS, Draft, Refused, Tensor
from .families import family


def windows(g: Draft, rank: int, dilated: bool = True) -> dict[str, list[int]]:
    """Kernel, strides, dilations and pads (below the kernel's size); those at their defaults may be absent."""
    kernel = [g.integer(1, 3) for _ in range(rank)]
    found = {"kernel_shape": kernel}
    if g.flag():
        found["strides"] = [g.integer(1, 3) for _ in range(rank)]
    if dilated and g.flag():
        found["dilations"] = [g.integer(1, 2) for _ in range(rank)]
    if g.flag():
        found["pads"] = [g.integer(0, k - 1) for k in kernel * 2]
    return found


def image(g: Draft, op: str, low: int = 3, batch: int = 2, channels: int = 4) -> Tensor:
    """An image, a line or a volume."""
    rank = g.pick([2, 1, 3])
    shape = (g.integer(0 if g.empty else 1, batch), g.integer(1, channels), *(g.integer(low, 6) for _ in range(rank)))
    return g.tensor(g.types(op), (rank + 2, rank + 2), shape if not g.chained or g.flag() else None)


def auto(g: Draft, found: dict[str, list[int]]) -> str | None:
    """auto_pad, which goes without pads."""
    mode = g.pick([None, None, "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if mode not in (None, "NOTSET"):
        found.pop("pads", None)
    return mode


@family("Conv", "ConvInteger", "QLinearConv")
def conv(g: Draft, op: str) -> list[Tensor]:
    rank = g.pick([2, 1, 3])
    group = g.pick([1, 1, 2, 3])
    inner, outer = group * g.integer(1, 3), group * g.integer(1, 3)
    spatial = [g.integer(3, 6) for _ in range(rank)]
    found = windows(g, rank)
    mode = auto(g, found)
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        found.pop("dilations", None)
    x = g.tensor(g.types(op), shape=(g.integer(0 if g.empty else 1, 2), inner, *spatial))
    shape = (outer, inner // group, *found["kernel_shape"])
    common = {"group": group if group > 1 or g.flag() else None, "auto_pad": mode, **found}
    if op == "Conv":
        w = g.tensor([x.dtype], shape=shape, constant=True if g.integer(0, 3) else None)
        if w.constant and g.flag():  # a weight of unknown shape needs it
            common["kernel_shape"] = None
        return g.node(op, [x, w, g.tensor([x.dtype], shape=(outer,)) if g.flag() else None], **common)
    w = g.given(g.values(g.pick(g.types(op, 1 if op == "ConvInteger" else 3)), shape, -9, 9), True)
    x = g.given(g.values(x.dtype, x.shape, -9, 90))
    if op == "ConvInteger":
        zeros = [g.const(np.array(3, x.dtype)) if g.flag() else None, g.const(np.array(2, w.dtype)) if g.flag() else None]
        return g.node(op, [x, w, *zeros], **common)
    per_channel = g.flag()
    w_scale = g.const(g.values(np.float32, (outer,), 0.01, 0.1) if per_channel else np.float32(0.04))
    w_zero = g.const(np.zeros((outer,) if per_channel else (), w.dtype))
    bias = g.const(g.values(np.int32, (outer,), -100, 100)) if g.flag() else None
    scale, zero = g.const(np.float32(0.05)), g.const(np.array(7, x.dtype))
    return g.node(op, [x, scale, zero, w, w_scale, w_zero, g.const(np.float32(0.11)), g.const(np.array(9, x.dtype)), bias],
                  fragile=True, **common)


@family("ConvTranspose")
def conv_transpose(g: Draft, op: str) -> list[Tensor]:
    rank = g.pick([2, 1, 3])
    group = g.pick([1, 1, 2, 3])
    inner, outer = group * g.integer(1, 2), g.integer(1, 2)
    found = windows(g, rank)
    strides = found.get("strides", [1] * rank)
    spatial = [g.integer(2, 4) for _ in range(rank)]
    mode = auto(g, found)
    extra: dict[str, list[int] | None] = {}
    if mode in (None, "NOTSET") and max(strides) > 1 and g.flag():
        extra["output_padding"] = [g.integer(0, s - 1) for s in strides]
    elif g.rarely():
        extra["output_shape"] = [n * s for n, s in zip(spatial, strides)]
    x = g.tensor(g.types(op), shape=(g.integer(1, 2), inner, *spatial))
    if "output_shape" in extra:  # of an input of unknown size it is refused
        x = g.given(x.value)
        x.fixed = True
    w = g.tensor([x.dtype], shape=(inner, outer, *found["kernel_shape"]), constant=True if g.integer(0, 3) else None)
    b = g.tensor([x.dtype], shape=(outer * group,)) if g.flag() else None
    return g.node(op, [x, w, b], group=group if group > 1 or g.flag() else None, auto_pad=mode, **found, **extra)


@family("DeformConv")
def deform_conv(g: Draft, op: str) -> list[Tensor]:
    kernel, strides = [g.integer(1, 3), g.integer(1, 3)], [g.integer(1, 2), g.integer(1, 2)]
    pads, dilations = [g.integer(0, 1) for _ in range(4)], [g.integer(1, 2), g.integer(1, 2)]
    group, offsets = g.pick([1, 2]), g.pick([1, 2])
    inner, outer = 2 * g.integer(1, 2), group * g.integer(1, 2)
    size = [g.integer(4, 6), g.integer(4, 6)]
    out = [(size[i] + pads[i] + pads[i + 2] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1 for i in (0, 1)]
    if min(out) < 1:
        raise Refused("no window")
    n, count = g.integer(1, 2), kernel[0] * kernel[1] * offsets
    x = g.tensor(g.types(op), shape=(n, inner, *size))
    w = g.tensor([x.dtype], shape=(outer, inner // group, *kernel), constant=True)
    offset = g.given(g.values(x.dtype, (n, 2 * count, *out), -1.5, 1.5))
    rest = [g.tensor([x.dtype], shape=(outer,)) if g.flag() else None,
            g.given(g.values(x.dtype, (n, count, *out), 0, 1)) if g.flag() else None]
    return g.node(op, [x, w, offset, *rest], kernel_shape=kernel if g.flag() else None, strides=strides, pads=pads,
                  dilations=dilations, group=group, offset_group=offsets)


@family("MaxPool", "AveragePool", "LpPool")
def pool(g: Draft, op: str) -> list[Tensor]:
    x = image(g, op)
    rank = x.rank - 2
    since = {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[op]
    found = windows(g, rank, g.opset >= since)
    mode = auto(g, found)
    ceil = g.pick([None, 0, 1]) if g.opset >= (18 if op == "LpPool" else 10) else None
    if op == "MaxPool":
        outputs = 1 + (g.rarely() and g.opset >= 8)
        order = g.pick([None, 0, 1]) if outputs == 2 else None
        return g.node(op, [x], outputs, auto_pad=mode, ceil_mode=ceil, storage_order=order, **found)
    if op == "AveragePool":
        return g.node(op, [x], auto_pad=mode, ceil_mode=ceil, count_include_pad=g.pick([None, 0, 1]), **found)
    return g.node(op, [x], auto_pad=mode, ceil_mode=ceil, p=g.pick([None, 1, 2, 3]), **found)


@family("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(g: Draft, op: str) -> list[Tensor]:
    return g.node(op, [image(g, op)], p=g.pick([None, 1, 3]) if op == "GlobalLpPool" else None)


@family("MaxUnpool")
def max_unpool(g: Draft, op: str) -> list[Tensor]:
    rank = g.pick([2, 1, 3])
    kernel, strides = [2] * rank, [2] * rank
    x = g.tensor(g.types(op), shape=(g.integer(1, 2), g.integer(1, 3), *(2 * g.integer(1, 3) for _ in range(rank))))
    y, at = g.node("MaxPool", [x], 2, kernel_shape=kernel, strides=strides)
    shape = g.ints(*x.shape) if g.flag() else None
    return g.node(op, [y, at, shape], kernel_shape=kernel, strides=strides)


@family("LRN")
def lrn(g: Draft, op: str) -> list[Tensor]:
    return g.node(op, [g.tensor(g.types(op), (4, 4))], size=g.pick([1, 3, 5]), alpha=0.1 if g.flag() else None,
                  beta=0.6 if g.flag() else None, bias=1.5 if g.flag() else None)


@family("Upsample")
def upsample(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (4, 4))
    scales = [1.0, 1.0, float(g.integer(1, 3)), g.pick([1.0, 2.0, 1.5])]
    mode = g.pick([None, "nearest", "linear"])
    if g.opset < 9:
        return g.node(op, [x], mode=mode, scales=scales)
    return g.node(op, [x, g.const(np.array(scales, np.float32))], mode=mode)


@family("Resize")
def resize(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), (1, 5), low=0, high=9)
    mode = g.pick([None, "nearest", "linear", "cubic"] if g.opset >= 11 else [None, "nearest", "linear"])
    count = g.integer(1, min(x.rank, 3))
    axes = list(range(x.rank - count, x.rank))
    if mode == "cubic":
        axes = axes[-2:]
    scales = [g.pick([2.0, 1.0, 0.5, 1.5, 3.0, 0.75]) if i in axes else 1.0 for i in range(x.rank)]
    if g.opset < 11:
        return g.node(op, [x, g.const(np.array(scales, np.float32))], mode=mode)
    attrs = {"mode": mode}
    if mode in (None, "nearest"):
        attrs["nearest_mode"] = g.pick([None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    elif g.opset >= 18:
        attrs["antialias"] = g.pick([None, 0, 1])
    if mode == "cubic":
        attrs["cubic_coeff_a"] = g.pick([None, -0.5])
        attrs["exclude_outside"] = g.pick([None, 0, 1])
    modes = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"]
    attrs["coordinate_transformation_mode"] = g.pick([None, *modes] + (["half_pixel_symmetric"] if g.opset >= 19 else []))
    roi = None
    if attrs["coordinate_transformation_mode"] == "tf_crop_and_resize":
        ends = [(0.125, 0.75) if i in axes else (0.0, 1.0) for i in range(x.rank)]
        roi = g.const(np.array([e[0] for e in ends] + [e[1] for e in ends], np.float32))
        attrs["extrapolation_value"] = g.pick([None, 2.5])
    if g.opset >= 18 and g.flag():
        kept = axes
        attrs["axes"] = kept
        scales = [scales[a] for a in kept]
        if roi is not None:
            roi = g.const(roi.value.reshape(2, -1)[:, kept].reshape(-1))
    else:
        kept = list(range(x.rank))
    if g.flag():
        return g.node(op, [x, roi if roi or g.opset > 11 else g.const(np.zeros(0, np.float32)),
                           g.const(np.array(scales, np.float32))], **attrs)
    sizes = [max(int(x.shape[a] * s), 1) for a, s in zip(kept, scales)]
    if g.opset >= 18 and attrs["coordinate_transformation_mode"] != "tf_crop_and_resize":
        policies = [None, "stretch", "not_larger", "not_smaller"]
        attrs["keep_aspect_ratio_policy"] = g.pick(policies) if len(axes) == len(kept) else None
    if g.opset == 11:
        none = g.const(np.zeros(0, np.float32))
        return g.node(op, [x, roi or none, none, g.ints(*sizes)], **attrs)
    return g.node(op, [x, roi, None, g.ints(*sizes)], **attrs)


@family("GridSample")
def grid_sample(g: Draft, op: str) -> list[Tensor]:
    rank = g.pick([2, 3]) if g.opset >= 20 else 2
    n = g.integer(1, 2)
    x = g.tensor(g.types(op), shape=(n, g.integer(1, 3), *(g.integer(2, 5) for _ in range(rank))))
    grid = g.given(g.values(g.pick([np.float32]), (n, *(g.integer(1, 4) for _ in range(rank)), rank), -1.4, 1.4))
    modes = ["linear", "nearest", "cubic"] if g.opset >= 20 else ["bilinear", "nearest", "bicubic"]
    return g.node(op, [x, grid], mode=g.pick([None, *modes]), align_corners=g.pick([None, 0, 1]), fragile=True,
                  padding_mode=g.pick([None, "zeros", "border", "reflection"]))


@family("AffineGrid")
def affine_grid(g: Draft, op: str) -> list[Tensor]:
    rank, n = g.pick([2, 3]), g.integer(1, 2)
    theta = g.tensor(g.types(op), shape=(n, rank, rank + 1))
    return g.node(op, [theta, g.ints(n, g.integer(1, 3), *(g.integer(1, 4) for _ in range(rank)))],
                  align_corners=g.pick([None, 0, 1]))


def _boxes(g: Draft, count: int, dtype: np.dtype) -> np.ndarray:
    corners = g.values(dtype, (count, 2), 0, 4)
    return np.concatenate([corners, corners + g.values(dtype, (count, 2), 0.5, 6)], 1)


@family("RoiAlign")
def roi_align(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), shape=(g.integer(1, 2), g.integer(1, 3), g.integer(3, 6), g.integer(3, 6)))
    count = g.integer(0 if g.empty else 1, 3)
    batch = g.given(g.rng.integers(0, x.shape[0], count).astype(np.int64))
    return g.node(op, [x, g.given(_boxes(g, count, x.dtype)), batch], mode=g.pick([None, "avg", "max"]),
                  output_height=g.pick([None, 2]), output_width=g.pick([None, 3]), sampling_ratio=g.pick([None, 0, 1, 2]),
                  spatial_scale=g.pick([None, 0.75]), fragile=True,
                  coordinate_transformation_mode=g.pick([None, "half_pixel", "output_half_pixel"]) if g.opset >= 16 else None)


@family("MaxRoiPool")
def max_roi_pool(g: Draft, op: str) -> list[Tensor]:
    x = g.tensor(g.types(op), shape=(g.integer(1, 2), g.integer(1, 3), g.integer(4, 8), g.integer(4, 8)))
    count = g.integer(1, 3)
    rois = np.concatenate([g.rng.integers(0, x.shape[0], (count, 1)), np.round(_boxes(g, count, x.dtype))], 1).astype(x.dtype)
    return g.node(op, [x, g.given(rois)], pooled_shape=[g.integer(1, 3), g.integer(1, 3)], spatial_scale=g.pick([None, 0.5]))


__all__ = ["FLOATS"]
