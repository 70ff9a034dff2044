"""Races inference engines on the same networks, side by side in one run.

    python race.py [--engines mnn_core mnn ort openvino] [--models ...] [--threads 1] [--rounds 7] [--json FILE]

Each engine lives in its own process, pinned to the same cores; the engines take turns, round by
round, so that a change in the machine's speed hits all alike. A row gives each engine's median
milliseconds for one inference, and the ratio of the first engine to the fastest other one
(below 1.00: the first engine wins). The worst relative error against onnxruntime is printed too:
an engine that is fast and wrong has lost.

Engines come from PyPI: `pip install MNN onnxruntime openvino onnx`, in a virtual environment of their own that
--peer-python names (any that is missing is left out).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import zoo


def load_ort(path, threads):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"input": x})[0]


def load_openvino(path, threads):
    import openvino as ov
    core = ov.Core()
    model = core.compile_model(str(path), "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                                                 "INFERENCE_PRECISION_HINT": "f32"})
    request = model.create_infer_request()
    return lambda x: request.infer([x], share_inputs=True)[0]


def load_mnn(path, threads):
    target = Path(path).with_suffix(".peer.mnn")
    if not target.exists():
        import _tools  # real MNN's converter without its command-line script, which runs pip and telemetry
        _tools.mnnconvert(["mnnconvert", "-f", "ONNX", "--modelFile", str(path), "--MNNModel", str(target), "--bizCode", "race"])
    import MNN
    config = {"backend": "CPU", "numThread": threads, "precision": "high"}
    runtime = MNN.nn.create_runtime_manager((config,))
    module = MNN.nn.load_module_from_file(str(target), ["input"], ["output"], runtime_manager=runtime)

    def run(x):
        kind = MNN.expr.int if x.dtype.kind == "i" else MNN.expr.float
        v = MNN.expr.const(x.astype(np.int32) if x.dtype.kind == "i" else x, x.shape, MNN.expr.NCHW, kind)
        y = module.forward([v])[0]
        return MNN.expr.convert(y, MNN.expr.NCHW).read()
    return run


def load_mnn_core(path, threads):
    import mnn_core
    target = Path(path).with_suffix(".ours.mnn")
    mnn_core.convert(path, target)
    model = mnn_core.load(target, backend=os.environ.get("RACE_BACKEND", "auto"), threads=threads)
    return lambda x: model.run({"input": x})["output"]


LOADERS = {"mnn_core": load_mnn_core, "mnn": load_mnn, "ort": load_ort, "openvino": load_openvino}


PEER_PYTHON = None              # the interpreter of the peers' virtual environment


def worker(engine, name, path, threads):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    out = os.fdopen(os.dup(1), "w")                 # engines may print on stdout: keep the pipe apart
    os.dup2(2, 1)
    began = time.perf_counter()
    run, x = LOADERS[engine](path, threads), zoo.sample_input(name)
    y = np.array(run(x))
    np.save(os.environ["RACE_OUT"], y)
    load_ms = (time.perf_counter() - began) * 1e3
    for _ in range(3):
        run(x)
    print(json.dumps({"load_ms": load_ms}), file=out, flush=True)
    for _ in sys.stdin:
        times, until = [], time.perf_counter() + 0.8
        while len(times) < 3 or time.perf_counter() < until:
            start = time.perf_counter()
            run(x)
            times.append(time.perf_counter() - start)
        print(json.dumps(statistics.median(times) * 1e3), file=out, flush=True)


def race(engines, name, path, threads, rounds):
    with tempfile.TemporaryDirectory() as tmp:
        workers, load = {}, {}
        for engine in engines:
            env = dict(os.environ, RACE_OUT=f"{tmp}/{engine}.npy", OMP_NUM_THREADS=str(threads))
            python = PEER_PYTHON if engine != "mnn_core" and PEER_PYTHON else sys.executable
            p = subprocess.Popen([python, __file__, "--worker", engine, name, str(path), str(threads)],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE if engine != "mnn_core" else None,
                                 text=True, env=env)
            line = p.stdout.readline()
            if not line:
                print(f"  {engine}: failed to load {name}: {(p.stderr.read() if p.stderr else '').strip()[-300:]}")
                continue
            workers[engine], load[engine] = p, json.loads(line)["load_ms"]
        times = {e: [] for e in workers}
        for _ in range(rounds):
            for engine, p in workers.items():
                p.stdin.write("go\n"); p.stdin.flush()
                times[engine].append(float(p.stdout.readline()))
        for p in workers.values():
            p.stdin.close(); p.wait()
        outputs = {e: np.load(f"{tmp}/{e}.npy") for e in workers}
    ref = outputs.get("ort")
    error = {e: float(np.abs(y.reshape(-1) - ref.reshape(-1)).max() / (np.abs(ref).max() + 1e-9))
             if ref is not None and y.size == ref.size else float("nan") for e, y in outputs.items()}
    return {"model": name, "threads": threads, "ms": {e: statistics.median(t) for e, t in times.items()},
            "load_ms": load, "error": error}


def main():
    if sys.argv[1:2] == ["--worker"]:
        return worker(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--engines", nargs="+", default=list(LOADERS), choices=list(LOADERS))
    ap.add_argument("--models", nargs="+", default=list(zoo.MODELS), choices=list(zoo.MODELS))
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--rounds", type=int, default=7)
    ap.add_argument("--folder", default="/tmp/zoo", help="where the models are built and kept")
    ap.add_argument("--json", help="append the rows to this file")
    ap.add_argument("--peer-python", help="interpreter of the virtual environment that holds the peers (real MNN's scripts clash with ours)")
    a = ap.parse_args()
    global PEER_PYTHON
    PEER_PYTHON = a.peer_python
    rows = []
    print(f"{'model':16}" + "".join(f"{e:>12}" for e in a.engines) + "   first/best other   worst error")
    for name in a.models:
        row = race(a.engines, name, zoo.build(name, a.folder), a.threads, a.rounds)
        rows.append(row)
        others = [v for e, v in row["ms"].items() if e != a.engines[0]]
        ratio = row["ms"][a.engines[0]] / min(others) if others and a.engines[0] in row["ms"] else float("nan")
        print(f"{name:16}" + "".join(f"{row['ms'].get(e, float('nan')):10.2f}ms" for e in a.engines)
              + f"   {ratio:16.2f}   " + " ".join(f"{e}:{v:.0e}" for e, v in row["error"].items()), flush=True)
    if a.json:
        with open(a.json, "a") as f:
            f.writelines(json.dumps(r) + "\n" for r in rows)
    ratios = [r["ms"][a.engines[0]] / min(v for e, v in r["ms"].items() if e != a.engines[0]) for r in rows
              if a.engines[0] in r["ms"] and len(r["ms"]) > 1]
    if ratios:
        print(f"geometric mean of {a.engines[0]} / fastest other: {statistics.geometric_mean(ratios):.3f} over {len(ratios)} models")


if __name__ == "__main__":
    main()
