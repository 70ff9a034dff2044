"""ImageDecoder: encoded images to pixels, by Pillow."""

from __future__ import annotations

import io

import numpy as np

from ..errors import KernelError
from ..ir import Op
from .registry import register

_MODES = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}


@register("onnx.ImageDecoder", attrs={"pixel_format": "RGB"}, dynamic=True)
def image_decoder(op: Op, data: np.ndarray) -> np.ndarray:
    """The bytes of an image file, uint8 [n], as uint8 [height, width, channels]; formats are those of Pillow.

    pixel_format: "RGB", "BGR" or "Grayscale". Raises KernelError for damaged images, and where Pillow is missing.
    """
    if op["pixel_format"] not in _MODES:
        raise KernelError(f"{op}: pixel_format is {op['pixel_format']!r}; expected one of {', '.join(_MODES)}")
    try:
        from PIL import Image
    except ImportError as error:
        raise KernelError(f"{op} needs Pillow: pip install 'mnn-core[images]'") from error
    try:
        with Image.open(io.BytesIO(data.astype(np.uint8).tobytes())) as image:
            pixels = np.asarray(image.convert(_MODES[op["pixel_format"]]), np.uint8)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise KernelError(f"{op}: its {data.size} bytes are no image: {error}") from error
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    return np.ascontiguousarray(pixels[:, :, ::-1] if op["pixel_format"] == "BGR" else pixels)
