"""Arena and in-place reuse: nothing that is still needed is overwritten, checked by running random programs on bytes."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnn_core.plan.joins import Join
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


@pytest.mark.parametrize("seed", range(150))
def test_random_programs_keep_their_values(seed):
    """Every byte of a tensor holds the number of the tensor that it came from when it is read, and outputs at the end."""
    rng = random.Random(seed)
    sizes, touches, views, fixed, readable, joins = [], [], [], {}, [], []
    values: list[list[int]] = []

    def new(size: int = 0, value: list[int] | None = None) -> int:
        sizes.append(size or rng.choice([64, 64, 64, 128, 20]))
        values.append(value or [len(values)] * sizes[-1])
        return len(sizes) - 1

    def join() -> None:
        parts = [r for r in rng.choices(readable, k=rng.randint(2, 3)) if sizes[r] % 64 == 0]
        whole = new(sum(sizes[p] for p in parts) or 64, [v for p in parts for v in values[p]])
        offset = 0
        for part in parts:
            joins.append(Join(len(touches), part, whole, offset))
            touches.append(Touch((part,), (whole,)))
            offset += sizes[part]
        if parts:
            readable.append(whole)

    for number in range(rng.randint(1, 3)):
        i = new()
        fixed[i] = Home("input", number)
        readable.append(i)
    for _ in range(rng.randint(1, 20)):
        if rng.random() < 0.2:
            base = rng.choice(readable)
            view = new(sizes[base], values[base])
            views.append((view, base))
            readable.append(view)
            continue
        if rng.random() < 0.2:
            join()
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
    homes, total, spared = assign(sizes, touches, views, fixed, outputs, joins)

    def place(i: int) -> tuple[str, int]:
        home = homes[i]
        if home.kind != "alias":
            return home.kind, home.where
        kind, where = place(home.where)
        return kind, where + home.offset if kind == "arena" else where

    memory: dict[tuple[str, int], int] = {}

    def cells(i: int) -> list[tuple[str, int]]:
        kind, where = place(i)
        kind, where = (kind, where) if kind == "arena" else (f"{kind}{where}", 0)
        return [(kind, where + b) for b in range(sizes[i])]

    def holds(i: int) -> bool:
        return [memory.get(c) for c in cells(i)] == values[i]

    for i in fixed:
        memory.update(zip(cells(i), values[i]))
    joined = {j.step: j for j in joins}
    for step, touch in enumerate(touches):
        if step in spared:
            assert cells(joined[step].part) == cells(joined[step].whole)[joined[step].offset:][:sizes[joined[step].part]]
            continue
        assert all(map(holds, touch.reads)), f"a tensor that step {step} reads was overwritten"
        for i in touch.writes:
            assert place(i)[0] != "input"
            if step in joined:
                memory.update(zip(cells(i)[joined[step].offset:], values[joined[step].part]))
            else:
                memory.update(zip(cells(i), values[i]))
    for number, i in enumerate(outputs):
        assert place(i) == ("output", number)
        assert holds(i)
    for i in range(len(sizes)):
        kind, where = place(i)
        assert kind != "arena" or where + sizes[i] <= total or not any(i in (*t.reads, *t.writes) for t in touches)


def test_parts_of_a_join_are_made_where_they_belong():
    """concat(a, relu(b)), then concat of that with c: nothing is copied."""
    touches = [Touch((0,), (1,)), Touch((0,), (2,)), Touch((2,), (3,), (2,)), Touch((1,), (4,)), Touch((3,), (4,)),
               Touch((0,), (5,)), Touch((4,), (6,)), Touch((5,), (6,)), Touch((6,), (7,))]
    joins = [Join(3, 1, 4, 0), Join(4, 3, 4, 64), Join(6, 4, 6, 0), Join(7, 5, 6, 128)]
    homes, total, spared = assign([64, 64, 64, 64, 128, 64, 192, 64], touches, [], {0: Home("input", 0)}, [7], joins)
    assert spared == {3, 4, 6, 7}
    assert total == 192
    assert [(homes[i].kind, homes[i].where, homes[i].offset) for i in (1, 2, 3, 5)] == [
        ("alias", 6, 0), ("alias", 6, 64), ("alias", 6, 64), ("alias", 6, 128)]


def test_chain_runs_in_the_output_memory():
    """relu(relu(conv(x))): conv writes where the output will be, and both relus work in place."""
    touches = [Touch((0,), (1,)), Touch((1,), (2,), (1,)), Touch((2,), (3,), (2,))]
    homes, total, _ = assign([64] * 4, touches, [], {0: Home("input", 0)}, [3])
    assert homes == [Home("input", 0), Home("alias", 3), Home("alias", 3), Home("output", 0)]
    assert total == 0


def test_input_that_is_read_twice_by_one_step_is_kept():
    homes, _, _ = assign([64] * 3, [Touch((0,), (1,)), Touch((1, 1), (2,), (1,))], [], {0: Home("input", 0)}, [2])
    assert homes[1].kind == "arena"
