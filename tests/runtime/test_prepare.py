"""Preparing kernels: attributes, constants, memory, shared memory, refusals."""

import numpy as np
import pytest

from mnn_core.ir import Region
from mnn_core.runtime import Declined, Program, ProgramTensor, SharedStore, Step, TensorDesc

W = np.arange(6, dtype=np.float32).reshape(2, 3)
X = np.ones(6, np.float32)


def scale(kit, w, shared, **attrs):
    """The program (fills of the packed constant, its columns, x * w...)."""
    x, k, y = kit.desc(6), kit.desc(*w.shape), kit.desc(8)
    kernel = kit.kernel("test.Scale", [x, k], [y], [None, w], shared=shared, **attrs)
    tensors = [ProgramTensor(x, ("input", 0)), ProgramTensor(k, ("const", w)), ProgramTensor(y, ("output", 0))]
    return Program(tensors, [Step(kernel, (0, 1), (2,), "scale")], [0], [2], 0)


def test_the_next_row_is_asked_when_one_declines(kit):
    x, y = kit.desc(1), kit.desc(1)
    zero = [np.zeros(1, np.float32)]
    assert kit.program("test.Pick", [x], y, mode="fast").run(zero)[0] == 1
    with pytest.raises(Declined, match=r"^mode is not fast$"):
        kit.kernel("test.Pick", [x], [y], mode="other")
    assert kit.program("test.Pick", [x], y, row=1).run(zero)[0] == 2


def test_attributes_reach_the_kernel_by_name(kit):
    region = Region(1, (2, 3), 4, (5, 6), 7, (8, 9))
    program = kit.program("test.Attrs", [kit.desc(1)], kit.desc(6, 4, dtype=np.float64), a=True, b=-2.5, c="MAXPOOL",
                          d=(2**40, -1), e=np.float32([0.5, 8]), f=(region,), unused={"nested": 1}, text=("x", "y"))
    found = program.run([np.zeros(1, np.float32)])[0]
    np.testing.assert_array_equal(found, [[ord("i"), 0, 1, 1], [ord("f"), 0, -2.5, -2.5], [ord("s"), 0, ord("M"), ord("L")],
                                          [ord("I"), 2, 2**40, -1], [ord("F"), 2, 0.5, 8], [ord("I"), 10, 1, 9]])


def test_packed_constants_are_shared_by_the_kernels_of_a_model(kit):
    store, other = SharedStore(), SharedStore()
    results = [scale(kit, W, s).run([X])[0] for s in (store, store, other)]
    for fills_columns_y in results:
        np.testing.assert_array_equal(fills_columns_y, [1, 3, 0, 1, 2, 3, 4, 5])
    assert store.nbytes == other.nbytes == 28


def test_the_same_memory_in_another_shape_is_another_constant(kit):
    store = SharedStore()
    first, second = scale(kit, W, store), scale(kit, W.reshape(3, 2), store)
    assert (first.run([X])[0][1], second.run([X])[0][1], store.nbytes) == (3, 2, 56)
    assert second.run([X])[0][0] == 1  # packed for its own shape


def test_a_kernel_that_declines_leaves_nothing_in_the_store(kit):
    store = SharedStore()
    with pytest.raises(Declined, match="packed for nothing"):
        scale(kit, W, store, decline=1)
    assert store.nbytes == 0
    np.testing.assert_array_equal(scale(kit, W, store).run([X])[0], [1, 3, 0, 1, 2, 3, 4, 5])


def test_a_store_keeps_the_constants_that_it_knows_by_address(kit):
    store = SharedStore()
    kept = []
    for i in range(50):  # were a constant freed, the next would get its address and be taken for it
        w = np.full((2, 3), i, np.float32)
        kept.append(scale(kit, w, store))
        del w
    for i, program in enumerate(kept):
        np.testing.assert_array_equal(program.run([X])[0][2:], np.full(6, i))


@pytest.mark.parametrize("wrong", [W.T, W.astype(np.float64), W.reshape(6), np.asfortranarray(W)])
def test_a_constant_that_is_not_what_was_described_is_refused(kit, wrong):
    with pytest.raises(ValueError, match="constant"):
        kit.kernel("test.Scale", [kit.desc(6), kit.desc(2, 3)], [kit.desc(8)], [None, wrong])


def test_descriptions_that_no_kernel_could_read_are_refused():
    with pytest.raises(ValueError, match="at most 32 dimensions"):
        TensorDesc((1,) * 33, np.float32)
    with pytest.raises(ValueError, match="dtype"):
        TensorDesc((1,), "U3")
