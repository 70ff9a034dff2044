"""Models on this backend live, die, fork and are shared by threads, as models do in programs."""

from __future__ import annotations

import gc
import multiprocessing
import resource
import threading

import numpy as np
import pytest

import mnn_core as mnn
from mnn_core import Graph, Op, TensorInfo

F32 = np.dtype(np.float32)


def net(size: int | None = 8) -> Graph:
    """Two convolutions, one of them 1x1, and a mean."""
    dice = np.random.default_rng(0)
    graph = Graph(name="net")
    graph.inputs = [TensorInfo("x", F32, (1 if size else None, 3, size, size))]
    graph.constants = {"w": dice.standard_normal((8, 3, 3, 3)).astype(F32), "b": dice.standard_normal(8).astype(F32),
                       "v": dice.standard_normal((4, 8, 1, 1)).astype(F32), "c": dice.standard_normal(4).astype(F32)}
    graph.ops = [
        Op("Convolution", ["x", "w", "b"], ["h"], {"kernelX": 3, "kernelY": 3, "padX": 1, "padY": 1, "outputCount": 8,
                                                    "inputCount": 3, "relu": True}),
        Op("Convolution", ["h", "v", "c"], ["y"], {"kernelX": 1, "kernelY": 1, "outputCount": 4, "inputCount": 8}),
    ]
    graph.outputs = [TensorInfo("y", F32, None)]
    return graph


def image(seed: int, size: int = 8) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((1, 3, size, size)).astype(F32)


def right(x: np.ndarray) -> np.ndarray:
    """The same by a formula."""
    c = net().constants
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    hidden = np.maximum(np.einsum("nchwij,ocij->nohw", windows, c["w"]) + c["b"].reshape(1, -1, 1, 1), 0)
    return np.einsum("nchw,oc->nohw", hidden, c["v"][:, :, 0, 0]) + c["c"].reshape(1, -1, 1, 1)


def same(got: np.ndarray, x: np.ndarray) -> bool:
    return bool(np.allclose(got, right(x), rtol=1e-4, atol=1e-4))


def test_eight_threads_share_one_model_and_sizes_change() -> None:
    model, wrong = mnn.load(net(None), "cpu-x86", threads=2), []

    def work(seed: int) -> None:
        for step in range(30):
            x = image(seed * 100 + step, 6 + (seed + step) % 3)
            try:
                if not same(model.run({"x": x})["y"], x):
                    wrong.append((seed, step))
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def most_resident() -> int:
    """KiB that this process has had in memory at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def test_ten_thousand_lives_of_a_model_take_no_memory() -> None:
    graph, x = net(), image(0)
    for _ in range(300):
        mnn.load(graph, "cpu-x86", threads=1).run({"x": x})
    gc.collect()
    before = most_resident()
    for _ in range(10_000):
        y = mnn.load(graph, "cpu-x86", threads=1).run({"x": x})["y"]
    gc.collect()
    assert most_resident() - before < 20 << 10
    assert same(y, x)


def test_outputs_outlive_the_model() -> None:
    x, model = image(1), mnn.load(net(), "cpu-x86")
    first = model.run({"x": x})["y"]
    second = model.run({"x": image(2)})["y"]
    del model
    gc.collect()
    assert same(first, x)
    assert same(second, image(2))
    first[:] = 0  # the caller's own
    assert same(second, image(2))


@pytest.mark.parametrize("view", [
    lambda x: x[..., ::-1][..., ::-1], lambda x: x.astype(">f4"), lambda x: np.asfortranarray(x), lambda x: x.tolist(),
    lambda x: np.repeat(x, 2, axis=3)[..., ::2], lambda x: np.frombuffer(x.tobytes(), F32).reshape(x.shape),
    lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(F32).reshape(x.shape),
], ids=["strided", "big-endian", "Fortran", "lists", "steps", "read-only", "unaligned"])
def test_inputs_of_any_layout(view) -> None:
    x, model = image(3), mnn.load(net(), "cpu-x86")
    for _ in range(2):
        assert same(model.run({"x": view(x)})["y"], x)


def test_wrong_inputs_are_refused_after_a_right_one_too() -> None:
    model, x = mnn.load(net(), "cpu-x86"), image(4)
    model.run({"x": x})
    for bad, error in ((x[0], mnn.InputError), (x[:, :2], mnn.InputError), (x + 1e-12 + np.float64(0.1), mnn.InputTypeError),
                       (x.astype(np.complex64), mnn.InputTypeError), (x.astype(object), mnn.InputTypeError),
                       (x[:, :, :0], mnn.InputError), (np.float32(1), mnn.InputError), (None, mnn.MNNError)):
        with pytest.raises(error):
            model.run({"x": bad})
    assert same(model.run({"x": x})["y"], x)


def test_no_images_give_no_images_and_no_pixels_a_shape_error() -> None:
    model = mnn.load(net(None), "cpu-x86")
    assert model.run({"x": np.zeros((0, 3, 4, 5), F32)})["y"].shape == (0, 4, 4, 5)
    with pytest.raises(mnn.ShapeError, match="does not fit"):
        model.run({"x": np.zeros((1, 3, 0, 5), F32)})


def _child(model: mnn.Model, x: np.ndarray, queue: multiprocessing.SimpleQueue) -> None:
    queue.put(same(model.run({"x": x})["y"], x))


def test_a_model_works_in_a_forked_child_and_still_in_the_parent() -> None:
    model, x = mnn.load(net(None), "cpu-x86", threads=2), image(5, 40)
    assert same(model.run({"x": x})["y"], x)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_child, args=(model, x, queue))
    child.start()
    child.join(20)
    alive = child.is_alive()
    if alive:
        child.kill()
    assert not alive
    assert child.exitcode == 0
    assert queue.get()
    assert same(model.run({"x": x})["y"], x)


def _run_on(model: mnn.Model, x: np.ndarray, token: mnn.CancelToken) -> None:
    for _ in range(1000):
        model.run({"x": x}, cancel=token)


def test_a_cancelled_run_stops_and_the_model_goes_on() -> None:
    graph = net(None)
    for i in range(60):
        graph.ops.append(Op("Convolution", [f"h{i - 1}" if i else "h", "z", "b"], [f"h{i}"], {
            "kernelX": 3, "kernelY": 3, "padX": 1, "padY": 1, "outputCount": 8, "inputCount": 8}))
    graph.constants["z"] = np.zeros((8, 8, 3, 3), F32)
    graph.outputs = [TensorInfo("h59", F32, None)]
    model, x = mnn.load(graph, "cpu-x86", threads=1), image(6, 400)
    want = model.run({"x": x})["h59"]
    token = mnn.CancelToken()
    timer = threading.Timer(0.01, token.cancel)
    timer.start()
    with pytest.raises(mnn.CancelledError):
        _run_on(model, x, token)
    timer.join()
    np.testing.assert_array_equal(model.run({"x": x})["h59"], want)
