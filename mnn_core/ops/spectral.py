"""Fourier transforms as ONNX has them (DFT 20, STFT 17). Complex numbers are pairs along a last dimension of 2."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Op, Spec
from ._args import axis_of
from ._rules import FLOAT32, as_array, known_int, optional, present, require_float, scalar
from .registry import Example, register


def _complex(x: np.ndarray) -> np.ndarray:
    """Pairs, or single real numbers, along the last axis as complex numbers without it."""
    x = x.astype(np.float64)
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]


def _pairs(x: np.ndarray) -> np.ndarray:
    return as_array(np.stack([x.real, x.imag], -1), FLOAT32)


def _signal(op: Op, x: Spec) -> None:
    require_float(op, x)
    if x.rank < 2 or x.shape[-1] not in (1, 2):
        raise ShapeError(f"{op}: input 0 is {x}; expected [batch, ..., 1] (real) or [batch, ..., 2] (complex)")


def _dft_axis(op: Op, rank: int, given: int) -> int:
    axis = axis_of(op, given, rank)
    if axis == rank - 1:
        raise ShapeError(f"{op}: axis {given} is the one of real and imaginary parts")
    return axis


def _points(op: Op, size: int) -> int:
    """How many points a transform has by itself; half a spectrum stands for an even number."""
    return 2 * (size - 1) if op["onesided"] and op["inverse"] else size


def _length(op: Op, length: int) -> int:
    if not 1 <= length < 2**31:
        raise ShapeError(f"{op}: transforms of {length} points; expected 1 or more")
    return length


def _dft_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    _signal(op, x)
    axis = _dft_axis(op, x.rank, known_int(op, inputs, 2) if optional(inputs, 2) is not None else -2)
    length = _length(op, known_int(op, inputs, 1) if optional(inputs, 1) is not None else _points(op, x.shape[axis]))
    if op["onesided"] and op["inverse"]:
        return [Spec((*x.shape[:axis], length, *x.shape[axis + 1:-1], 1), FLOAT32)]
    if op["onesided"]:
        if x.shape[-1] != 1:
            raise ShapeError(f"{op}: a onesided transform needs a real input; found {x}")
        length = length // 2 + 1
    return [Spec((*x.shape[:axis], length, *x.shape[axis + 1:-1], 2), FLOAT32)]


@register("onnx.DFT", attrs={"inverse": False, "onesided": False}, infer=_dft_infer, content=(1, 2), examples=[
    Example({}, [Spec((2, 10, 3, 1), FLOAT32), None, np.array(1, np.int32)], 1e-4),
    Example({"onesided": True}, [Spec((2, 9, 1), FLOAT32)], 1e-4, "onesided"),
    Example({"inverse": True}, [Spec((2, 8, 2), FLOAT32), np.array(12, np.int32), np.array(-2, np.int32)], 1e-4, "padded"),
    Example({"inverse": True, "onesided": True}, [Spec((2, 5, 2), FLOAT32), np.array(9, np.int32)], 1e-4, "real"),
])
def dft(op: Op, x: np.ndarray, length: np.ndarray | None = None, axis: np.ndarray | None = None) -> np.ndarray:
    """The transform of x [batch, ..., 1 or 2] along an axis (input 2, default -2), cut or filled with zeros to a length.

    `inverse` divides by the length. `onesided`: only the first half of the spectrum of a real signal comes out; with
    `inverse` it goes in, and a real signal [..., 1] comes out.
    """
    at = _dft_axis(op, x.ndim, -2 if axis is None else scalar(op, axis, "the axis"))
    signal = _complex(x)
    points = _points(op, x.shape[at]) if length is None else scalar(op, length, "the length")
    if op["onesided"] and op["inverse"]:
        return as_array(np.fft.irfft(signal, points, at)[..., None], FLOAT32)
    if op["onesided"]:
        return _pairs(np.fft.rfft(signal.real, points, at))
    return _pairs((np.fft.ifft if op["inverse"] else np.fft.fft)(signal, points, at))


def _stft_sizes(op: Op, inputs: Sequence[Spec | None]) -> tuple[int, int, int]:
    """(step, frame length, frames)."""
    x, window = present(op, inputs), optional(inputs, 2)
    step = known_int(op, inputs, 1)
    if optional(inputs, 3) is not None:
        length = known_int(op, inputs, 3)
    elif window is not None:
        length = window.shape[0] if window.rank == 1 else 0
    else:
        raise ShapeError(f"{op}: neither a window nor a frame length is given")
    if step < 1 or not 1 <= length <= x.shape[1] or (window is not None and window.shape != (length,)):
        raise ShapeError(f"{op}: frames of {length}, every {step}, window {window}, do not fit a signal {x}")
    return step, length, (x.shape[1] - length) // step + 1


def _stft_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    x = present(op, inputs)
    if x.rank == 2:
        x = x.with_shape((*x.shape, 1))
    _signal(op, x)
    if x.rank != 3:
        raise ShapeError(f"{op}: input 0 is {x}; expected [batch, samples], or [batch, samples, 1 or 2]")
    if op["onesided"] and x.shape[-1] != 1:
        raise ShapeError(f"{op}: a onesided transform needs a real input; found {x}")
    _, length, frames = _stft_sizes(op, inputs)
    return [Spec((x.shape[0], frames, length // 2 + 1 if op["onesided"] else length, 2), FLOAT32)]


@register("onnx.STFT", attrs={"onesided": True}, infer=_stft_infer, content=(1, 3), examples=[
    Example({}, [Spec((2, 30, 1), FLOAT32), np.array(4, np.int32), np.hanning(9).astype(np.float32)], 1e-4),
    Example({}, [Spec((1, 20), FLOAT32), np.array(3, np.int32), None, np.array(6, np.int32)], 1e-4, "flat"),
    Example({"onesided": False}, [Spec((2, 30, 2), FLOAT32), np.array(5, np.int32), None, np.array(8, np.int32)], 1e-4,
            "complex"),
])
def stft(op: Op, x: np.ndarray, step: np.ndarray, window: np.ndarray | None = None,
         length: np.ndarray | None = None) -> np.ndarray:
    """Transforms of frames of x [batch, samples] or [batch, samples, 1 or 2]: [batch, frames, points, 2].

    Frame i begins at i * step. `onesided`: only the first half of the spectrum. What is left at the end is dropped.
    """
    hop, points, frames = _stft_sizes(op, [None if a is None else Spec.of(a) for a in (x, step, window, length)])
    signal = _complex(x if x.ndim == 3 else x[..., None])
    cut = np.lib.stride_tricks.sliding_window_view(signal, points, 1)[:, ::hop][:, :frames]
    if window is not None:
        cut = cut * window.astype(np.float64)
    return _pairs(np.fft.rfft(cut.real, axis=-1) if op["onesided"] else np.fft.fft(cut, axis=-1))


def _stft_of(op: Op) -> Op:
    return Op("onnx.STFT", op.inputs, op.outputs, {"onesided": op["abs"]}, name=op.name)


def _mnn_stft_infer(op: Op, inputs: Sequence[Spec | None]) -> list[Spec]:
    window = present(op, inputs, 2)
    given = [*inputs[:2], *((None, window) if window.rank == 0 else (window,))]
    return _stft_infer(_stft_of(op), given)


@register("Stft", param="StftParam", infer=_mnn_stft_infer, content=(1,), examples=[
    Example({"abs": True}, [Spec((2, 30, 1), FLOAT32), np.array(4, np.int32), np.hanning(9).astype(np.float32)], 1e-4),
    Example({"abs": False}, [Spec((1, 40, 1), FLOAT32), np.array(5, np.int32), np.hanning(16).astype(np.float32)], 1e-4,
            "whole"),
])
def mnn_stft(op: Op, x: np.ndarray, step: np.ndarray, window: np.ndarray) -> np.ndarray:
    """MNN's STFT: of a real signal [batch, samples, 1], with a window, or a frame length of rank 0. `abs` is `onesided`."""
    return stft(_stft_of(op), x, step, *((None, window) if window.ndim == 0 else (window,)))
