"""The thread pool, programs run by many Python threads, forks, and growth of memory."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from mnn_core.runtime import default_threads
from mnn_core.runtime.threads import cgroup_quota


def loop(kit, n, grain, threads):
    """One loop: for each item (first of its chunk, worker, whether that worker was alone, times done); nested items done."""
    program = kit.program("test.Loop", [kit.desc(2, dtype=np.int64)], kit.desc(4 * n + 1, dtype=np.int64), threads=threads)
    found = program.run([np.int64([n, grain])])[0]
    return found[:-1].reshape(n, 4), found[-1]


def check(items, grain, threads):
    """Every item once, chunks of at least grain (but for the last), workers within bounds and alone. Returns the borders."""
    assert (items[:, 3] == 1).all()
    assert (items[:, 2] == 1).all()
    assert items[:, 1].min() >= 0
    assert items[:, 1].max() < threads
    borders = [*sorted(set(items[:, 0].tolist())), len(items)]
    assert all(b - a >= grain for a, b in pairwise(borders[:-1]))
    return borders


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize(("n", "grain"), [(1, 1), (7, 1), (1000, 1), (1000, 300), (1000, 5000), (1000, 0), (33, 32)])
def test_a_loop_does_every_item_once(kit, n, grain, threads):
    items, nested = loop(kit, n, grain, threads)
    borders = check(items, max(grain, 1) if grain < n else 1, threads)
    assert nested == 10 * (len(borders) - 1)
    assert check(loop(kit, n, grain, threads)[0], 1, threads) == borders


def test_an_empty_loop(kit):
    assert loop(kit, 0, 1, 4)[1] == 0


def test_loops_of_many_python_threads_at_once(kit):
    alone = check(loop(kit, 500, 3, 4)[0], 3, 4)

    def work(_):
        return all(check(loop(kit, 500, 3, 4)[0], 3, 4) == alone for _ in range(50))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_many_threads_run_one_program(kit):
    n = 5000
    x = kit.desc(n)

    def triple(ins, outs):
        outs[0][...] = ins[0] * 3

    copy = kit.kernel("test.Scratch", [x], [x])
    program = kit.chain([copy, copy, triple, copy, triple, copy], x)

    def work(number):
        for i in range(200):
            value = np.float32(1000 * number + i)
            (y,) = program.run([np.full(n, value, np.float32)])
            if y[0] != 9 * value or not (y == y[0]).all():
                return f"thread {number}, run {i}: {y}"
        return None

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [None] * 8


def test_an_idle_pool_uses_no_cpu(kit):
    loop(kit, 1000, 1, 4)
    time.sleep(0.01)
    start = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - start < 0.1


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_child_has_a_pool_of_its_own(kit):
    loop(kit, 100, 1, 4)
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(kit,))
    child.start()
    child.join(20)
    assert child.exitcode == 0
    check(loop(kit, 100, 1, 4)[0], 1, 4)


def _in_child(kit):
    seen = set()
    for _ in range(200):
        items, _ = loop(kit, 1000, 1, 4)
        check(items, 1, 4)
        seen |= set(items[:, 1].tolist())
    os._exit(0 if len(seen) > 1 else 1)  # more than one worker: the pool is alive


def test_the_interpreter_ends_while_a_run_goes_on(kit):
    code = f"""
import sys, threading
sys.path.insert(0, {str(Path(__file__).parent)!r})
import numpy as np
from conftest import Kit
from mnn_core.runtime import NativeLibrary
kit = Kit(NativeLibrary({kit.library.path!r}))
program = kit.program("test.Naps", [kit.desc(2, dtype=np.int64)], kit.desc(1), threads=3)
program.run([np.int64([8, 1])])
threading.Thread(target=program.run, args=([np.int64([8000, 1])],), daemon=True).start()
print("end")
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert (run.returncode, run.stdout, run.stderr) == (0, "end\n", "")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_making_and_dropping_programs_keeps_memory(kit):
    n = 20_000
    x = np.ones(n, np.float32)

    def cycle():
        copy = kit.kernel("test.Scratch", [kit.desc(n)], [kit.desc(n)])
        kit.chain([copy, copy, lambda ins, outs: np.copyto(outs[0], ins[0])], kit.desc(n)).run([x])

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(200):
        cycle()
    before = resident()
    for _ in range(10_000):
        cycle()
    assert resident() - before < 20e6


def test_contexts_of_many_threads_are_given_back(kit):
    n = 2_000_000
    x = np.ones(n, np.float32)
    barrier = threading.Barrier(8)

    def wait(ins, outs):
        barrier.wait(10)  # 8 runs are here at once, each with an arena of 16 MB
        outs[0][...] = ins[0]

    program = kit.chain([kit.kernel("test.Scratch", [kit.desc(n)], [kit.desc(n)]), wait], kit.desc(n))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: program.run([x])[0][-1], range(8)))
    assert found == [1] * 8
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: program.run([x])[0][0], range(8))) == [1] * 8


def test_default_threads_is_within_the_affinity():
    assert 1 <= default_threads() <= (os.cpu_count() or 1)


@pytest.mark.parametrize(("files", "groups", "expected"), [
    ({"cpu.max": "150000 100000"}, "0::/\n", 2),
    ({"cpu.max": "max 100000"}, "0::/\n", None),
    ({"cpu.max": "400000 100000"}, None, 4),
    ({"cpu.max": "max 100000", "a/cpu.max": "300000 100000", "a/b/cpu.max": "max 100000"}, "0::/a/b\n", 3),
    ({"a/cpu.max": "300000 100000", "a/b/cpu.max": "50000 100000"}, "0::/a/b\n", 1),
    ({"a/cpu.max": "300000 100000"}, "0::/other\n", None),
    ({"cpu.max": "200000 100000"}, "0::/host/path\n", 2),
    ({"cpu/cpu.cfs_quota_us": "250000", "cpu/cpu.cfs_period_us": "100000"}, "4:cpu,cpuacct:/docker/x\n2:memory:/y\n", 3),
    ({"cpu,cpuacct/g/cpu.cfs_quota_us": "50000", "cpu,cpuacct/g/cpu.cfs_period_us": "100000"}, "4:cpu,cpuacct:/g\n", 1),
    ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, "4:cpu:/\n", None),
    ({"cpu.max": "nonsense"}, "neither\n", None),
    ({}, None, None),
])
def test_quota_of_control_groups(tmp_path, files, groups, expected):
    for name, text in files.items():
        path = tmp_path / "mounted" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    if groups is not None:
        (tmp_path / "groups").write_text(groups)
    assert cgroup_quota(str(tmp_path / "mounted"), str(tmp_path / "groups")) == expected
