"""Where the windows of convolutions and poolings lie: kernel, stride, dilation and padding per MNN's rules, resolved.

All tuples have one number per spatial dimension, outermost first: (height, width) or (depth, height, width).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ShapeError
from ..ir import Op

Ints = tuple[int, ...]


@dataclass(frozen=True)
class Window:
    """A window before the input size is known. pads: begins, then ends; mode: "CAFFE" (use pads), "VALID" or "SAME"."""

    kernel: Ints
    strides: Ints
    dilations: Ints
    pads: Ints
    mode: str = "CAFFE"

    @property
    def extent(self) -> Ints:
        """Input elements that a window spans."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilations))


@dataclass(frozen=True)
class Geometry:
    """A window over an input: elements `begins` before and `ends` after the input are padding, `output` windows fit.

    Tap t of window o reads input element o * stride + t * dilation - begin. Of a transposed convolution, input element i adds
    to output element i * stride + t * dilation - begin, and `output` is the size of the result.
    """

    kernel: Ints
    strides: Ints
    dilations: Ints
    begins: Ints
    ends: Ints
    input: Ints
    output: Ints


def convolution_window(op: Op, kernel: Sequence[int]) -> Window:
    """The window of a (transposed) convolution, 2-D or 3-D, whose weight has a kernel of that size.

    Raises ShapeError if the attributes are inconsistent with each other or with the kernel.
    """
    kernel = tuple(kernel)
    n = len(kernel)
    if n == 3:
        declared = tuple(op["kernels"]) if "kernels" in op.attrs else ()
        strides, dilations, pads = tuple(op["strides"]), tuple(op["dilates"]), tuple(op["pads"])
    else:
        declared = (op["kernelY"], op["kernelX"]) if "kernelX" in op.attrs or "kernelY" in op.attrs else ()
        strides, dilations = (op["strideY"], op["strideX"]), (op["dilateY"], op["dilateX"])
        pads = tuple(op["pads"]) or (op["padY"], op["padX"])
    if declared and declared != kernel:
        raise ShapeError(f"{op}: its attributes tell a kernel of {list(declared)}, its weight has one of {list(kernel)}")
    return checked(op, Window(kernel, strides or (1,) * n, dilations or (1,) * n, both_ends(op, pads, n), op["padMode"]))


def both_ends(op: Op, pads: Sequence[int], n: int) -> Ints:
    """Pads of n dimensions as begins and ends; n numbers are those of both ends. Raises ShapeError for other counts."""
    pads = tuple(pads) or (0,) * n
    if len(pads) not in (n, 2 * n):
        raise ShapeError(f"{op}: pads {list(pads)} for {n} spatial dimensions; expected {n} or {2 * n} numbers")
    return pads * (2 * n // len(pads))


def checked(op: Op, w: Window) -> Window:
    """The window. Raises ShapeError if its parts differ in length, or are not positive."""
    n = len(w.kernel)
    if len(w.strides) != n or len(w.dilations) != n or min(*w.kernel, *w.strides, *w.dilations) < 1 or min(w.pads) < 0:
        raise ShapeError(f"{op}: kernel {list(w.kernel)}, strides {list(w.strides)}, dilations {list(w.dilations)} and pads "
                         f"{list(w.pads)} do not make a window; sizes must be 1 or more, pads 0 or more, for {n} dimensions")
    if w.mode not in ("CAFFE", "VALID", "SAME"):
        raise ShapeError(f"{op}: unknown padding mode {w.mode!r}; expected CAFFE, VALID or SAME")
    return w


def same_pads(w: Window, size: Ints) -> tuple[Ints, Ints]:
    """TensorFlow's SAME: as much padding as ceil(size / stride) windows need, the odd element at the end."""
    totals = [max((-(-i // s) - 1) * s + e - i, 0) for i, s, e in zip(size, w.strides, w.extent)]
    return tuple(t // 2 for t in totals), tuple(t - t // 2 for t in totals)


def convolve(op: Op, w: Window, size: Sequence[int]) -> Geometry:
    """A window over an input of a size. Raises ShapeError if not one window fits."""
    size, n = tuple(size), len(w.kernel)
    if w.mode == "SAME":
        begins, ends = same_pads(w, size)
    elif w.mode == "VALID":
        begins = ends = (0,) * n
    else:
        begins, ends = w.pads[:n], w.pads[n:]
    room = [i + b + e - x for i, b, e, x in zip(size, begins, ends, w.extent)]
    if w.mode != "SAME" and min(room) < 0:
        raise ShapeError(f"{op}: a window of {list(w.kernel)} with dilations {list(w.dilations)} does not fit an input of "
                         f"{list(size)} padded by {list(begins)} and {list(ends)}")
    output = tuple(-(-i // s) if w.mode == "SAME" else r // s + 1 for i, r, s in zip(size, room, w.strides))
    return Geometry(w.kernel, w.strides, w.dilations, begins, ends, size, output)


def transpose(op: Op, w: Window, size: Sequence[int], wanted: Sequence[int] | None = None) -> Geometry:
    """A transposed convolution's window over an input of a size.

    wanted: the size of the result, if told; otherwise SAME gives size * stride, other modes what pads and `outPads` leave.
    Raises ShapeError if nothing is left.
    """
    size, n = tuple(size), len(w.kernel)
    full = tuple((i - 1) * s + e if i else 0 for i, s, e in zip(size, w.strides, w.extent))
    pads = w.pads if w.mode == "CAFFE" else (0,) * (2 * n)
    if wanted is not None:
        output = tuple(int(v) for v in wanted)
    elif w.mode == "SAME":
        output = tuple(i * s for i, s in zip(size, w.strides))
    else:
        extra = tuple(op["outPads"]) or (0,) * n
        if len(extra) != n:
            raise ShapeError(f"{op}: outPads {list(extra)} for {n} spatial dimensions")
        output = tuple(f - b - e + x for f, b, e, x in zip(full, pads[:n], pads[n:], extra))
    begins = tuple(max(f - o, 0) // 2 for f, o in zip(full, output)) if w.mode == "SAME" else pads[:n]
    if min(output) < 0 or (min(output) == 0 and 0 not in size):
        raise ShapeError(f"{op}: a transposed convolution of {list(size)} with kernel {list(w.kernel)}, strides "
                         f"{list(w.strides)} and pads {list(pads)} leaves a result of {list(output)}")
    ends = tuple(f - b - o for f, b, o in zip(full, begins, output))
    return Geometry(w.kernel, w.strides, w.dilations, begins, ends, size, output)
