"""The networks exported from PyTorch (tests/data/torch/make.py), and inputs of several sizes for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "data" / "torch"

#: "resnet_ts17", ...: a network, and the exporter and operator set it was written with.
NAMES = sorted(p.stem for p in FOLDER.glob("*.onnx"))

#: What onnxruntime cannot run (its Attention refuses a mask that broadcasts) -> the same network in another style.
SAME = {"translator_dyn23": "translator_dyn18"}
#: Kinds that an exporter fixed the length of: it unrolls a plain RNN, and writes the length of the example into a reshape.
_FIXED = {("rnn_states", "dyn"), ("lstm_states", "dyn")}
#: Kinds that the TorchScript exporter fixed all sizes of: it takes what PyTorch's own attention layer works out for constant.
_FROZEN = {("translator", "ts")}

Feed = dict[str, np.ndarray]


def path(name: str) -> Path:
    """The ONNX file of a network."""
    return FOLDER / f"{name}.onnx"


def feeds(name: str) -> list[Feed]:
    """Inputs for a network: batches of 1 to 3, several lengths, odd image sizes; the first sizes come back at the end."""
    kind, style = name.rsplit("_", 1)
    found = list(_feeds(kind, np.random.default_rng(5), (kind, style.rstrip("0123456789"))))
    if style == "half":
        found = [{n: v.astype(np.float16) if v.dtype.kind == "f" else v for n, v in feed.items()} for feed in found]
    return [*found, {n: v[..., ::-1].copy() if v.dtype.kind == "f" and v.ndim else v for n, v in found[0].items()}]


def _feeds(kind: str, rng: np.random.Generator, exporter: tuple[str, str]) -> Iterator[Feed]:
    def floats(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    def ids(high: int, *shape: int) -> np.ndarray:
        return rng.integers(0, high, shape)

    images = {"resnet": 3, "mobilenet": 3, "unet": 1, "vit": 3, "detector": 3, "warp": 2, "styler": 3}
    if kind in images:
        batches = (1, 1, 1) if kind == "detector" else (2, 1, 3)
        for n, size in zip(batches, ((32, 40), (45, 37), (24, 64))):
            yield {"image": rng.random((n, images[kind], *size), np.float32)}
    elif kind == "window":
        for n in (2, 1, 3):
            yield {"image": rng.random((n, 3, 16, 24), np.float32)}
    elif kind == "video":
        for n, frames in ((2, 6), (1, 9), (3, 4)):
            yield {"clip": floats(n, 2, frames, 12, 14)}
    elif kind in ("spectral", "framed"):
        for n, length in ((2, 400), (1, 333), (3, 1000)):
            yield {"samples": floats(n, length)}
    elif kind == "decoder":
        for n, length, past in ((2, 3, 5), (1, 6, 0), (3, 1, 9), (1, 1, 1)):
            mask = np.ones((n, length + past), np.int64)
            mask[0, :past // 2] = 0
            cache: dict[str, Any] = {k: floats(n, 2, past, 4) for k in ("k0", "v0", "k1", "v1")}
            yield {"input_ids": ids(48, n, length), "attention_mask": mask, **cache}
    elif kind in ("script", "control"):
        for length, limit in ((5, 0.3), (1, 0.01), (8, 0.6), (3, 9.0)):
            yield {"x": floats(length, 2, 4), "limit": np.array(limit, np.float32)}
    else:
        sizes = ((2, 7), (1, 7), (3, 7)) if exporter in _FIXED else ((2, 7), (1, 12), (3, 4))
        for n, length in sizes[:1] if exporter in _FROZEN else sizes:
            yield _texts(kind, n, length, floats, ids)


def _texts(kind: str, n: int, length: int, floats: Any, ids: Any) -> Feed:
    if kind == "bert":
        mask = (np.arange(length) < length - np.arange(n)[:, None]).astype(np.int64)
        return {"input_ids": ids(64, n, length), "attention_mask": mask, "token_type_ids": ids(2, n, length)}
    if kind in ("lstm", "gru"):
        return {"words": ids(50, n, length)}
    if kind == "lstm_states":
        return {"x": floats(length, n, 5), "h": floats(3, n, 6), "c": floats(3, n, 6)}
    if kind == "rnn_states":
        return {"x": floats(length, n, 5), "h": floats(3, n, 6)}
    if kind == "packed":
        return {"x": floats(n, length, 4), "lengths": np.maximum(length - 2 * np.arange(n), 1)}
    if kind == "translator":
        source = ids(40, n, length)
        source[:, 0] = 7  # never padding alone
        return {"source": source, "target": ids(40, n, length - 2)}
    if kind == "index":
        return {"x": floats(n, length, 4), "at": ids(min(6, length), n, 3)}
    raise KeyError(kind)
