"""Arena and in-place reuse: nothing that is still needed is overwritten, checked by running random programs on bytes."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnn_core.plan.memory import ALIGN, Home, Life, Touch, arena, assign


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 12), st.integers(0, 5)), max_size=25))
def test_arena_never_overlaps_what_lives_together(items):
    lives = [Life(size, first, first + length) for size, first, length in items]
    offsets, total = arena(lives)
    for i, a in enumerate(lives):
        assert offsets[i] % ALIGN == 0
        assert offsets[i] + a.size <= total
        for j, b in enumerate(lives[:i]):
            if a.first <= b.last and b.first <= a.last and a.size and b.size:
                assert offsets[i] + a.size <= offsets[j] or offsets[j] + b.size <= offsets[i]


def test_arena_reuses_what_is_dead():
    assert arena([Life(100, 0, 1), Life(100, 2, 3), Life(64, 1, 2)])[1] == 192


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_keep_their_values(seed):
    """Every tensor's memory holds its own number when it is read, and every output's at the end."""
    rng = random.Random(seed)
    sizes, touches, views, fixed, readable = [], [], [], {}, []

    def new() -> int:
        sizes.append(rng.choice([64, 64, 64, 128, 20]))
        return len(sizes) - 1

    for number in range(rng.randint(1, 3)):
        i = new()
        fixed[i] = Home("input", number)
        readable.append(i)
    for _ in range(rng.randint(1, 20)):
        if rng.random() < 0.2:
            base, view = rng.choice(readable), new()
            sizes[view] = sizes[base]
            views.append((view, base))
            readable.append(view)
            continue
        reads = tuple(rng.choices(readable, k=rng.randint(1, 3)))
        writes = tuple(new() for _ in range(rng.choice([1, 1, 1, 2])))
        touches.append(Touch(reads, writes, tuple(r for r in reads if rng.random() < 0.7)))
        readable += writes

    def base_of(i: int) -> int:
        for view, base in reversed(views):
            if view == i:
                return base_of(base)
        return i

    outputs: list[int] = []
    for i in rng.sample(readable, min(len(readable), 3)):
        if base_of(i) not in fixed and base_of(i) not in map(base_of, outputs):
            outputs.append(i)
    homes, total = assign(sizes, touches, views, fixed, outputs)

    def place(i: int) -> tuple[str, int]:
        home = homes[i]
        return place(home.where) if home.kind == "alias" else (home.kind, home.where)

    memory: dict[tuple[str, int], int] = {}

    def cells(i: int) -> list[tuple[str, int]]:
        kind, where = place(i)
        kind, where = (kind, where) if kind == "arena" else (f"{kind}{where}", 0)
        return [(kind, where + b) for b in range(sizes[i])]

    def write(i: int) -> None:
        memory.update(dict.fromkeys(cells(i), base_of(i)))

    for i in fixed:
        write(i)
    for touch in touches:
        for i in touch.reads:
            assert all(memory[c] == base_of(i) for c in cells(i)), f"tensor {i} was overwritten"
        for i in touch.writes:
            assert place(i)[0] != "input"
            write(i)
    for number, i in enumerate(outputs):
        assert place(i) == ("output", number)
        assert all(memory[c] == base_of(i) for c in cells(i))
    for i in range(len(sizes)):
        kind, where = place(i)
        assert kind != "arena" or where + sizes[i] <= total or not any(i in (*t.reads, *t.writes) for t in touches)


def test_chain_runs_in_the_output_memory():
    """relu(relu(conv(x))): conv writes where the output will be, and both relus work in place."""
    touches = [Touch((0,), (1,)), Touch((1,), (2,), (1,)), Touch((2,), (3,), (2,))]
    homes, total = assign([64] * 4, touches, [], {0: Home("input", 0)}, [3])
    assert homes == [Home("input", 0), Home("alias", 3), Home("alias", 3), Home("output", 0)]
    assert total == 0


def test_input_that_is_read_twice_by_one_step_is_kept():
    homes, _ = assign([64] * 3, [Touch((0,), (1,)), Touch((1, 1), (2,), (1,))], [], {0: Home("input", 0)}, [2])
    assert homes[1].kind == "arena"
