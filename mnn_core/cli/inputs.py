"""Inputs of models from the command line: files, images, text, or random data of a given shape."""

from __future__ import annotations

import argparse
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..ir import TensorInfo

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".gif", ".tif", ".tiff")


def add_input_options(parser: argparse.ArgumentParser) -> None:
    """Options from which `read_inputs` makes the inputs."""
    group = parser.add_argument_group("inputs", "what is not given is random, of the model's own shape")
    group.add_argument("--input", "-i", action="append", default=[], metavar="[NAME=]FILE",
                       help=".npy, .npz (all inputs by name), an image, or .txt (numbers); may repeat")
    group.add_argument("--shape", "-s", action="append", default=[], metavar="[NAME=]1,3,224,224",
                       help="random input of this shape; may repeat")
    group.add_argument("--seed", type=int, default=0, help="of random inputs")
    group.add_argument("--mean", type=float, nargs="+", default=[0.0], help="subtracted from image channels (0-255)")
    group.add_argument("--std", type=float, nargs="+", default=[255.0], help="by which image channels are divided")
    group.add_argument("--bgr", action="store_true", help="give image channels in the order blue, green, red")


def _split(item: str, infos: Sequence[TensorInfo], option: str) -> tuple[TensorInfo, str]:
    name, found, value = item.partition("=")
    if not found:
        if len(infos) != 1:
            raise InputError(f"--{option} {item}: the model has {len(infos)} inputs ({', '.join(i.name for i in infos)}); "
                             f"say NAME={item}")
        return infos[0], item
    info = next((i for i in infos if i.name == name), None)
    if info is None:
        raise InputError(f"--{option} {item}: the model has no input {name!r}; it has {', '.join(i.name for i in infos)}")
    return info, value


def _image(path: str, info: TensorInfo, args: argparse.Namespace) -> np.ndarray:
    """An image as the model's input (N=1), resized to its height and width; NHWC if its last dimension is 1, 3 or 4."""
    try:
        from PIL import Image
    except ImportError as error:
        raise InputError(f"{path}: images need Pillow: pip install pillow") from error
    shape = info.shape or (1, 3, None, None)
    if len(shape) != 4:
        raise InputError(f"{path}: input {info} is no image: it has {len(shape)} dimensions, an image 4")
    last = shape[3] in (1, 3, 4) and shape[1] not in (1, 3, 4)
    channels, (height, width) = (shape[3], shape[1:3]) if last else (shape[1], shape[2:4])
    modes = {1: "L", 3: "RGB", 4: "RGBA", None: "RGB"}
    if channels not in modes:
        raise InputError(f"{path}: input {info} has {channels} channels; an image gives 1, 3 or 4")
    with Image.open(path) as opened:
        image = opened.convert(modes[channels])
    image = image.resize((width or image.width, height or image.height), Image.Resampling.BILINEAR)
    pixels = np.asarray(image).reshape(image.height, image.width, -1)
    if args.bgr:
        pixels = pixels[:, :, ::-1]
    if info.dtype is None or info.dtype.kind == "f":
        pixels = ((pixels - np.float32(args.mean)) / np.float32(args.std)).astype(info.dtype or np.float32)
    return (pixels if last else pixels.transpose(2, 0, 1))[None]


def _readable(path: str, read: Callable[..., Any], *arguments: Any) -> Any:
    """What `read` gives; an InputError that names the file if it is damaged."""
    try:
        return read(path, *arguments)
    except (ValueError, EOFError, zipfile.BadZipFile, SyntaxError) as error:  # SyntaxError: some damaged images
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path!r} cannot be read as an input: {error}") from error


def _npz(path: str) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive.items())


def _file(path: str, info: TensorInfo, args: argparse.Namespace) -> np.ndarray:
    suffix = Path(path).suffix.lower()
    if suffix in IMAGES:
        return _image(path, info, args)
    if suffix == ".npy":
        return np.load(path, allow_pickle=False)
    if suffix == ".txt":
        flat = np.array(Path(path).read_text().replace(",", " ").split(), info.dtype or np.float32)
        unknown = [d for d in info.shape or () if d is None]
        if info.shape is None or len(unknown) > 1:
            return flat
        return flat.reshape([-1 if d is None else d for d in info.shape])
    raise InputError(f"{path}: cannot read {suffix or 'this kind of file'} as an input; known: .npy .npz .txt "
                     f"{' '.join(IMAGES)}")


def random_input(shape: Sequence[int], dtype: np.dtype | None, rng: np.random.Generator) -> np.ndarray:
    """Random data: normal for floats, small non-negative numbers for integers."""
    kind = np.dtype(dtype or np.float32)
    if kind.kind == "f":
        return rng.standard_normal(tuple(shape)).astype(kind)
    return rng.integers(0, 2 if kind.kind == "b" else 10, tuple(shape)).astype(kind)


def read_inputs(infos: Sequence[TensorInfo], args: argparse.Namespace) -> dict[str, Any]:
    """Inputs by name, from the options of `add_input_options`.

    Unknown dimensions of inputs that no option mentions are taken as 1. Raises InputError.
    """
    feeds: dict[str, Any] = {}
    for item in args.input:
        if item.lower().endswith(".npz") and "=" not in item:
            feeds.update(_readable(item, _npz))
            continue
        info, path = _split(item, infos, "input")
        feeds[info.name] = _readable(path, _file, info, args)
    rng = np.random.default_rng(args.seed)
    shapes = {info.name: text for info, text in (_split(item, infos, "shape") for item in args.shape)}
    for info in infos:
        if info.name in feeds:
            continue
        try:
            given = [int(d) for d in shapes[info.name].split(",") if d] if info.name in shapes else None
        except ValueError as error:
            raise InputError(f"--shape {shapes[info.name]}: expected whole numbers and commas") from error
        if given is None and info.shape is None:
            raise InputError(f"input {info} has no known rank; give it with --input or --shape")
        shape = given if given is not None else [d or 1 for d in info.shape or ()]
        try:
            feeds[info.name] = random_input(shape, info.dtype, rng)
        except (ValueError, MemoryError) as error:
            raise InputError(f"input {info}: no array can have shape {shape}: {error}") from error
    return feeds
