"""The real MNN, in a virtual environment of its own: it brings scripts with our names, and must not see our packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

WORKER = Path(__file__).parent / "mnn_worker.py"
VERSION = "3.6.1"

Feeds = Sequence[Mapping[str, np.ndarray]]


def peer_python() -> str:
    """Interpreter of an environment that has MNN: $MNN_PEER_PYTHON, or one made once beside the test assets."""
    if "MNN_PEER_PYTHON" in os.environ:
        return os.environ["MNN_PEER_PYTHON"]
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "mnn-core" / "assets"
    folder = Path(os.environ.get("MNN_ASSETS", default)) / f"peer-{VERSION}-py{sys.version_info[0]}{sys.version_info[1]}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", f"MNN=={VERSION}", "numpy"], check=True)
        (folder / "complete").touch()
    return str(python)


class PeerError(RuntimeError):
    """The real MNN failed, or crashed."""


def ask(request: Mapping[str, Any]) -> Any:
    """Sends one request to mnn_worker.py in a process of its own (the real MNN may crash)."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run([peer_python(), str(WORKER)], input=json.dumps(request), capture_output=True, text=True, env=env)
    if done.returncode:
        raise PeerError(f"{request['do']}: exit code {done.returncode}: {(done.stderr or done.stdout)[-600:]}")
    return json.loads(done.stdout.splitlines()[-1])


def convert(source: Path, variants: Mapping[Path, Sequence[str]]) -> None:
    """Real mnnconvert of one ONNX file into several targets, each with its own options."""
    ask({"do": "convert", "source": str(source), "variants": {str(t): list(o) for t, o in variants.items()}})


def tool(arguments: Sequence[str]) -> None:
    """Real mnnconvert with any arguments."""
    ask({"do": "tool", "arguments": list(arguments)})


def run(path: Path, feeds: Feeds, outputs: Sequence[str], folder: Path) -> list[list[np.ndarray]]:
    """Runs a .mnn file in the real engine on several feeds; returns the outputs of each."""
    ask(_run_request(path, feeds, outputs, folder))
    return _results(folder, len(feeds), len(outputs))


def convert_many(targets: Mapping[Path, Path], folder: Path) -> list[str]:
    """Real mnnconvert of ONNX files, each in a process of its own; returns for each an empty text, or what went wrong."""
    requests = [{"do": "convert", "source": str(s), "variants": {str(t): []}} for s, t in targets.items()]
    return ask({"do": "many", "requests": requests, "folder": str(folder)})


def run_many(jobs: Sequence[tuple[Path, Feeds, Sequence[str]]], folder: Path) -> list[list[list[np.ndarray]] | str]:
    """`run` of several (path, feeds, outputs), each in a process of its own; a text instead of results says what went wrong."""
    folders = [folder / f"job{i}" for i in range(len(jobs))]
    for each in folders:
        each.mkdir()
    requests = [_run_request(*job, each) for job, each in zip(jobs, folders)]
    failures = ask({"do": "many", "requests": requests, "folder": str(folder)})
    return [failure or _results(each, len(job[1]), len(job[2])) for failure, each, job in zip(failures, folders, jobs)]


def _run_request(path: Path, feeds: Feeds, outputs: Sequence[str], folder: Path) -> dict[str, Any]:
    for i, feed in enumerate(feeds):
        np.savez(folder / f"feed{i}.npz", **{str(j): v for j, v in enumerate(feed.values())})
    return {"do": "run", "model": str(path), "inputs": list(feeds[0]), "outputs": list(outputs), "folder": str(folder),
            "count": len(feeds)}


def _results(folder: Path, count: int, outputs: int) -> list[list[np.ndarray]]:
    results = []
    for i in range(count):
        with np.load(folder / f"result{i}.npz") as archive:
            results.append([archive[str(j)] for j in range(outputs)])
    return results
