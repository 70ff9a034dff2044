"""Time and memory of conversion, beside the real mnnconvert, on the networks of zoo.py.

    python convert.py [--models ...] [--rounds 5] [--peer-python PYTHON] [--big MB] [--json FILE]

Each conversion runs in a process of its own, the two programs in turns; a row has the median seconds of the conversion
itself, of the whole process (interpreter and imports included), the peak memory, and ours in relation to theirs. The
peer is the converter in MNN's wheel (`pip install MNN`), called without the script around it. --big: also our
conversion of a generated model of so many megabytes of external data in tensors of 64 MB, to external weights;
deleted afterwards.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

OURS = """
import sys, time
import mnn_core as mnn
from mnn_core import convert as _, formats, plugins
plugins.load_ops()
plugins.converter("onnx").operators()
t = time.perf_counter()
mnn.convert(sys.argv[1], sys.argv[2], save_external_data=len(sys.argv) > 3)
print(time.perf_counter() - t, next(l.split()[1] for l in open("/proc/self/status") if l.startswith("VmHWM")))
"""
THEIRS = """
import os, sys, time
import _tools
told = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
t = time.perf_counter()
_tools.mnnconvert(["mnnconvert", "-f", "ONNX", "--modelFile", sys.argv[1], "--MNNModel", sys.argv[2], "--bizCode", "x"])
t = time.perf_counter() - t
os.write(told, f"{t} {next(l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM'))}".encode())
os._exit(0)
"""


def measure(python, script, *arguments):
    """(seconds of the conversion, seconds of the process, peak MB)."""
    reading, writing = os.pipe()
    began = time.perf_counter()
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    child = os.posix_spawn(python, [python, "-c", script, *map(str, arguments)], env,
                           file_actions=[(os.POSIX_SPAWN_DUP2, writing, 1), (os.POSIX_SPAWN_CLOSE, reading)])
    os.close(writing)
    _, status = os.waitpid(child, 0)
    whole = time.perf_counter() - began
    with os.fdopen(reading) as told:
        text = told.read().split()
    if status or len(text) < 2:
        raise SystemExit(f"{python} failed on {arguments[0]}")
    return float(text[-2]), whole, int(text[-1]) / 1024


def big_model(folder, megabytes):
    """A chain of 4096 x 4096 products whose weights lie in another file."""
    import numpy as np
    from onnx import TensorProto, helper
    size, nodes, weights, x = 4096, [], [], "x"
    with open(folder / "big.bin", "wb") as file:
        block = np.random.default_rng(0).standard_normal((size, size)).astype(np.float32) / 64
        for i in range(megabytes // 64):
            file.write(np.roll(block, i).tobytes())
            weight = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[size, size],
                                 data_location=TensorProto.EXTERNAL)
            for key, value in (("location", "big.bin"), ("offset", i * block.nbytes), ("length", block.nbytes)):
                weight.external_data.add(key=key, value=str(value))
            weights.append(weight)
            nodes += [helper.make_node("MatMul", [x, f"w{i}"], [f"y{i}"]), helper.make_node("Relu", [f"y{i}"], [f"z{i}"])]
            x = f"z{i}"
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", size]) for n in ("x", x)]
    graph = helper.make_graph(nodes, "big", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "big.onnx").write_bytes(model.SerializeToString())
    return folder / "big.onnx"


def main():
    import zoo
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", nargs="+", default=list(zoo.MODELS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer-python", default=sys.executable, help="interpreter of an environment that has MNN")
    parser.add_argument("--big", type=int, default=0, metavar="MB")
    parser.add_argument("--folder", help="for the networks (default: a temporary one)")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory(dir=args.folder) as temporary:
        folder = Path(temporary)
        print(f"{'network':16} {'ours s':>8} {'theirs s':>8} {'ratio':>6}   {'process s':>9} {'theirs':>7} {'ratio':>6}   "
              f"{'peak MB':>8} {'theirs':>7} {'ratio':>6}")
        for name in args.models:
            path = zoo.build(name, folder)
            sides = {"ours": (sys.executable, OURS), "theirs": (args.peer_python, THEIRS)}
            rounds = {side: [] for side in sides}
            for _ in range(args.rounds):
                for side, (python, script) in sides.items():
                    rounds[side].append(measure(python, script, path, folder / f"{side}.mnn"))
            ours, theirs = ([statistics.median(column) for column in zip(*rounds[side])] for side in sides)
            ratios = [a / b for a, b in zip(ours, theirs)]
            found.append({"network": name, "ours": ours, "theirs": theirs, "ratios": ratios})
            print(f"{name:16} {ours[0]:8.3f} {theirs[0]:8.3f} {ratios[0]:6.2f}   {ours[1]:9.3f} {theirs[1]:7.3f} "
                  f"{ratios[1]:6.2f}   {ours[2]:8.0f} {theirs[2]:7.0f} {ratios[2]:6.2f}", flush=True)
            path.unlink()
        if args.big:
            seconds, whole, peak = measure(sys.executable, OURS, big_model(folder, args.big), folder / "big.mnn", "external")
            found.append({"network": "big", "megabytes": args.big, "ours": [seconds, whole, peak]})
            print(f"{args.big} MB of external data: {seconds:.1f} s, peak {peak:.0f} MB")
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
