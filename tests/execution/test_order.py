"""Which launches must run program by program, and that all others give the same bits however many run at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.interpreter.program_order.spans import Spans, meet_each_other, meet_others, runs_of
from ascendtile.simulator.interpreter.values import Affine, Box

from .runs import one_by_one, run

f32 = np.float32


@sim.jit
def shift(x, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i + 1, tl.load(x + i, mask=i < n - 1) + 1.0, mask=i < n - 1)


@sim.jit
def in_place(x, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2.0, mask=i < n)


@sim.jit
def copy(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


@sim.jit
def grid_stride(x, rows, cols, B: tl.constexpr):
    i = tl.arange(0, B)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        p = x + row * cols + i
        tl.store(p, tl.load(p, mask=i < cols) + row, mask=i < cols)


@sim.jit
def column_blocks(x, cols, R: tl.constexpr, C: tl.constexpr):
    j = tl.program_id(0) * C + tl.arange(0, C)
    p = x + tl.arange(0, R)[:, None] * cols + j[None, :]
    m = (j < cols)[None, :] & (tl.arange(0, R)[:, None] < R)
    tl.store(p, tl.load(p, mask=m) + 1.0, mask=m)


@sim.jit
def interleaved(x, B: tl.constexpr):
    p = x + tl.program_id(0) + tl.num_programs(0) * tl.arange(0, B)
    tl.store(p, tl.load(p) + 1.0)


@sim.jit
def tickets(counter, out):
    tl.store(out + tl.program_id(0), tl.atomic_add(counter, 1))


@sim.jit
def add_all(total, x, B: tl.constexpr):
    tl.atomic_add(total + tl.arange(0, B), tl.load(x + tl.program_id(0) * B + tl.arange(0, B)))


@sim.jit
def add_in_a_loop(total, x, n):
    for k in range(n):
        tl.atomic_add(total, tl.load(x + tl.program_id(0) * n + k))


@sim.jit
def add_then_look(total, out):
    pid = tl.program_id(0)
    tl.atomic_add(total, pid + 1)
    tl.store(out + pid, tl.load(total))


@sim.jit
def race(out):
    pid = tl.program_id(0)
    tl.store(out, pid)


@sim.jit
def race_in_a_loop(out, n):
    pid = tl.program_id(0)
    for k in range(n):
        tl.store(out + (pid + k) % n, pid * 10 + k)


@sim.jit
def race_twice(out):
    pid = tl.program_id(0)
    tl.store(out + pid, 100 + pid)
    tl.store(out + pid + 1, 200 + pid)


@sim.jit
def through_a_table(x, table, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    p = x + tl.load(table + i)
    tl.store(p, tl.load(p) + 1.0)


x12 = np.arange(12, dtype=f32)
i8 = np.zeros(8, np.int32)
CASES: dict[str, tuple[bool, Any, int, tuple[Any, ...], dict[str, int]]] = {
    "shift": (True, shift, 4, (x12, 12), {"B": 3}),
    "in place": (False, in_place, 4, (x12, 12), {"B": 3}),
    "rows in turn": (False, grid_stride, 3, (np.ones(7 * 5, f32), 7, 5), {"B": 8}),
    "column blocks": (False, column_blocks, 3, (np.ones(4 * 10, f32), 10), {"R": 4, "C": 4}),
    "interleaved": (False, interleaved, 3, (x12,), {"B": 4}),
    "tickets": (
        False,
        tickets,
        5,
        (np.zeros(1, np.int32), i8),
        {},
    ),  # one atomic: combined in the order of programs
    "atomic sums": (False, add_all, 4, (np.zeros(3, f32), x12), {"B": 3}),
    "atomic sums in a loop": (True, add_in_a_loop, 4, (np.zeros(1, f32), x12 / 7, 3), {}),
    "integer sums in a loop": (False, add_in_a_loop, 4, (i8, x12.astype(np.int32), 3), {}),
    "add then look": (True, add_then_look, 4, (np.zeros(1, np.int32), i8), {}),
    "race": (False, race, 4, (i8,), {}),  # one store: the last program wins either way
    "race in a loop": (True, race_in_a_loop, 4, (i8, 4), {}),
    "race twice": (True, race_twice, 4, (i8,), {}),
    "through a table": (True, through_a_table, 2, (x12, np.array([0, 1, 1, 2], np.int32)), {"B": 2}),
}


@pytest.mark.parametrize("name", CASES)
def test_programs_run_in_order_exactly_where_the_order_matters(name: str) -> None:
    want, kernel, programs, args, kw = CASES[name]
    assert one_by_one(kernel, (programs,), *args, **kw) == want


@pytest.mark.parametrize("name", CASES)
def test_a_launch_gives_what_running_in_order_gives(name: str) -> None:
    _, kernel, programs, args, kw = CASES[name]
    got, want = run(kernel, (programs,), *args, **kw), run(kernel, (programs,), *args, chunk=1, **kw)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_arguments_that_overlap_are_one_memory() -> None:
    x = np.arange(20, dtype=f32)
    assert one_by_one(copy, (4,), x[:12], x[3:15], 12, B=3)
    assert not one_by_one(copy, (4,), x[:10], x[10:], 10, B=3)
    assert not one_by_one(copy, (4,), x, x, 12, B=3)
    call = x.copy()
    with sim.device(time=False):
        copy[(4,)](call[:12], call[3:15], 12, B=3)
    assert call[:15].tolist() == [0, 1, 2] * 5


def test_a_shift_in_place_hands_values_on() -> None:
    got, *_ = run(shift, (4,), x12, 12, B=3)
    assert got.tolist() == [0, 1, 2, 3, 3 + 1, 5, 6, 7, 8, 9, 10, 11] or got[0] == 0
    want = x12.copy()
    for p in range(4):
        block = want[p * 3 : min(p * 3 + 3, 11)] + 1
        want[p * 3 + 1 : p * 3 + 1 + len(block)] = block
    assert got.tolist() == want.tolist()


runs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(1, 6)), max_size=8)


def spans(items: list[tuple[int, int, int]]) -> tuple[Spans, dict[int, set[int]]]:
    out, touched = Spans(), {p: set() for p in range(4)}
    for p, low, n in items:
        out.add(np.array([p]), np.array([low]), np.array([low + n]))
        touched[p] |= set(range(low, low + n))
    return out, touched


@given(runs, runs)
def test_runs_meet_where_their_bytes_do(a: Any, b: Any) -> None:
    (x, in_x), (y, in_y) = spans(a), spans(b)
    others = [(p, q) for p in range(4) for q in range(4) if p != q]
    assert meet_each_other(x) == any(in_x[p] & in_x[q] for p, q in others)
    if not meet_each_other(y):
        assert meet_others(x, y) == any(in_x[p] & in_y[q] for p, q in others)


@given(st.data(), st.lists(st.integers(1, 4), max_size=3).map(tuple))
def test_runs_cover_exactly_the_elements_that_are_touched(data: Any, shape: Any) -> None:
    number = st.integers(-6, 6) | st.lists(st.integers(-6, 6), min_size=2, max_size=2).map(np.array)
    affine = Affine(data.draw(number), tuple(data.draw(number) for _ in shape), shape)
    box = Box(tuple(data.draw(number) for _ in shape), tuple(data.draw(number) for _ in shape), shape)
    programs = np.array([5, 9])
    elements = np.broadcast_to(affine.elements(), (2, *shape))
    chosen = np.broadcast_to(box.dense(), (2, *shape))
    found: dict[int, set[int]] = {5: set(), 9: set()}
    for p, low, high in zip(*runs_of(affine, box, programs), strict=True):
        found[int(p)] |= set(range(int(low), int(high)))
    for k, p in enumerate((5, 9)):
        assert found[p] == set(elements[k][chosen[k]].tolist())
