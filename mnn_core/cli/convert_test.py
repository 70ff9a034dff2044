"""What --testdir does: runs a converted model on stored inputs, and compares with stored outputs, as MNNConvert does.

The folder holds input.json, {"inputs": [{"name": "x", "shape": [1, 3, 4, 4]}], "outputs": ["y"]}, and the numbers of each
tensor as text in NAME.txt.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..ir import Graph
from ..session import load
from ..testing.differences import difference


def _numbers(folder: Path, name: str, dtype: Any) -> np.ndarray:
    path = folder / f"{name.replace('/', '_').replace(':', '_')}.txt"
    if not path.is_file():
        path = folder / f"{name}.txt"
    try:
        return np.array(path.read_text().split(), np.float64).astype(dtype)
    except (OSError, ValueError) as error:
        raise InputError(f"the numbers of {name!r} cannot be read from {str(path)!r}: {error}") from error


def check(graph: Graph, folder: Path, config: str | None, threshold: float) -> str:
    """What is wrong with the outputs; "" if nothing is. Raises InputError for a folder of another kind."""
    try:
        told = json.loads((folder / "input.json").read_text())
        settings = json.loads(Path(config).read_text()) if config else {}
        inputs = {entry["name"]: [int(d) for d in entry["shape"]] for entry in told["inputs"]}
        outputs = [str(name) for name in told["outputs"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{str(folder)!r} holds no test: {error!r}; expected input.json with inputs and outputs") from error
    dtypes = {i.name: i.dtype or np.dtype(np.float32) for i in graph.inputs}
    unknown = [n for n in (*inputs, *outputs) if n not in dtypes and n not in {o.name for o in graph.outputs}]
    if unknown:
        raise InputError(f"{str(folder)!r} names {unknown[0]!r}, which is no input or output of the model")
    feeds = {}
    for name, shape in inputs.items():
        values = _numbers(folder, name, dtypes[name])
        if values.size != np.prod(shape, dtype=np.int64):
            raise InputError(f"{name}.txt holds {values.size} numbers, which do not fill its shape {shape}")
        feeds[name] = values.reshape(shape)
    allowed = {k: settings[k] for k in ("backend", "threads", "precision") if k in settings}
    results = load(graph, **{"backend": "cpu", **allowed}).run(feeds, outputs)
    for name in outputs:
        ours = np.asarray(results[name])
        expected = _numbers(folder, name, np.float64)
        if expected.size != ours.size:
            return f"test {folder}: output {name!r} has {ours.size} numbers, {expected.size} are stored"
        found = difference(name, ours.reshape(-1), expected)
        if not found.within(threshold):
            return f"test {folder}: output {name!r} differs by {found.error:.3g} (allowed {threshold:g})"
    return ""
