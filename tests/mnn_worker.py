"""Runs inside the peer's environment: one JSON request on standard input, one JSON line as the answer."""

import json
import os
import signal
import sys

import numpy as np


def convert(request):
    import _tools  # the converter itself; MNN's script around it runs pip and sends telemetry

    for target, options in request["variants"].items():
        _tools.mnnconvert(["mnnconvert", "-f", "ONNX", "--modelFile", request["source"], "--MNNModel", target,
                           "--bizCode", "test", *options])
        if not os.path.exists(target):
            raise SystemExit(f"mnnconvert wrote no {target}")
    return True


def tool(request):
    import _tools

    _tools.mnnconvert(["mnnconvert", *request["arguments"]])
    return True


def run(request):
    import MNN

    F = MNN.expr
    config = {"backend": "CPU", "numThread": 1, "precision": "high"}
    runtime = MNN.nn.create_runtime_manager((config,))
    module = MNN.nn.load_module_from_file(request["model"], request["inputs"], request["outputs"], runtime_manager=runtime)
    for i in range(request["count"]):
        with np.load(f"{request['folder']}/feed{i}.npz") as archive:
            arrays = [archive[str(j)] for j in range(len(request["inputs"]))]
        tensors = []
        for a in arrays:
            wide = a.dtype.kind == "b" or (a.dtype.kind in "iu" and a.dtype.itemsize != 1)
            stored = a.astype(np.int32) if wide else a.astype(np.float32) if a.dtype.kind == "f" else a
            kind = {"i": F.int, "f": F.float, "u": F.uint8}[stored.dtype.kind]
            tensors.append(F.const(np.ascontiguousarray(stored), list(stored.shape), F.NCHW, kind))
        results = module.forward(tensors)
        if len(results) != len(request["outputs"]):
            raise SystemExit("the run failed")
        arrays = {}
        for j, value in enumerate(results):
            if value.data_format == F.NC4HW4:
                value = F.convert(value, F.NCHW)
            arrays[str(j)] = np.array(value.read())
        np.savez(f"{request['folder']}/result{i}.npz", **arrays)
    return True


def many(request):
    """Each of the requests in a process of its own; the answer is an empty text for each, or what went wrong with it."""
    import _tools  # noqa: F401  (once for all)
    import MNN  # noqa: F401

    answers = []
    for i, inner in enumerate(request["requests"]):
        child = os.fork()
        if child == 0:
            log = os.open(f"{request['folder']}/log{i}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            signal.alarm(60)
            try:
                DO[inner["do"]](inner)
                os._exit(0)
            except BaseException as error:
                print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
                os._exit(1)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with open(f"{request['folder']}/log{i}", errors="replace") as file:
            answers.append(f"exit code {status}: {file.read()[-300:]}" if status else "")
    return answers


DO = {"convert": convert, "run": run, "many": many, "tool": tool}

if __name__ == "__main__":
    request = json.loads(sys.stdin.read())
    print("\n" + json.dumps(DO[request["do"]](request)), flush=True)
    os._exit(0)  # the real MNN may crash while the interpreter shuts down
