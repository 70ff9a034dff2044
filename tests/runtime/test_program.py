"""Running programs: values, memory, errors, cancelling."""

import gc
import threading
import weakref

import numpy as np
import pytest

import mnn_core as mnn
from mnn_core.runtime import CancelToken, Program, ProgramTensor, Step

RNG = np.random.default_rng(0)


def adder(kit, n, kernels=3):
    """y = x + x + ... by native steps that double their input (the second input is the first again)."""
    x = kit.desc(n)
    double = kit.kernel("test.Add", [x, x], [x])
    room = -(-n * 4 // 64) * 64
    places = [("input", 0), *(("arena", i % 2 * room) for i in range(kernels - 1)), ("output", 0)]
    steps = [Step(double, (i, i), (i + 1,), f"step{i}") for i in range(kernels)]
    return Program([ProgramTensor(x, p) for p in places], steps, [0], [kernels], 2 * room)


def test_native_steps_run_one_after_the_other(kit):
    x = RNG.standard_normal(1000).astype(np.float32)
    program = adder(kit, 1000, 5)
    np.testing.assert_array_equal(program.run([x])[0], x * 32)
    np.testing.assert_array_equal(program.run([x + 1])[0], (x + 1) * 32)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,) * 32])
def test_shapes_of_any_rank_and_size(kit, shape):
    x = np.full(shape, 2.5, np.float32)
    found = kit.program("test.Add", [kit.desc(*shape)], kit.desc(*shape)).run([x])[0]
    assert (found.shape, found.dtype) == (shape, np.float32)
    np.testing.assert_array_equal(found, x)


def test_absent_inputs_are_seen_as_absent(kit):
    x = kit.desc(4)
    kernel = kit.kernel("test.Add", [x, None, x], [x])
    places = [("input", 0), ("const", np.ones(4, np.float32)), ("output", 0)]
    tensors = [ProgramTensor(x, p) for p in places]
    program = Program(tensors, [Step(kernel, (0, -1, 1), (2,), "sum")], [0], [2], 0)
    np.testing.assert_array_equal(program.run([np.arange(4, dtype=np.float32)])[0], [1, 2, 3, 4])


def test_outputs_are_fresh_owned_and_aligned(kit):
    n = 100_000
    program = adder(kit, n)
    first, second = (program.run([np.full(n, v, np.float32)])[0] for v in (1, 2))
    del program
    gc.collect()
    for value, array in ((8, first), (16, second)):
        assert array.flags.owndata
        assert array.flags.writeable
        assert array.ctypes.data % 64 == 0
        np.testing.assert_array_equal(array, np.full(n, value, np.float32))
    first.resize(2 * n, refcheck=False)
    np.testing.assert_array_equal(first, np.repeat(np.float32([8, 0]), n))


def test_python_steps_stand_between_native_ones(kit):
    x = kit.desc(2, 3)
    seen = []

    def half(ins, outs):
        seen.append((ins[0].shape, ins[0].flags.writeable, outs[0].flags.c_contiguous))
        outs[0][...] = ins[0] / 2

    copy = kit.kernel("test.Scratch", [x], [x])
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(kit.chain([half, copy, half, copy, half], x).run([array])[0], array / 8)
    assert seen == [((2, 3), False, True)] * 3


def test_views_and_constants_reach_python_steps(kit):
    whole, part, flat = kit.desc(4, 2), kit.desc(2, 2), kit.desc(8)
    constant = np.arange(8, dtype=np.float32).reshape(4, 2)

    def spread(ins, outs):
        outs[0][...] = ins[0] + ins[1]

    def fill(ins, outs):
        outs[0][...] = constant * 10

    tensors = [ProgramTensor(whole, ("arena", 0)), ProgramTensor(part, ("alias", 0, 16)), ProgramTensor(part, ("output", 0)),
               ProgramTensor(flat, ("alias", 0, 0)), ProgramTensor(flat, ("const", constant.reshape(8))),
               ProgramTensor(flat, ("output", 1))]
    steps = [Step(fill, (), (0,), "fill"), Step(spread, (1, 1), (2,), "part"), Step(spread, (3, 4), (5,), "flat")]
    found = Program(tensors, steps, [], [2, 5], 64).run([])
    np.testing.assert_array_equal(found[0], constant[2:] * 20)
    np.testing.assert_array_equal(found[1], constant.reshape(8) * 11)


def test_arrays_that_a_python_step_keeps_stay_as_they_were(kit):
    x = kit.desc(16)
    kept = []

    def keep(ins, outs):
        kept.append(ins[0])
        outs[0][...] = 0

    program = kit.chain([kit.kernel("test.Scratch", [x], [x]), keep], x)
    for value in range(8):
        program.run([np.full(16, value, np.float32)])
    for value, array in enumerate(kept):
        np.testing.assert_array_equal(array, np.full(16, value))


def test_a_cycle_through_a_run_is_collected(kit):
    class Keeper:
        def __call__(self, ins, outs):
            self.kept = ins[0].base  # run -> program -> this kernel -> run
            outs[0][...] = ins[0]

    x = kit.desc(1000)
    keeper = Keeper()
    gone = weakref.ref(keeper)
    program = kit.chain([kit.kernel("test.Scratch", [x], [x]), keeper], x)
    program.run([np.zeros(1000, np.float32)])
    del keeper, program
    gc.collect()
    assert gone() is None


def test_a_failing_kernel_is_named_with_its_text(kit):
    x = kit.desc(3)
    program = kit.chain([kit.kernel("test.Scratch", [x], [x]), kit.kernel("test.Check", [x], [x])], x)
    good = np.ones(3, np.float32)
    with pytest.raises(mnn.KernelError, match=r"^step1: kernel check failed: x\[1\] is -4\.0$"):
        program.run([np.float32([1, -4, 1])])
    np.testing.assert_array_equal(program.run([good])[0], good)  # errors are of a run, not of the program
    with pytest.raises(mnn.KernelError, match=r"x\[2\] is -1\.0$"):
        program.run([np.float32([1, 1, -1])])
    with pytest.raises(mnn.KernelError, match="speechless failed: it gave no reason"):
        kit.program("test.Speechless", [x], x).run([good])


def test_the_first_of_many_failing_workers_is_heard_whole(kit):
    x = kit.desc(1)
    program = kit.program("test.FailAll", [x], x, threads=4)
    for _ in range(200):
        with pytest.raises(mnn.KernelError, match=r"failed: an (odd|even) worker failed$"):
            program.run([np.zeros(1, np.float32)])


@pytest.mark.parametrize(("error", "expected", "text"), [
    (ZeroDivisionError("no"), mnn.KernelError, r"^step0: ZeroDivisionError: no$"),
    (mnn.ShapeError("bad"), mnn.ShapeError, r"^bad$"),
    (KeyboardInterrupt(), KeyboardInterrupt, None),
])
def test_exceptions_of_python_steps(kit, error, expected, text):
    def wrong(ins, outs):
        raise error

    program = kit.chain([wrong], kit.desc(1))
    for _ in range(3):
        with pytest.raises(expected, match=text):
            program.run([np.zeros(1, np.float32)])


def test_profiling_times_every_step(kit):
    i64 = kit.desc(2, dtype=np.int64)
    nap, out = kit.kernel("test.Naps", [i64], [kit.desc(1)]), kit.desc(1)
    tensors = [ProgramTensor(i64, ("input", 0)), ProgramTensor(out, ("arena", 0)), ProgramTensor(out, ("output", 0))]

    def pause(ins, outs):
        threading.Event().wait(0.01)

    steps = [Step(nap, (0,), (1,), "nap"), Step(pause, (), (2,), "pause"), Step(nap, (0,), (1,), "again")]
    outputs, seconds = Program(tensors, steps, [0], [2], 64).run([np.int64([2, 10])], profile=True)
    assert len(outputs) == 1
    assert [t >= low for t, low in zip(seconds, (0.02, 0.01, 0.02))] == [True] * 3


@pytest.mark.parametrize("native", [True, False])
def test_a_token_stops_a_run_between_steps_and_within_loops(kit, native):
    token = CancelToken()
    i64 = kit.desc(2, dtype=np.int64)
    done = []

    def pause(ins, outs):
        done.append(1)
        threading.Event().wait(0.02)

    out = kit.desc(1)
    kernel = kit.kernel("test.Naps", [i64], [out], threads=2) if native else pause
    tensors = [ProgramTensor(i64, ("input", 0)), ProgramTensor(out, ("output", 0))]
    program = Program(tensors, [Step(kernel, (0,), (1,), "nap")] * 500, [0], [1], 0)
    threading.Timer(0.1, token.cancel).start()
    with pytest.raises(mnn.CancelledError):
        program.run([np.int64([40, 20])], cancel=token)  # a chunk of a loop is 5 items of 20 ms
    assert token.cancelled
    with pytest.raises(mnn.CancelledError):
        program.run([np.int64([1, 1])], cancel=token)
    assert len(done) < 50  # of 500


def test_wrong_inputs_are_refused(kit):
    program = adder(kit, 6)
    x = np.zeros(6, np.float32)
    with pytest.raises(ValueError, match="2 arrays given to a program of 1 inputs"):
        program.run([x, x])
    for wrong in (x.astype(np.float64), x[:5], np.zeros(12, np.float32)[::2], x.astype(">f4"),
                  np.frombuffer(bytes(25), np.float32, 6, offset=1)):
        with pytest.raises(ValueError, match="input 0 is"):
            program.run([wrong])
    with pytest.raises(TypeError):
        program.run([[0.0] * 6])
    x.flags.writeable = False
    np.testing.assert_array_equal(program.run([x])[0], x)


@pytest.mark.parametrize(("places", "reads", "text"), [
    ([("input", 0), ("arena", 1)], (0,), r"has 64 bytes at 1 of 64"),
    ([("input", 0), ("arena", -64)], (0,), r"bytes at -64"),
    ([("input", 1), ("output", 0)], (0,), "input or output 1 of 1"),
    ([("input", 0), ("alias", 0, 4)], (0,), "64 bytes at 4 of 64"),
    ([("input", 0), ("alias", 1, 0)], (0,), "view of nothing"),
    ([("input", 0), ("alias", 9, 0)], (0,), "view of nothing"),
    ([("input", 0), ("output", 0)], (2,), "a step reads tensor 2"),
    ([("input", 0), ("output", 0)], (-2,), "a step reads tensor -2"),
])
def test_programs_that_would_overwrite_memory_are_refused(kit, places, reads, text):
    x = kit.desc(16)
    step = Step(kit.kernel("test.Scratch", [x], [x]), reads, (1,), "copy")
    with pytest.raises(ValueError, match=text):
        Program([ProgramTensor(x, p) for p in places], [step], [0], [1], 64)


def test_a_tensor_too_great_for_any_memory_is_refused(kit):
    with pytest.raises(ValueError, match="too great"):
        Program([ProgramTensor(kit.desc(2**40, 2**40), ("arena", 0))], [], [], [], 64)
