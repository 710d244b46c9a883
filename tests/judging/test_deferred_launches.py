"""Launches computed later and in part give the elements that they give when all is computed."""

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.reports.judging.sampling.deferred import DeferredLaunches
from ascendtile.reports.judging.sampling.positions import drawn_positions
from ascendtile.reports.judging.sampling.refusals import NotSampledError
from ascendtile.reports.judging.sampling.repeated import PERIOD, RepeatedMemory, ValueFile


@sim.jit
def doubled(x, y, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + o, tl.load(x + o, mask=o < n) * 2, mask=o < n)


@sim.jit
def row_sums(x, sums, C, B: tl.constexpr):
    row, total = tl.program_id(0), tl.zeros((B,), tl.float32)
    for c in range(0, C, B):
        o = c + tl.arange(0, B)
        total += tl.load(x + row * C + o, mask=o < C, other=0.0)
    tl.store(sums + row, tl.sum(total, 0))


@sim.jit
def divided(x, sums, y, C, B: tl.constexpr):
    row = tl.program_id(0)
    for c in range(0, C, B):
        o = c + tl.arange(0, B)
        tl.store(y + row * C + o, tl.load(x + row * C + o, mask=o < C) / tl.load(sums + row), mask=o < C)


@sim.jit
def added_in_place(y, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + o, tl.load(y + o, mask=o < n) + 1, mask=o < n)


@sim.jit
def total(x, out, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(out, tl.sum(tl.load(x + o, mask=o < n, other=0.0), 0))


@sim.jit
def by_table(x, y, R, C, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + o % C * R + o // C, tl.load(x + o, mask=o < n), mask=o < n)


@sim.jit
def heavy(x, y, n, ROUNDS: tl.constexpr, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + o, mask=o < n)
    for _ in range(ROUNDS):
        v = tl.exp(v) - 1
    tl.store(y + o, v, mask=o < n)


def deferred(launches):
    found = DeferredLaunches()
    with sim.device(values=False, time=False), found.watching():
        launches()
    return found


def test_nothing_is_computed_before_it_is_asked_for():
    x, y = np.ones(100, np.float32), np.zeros(100, np.float32)
    found = deferred(lambda: doubled[(7,)](x, y, 100, 16))
    assert len(found.calls) == 1
    assert not y.any()


@pytest.mark.parametrize(("rows", "columns", "seed"), [(1, 1, 0), (2, 49, 1), (6, 33, 2)])
def test_several_launches_are_computed_as_far_as_an_element_needs(rows, columns, seed):
    x = np.random.default_rng(seed).random((rows, columns), np.float32) + 0.5
    sums, y = np.zeros(rows, np.float32), np.zeros((rows, columns), np.float32)

    def launches():
        row_sums[(rows,)](x, sums, columns, 16)
        divided[(rows,)](x, sums, y, columns, 16)
        added_in_place[(-(-y.size // 16),)](y, y.size, 16)

    pending = deferred(launches)
    found = pending.values_at(y, drawn_positions(y.shape, seed, 5), seed)
    y[...] = 0
    with sim.device(time=False):
        launches()
    assert (found.values == y.reshape(-1)[found.positions]).all()
    assert found.written.all()
    assert found.elements == y.size


def test_only_the_rows_of_the_positions_are_computed():
    x, sums = np.ones((9, 40), np.float32), np.zeros(9, np.float32)
    y = np.zeros((9, 40), np.float32)

    def launches():
        row_sums[(9,)](x, sums, 40, 16)
        divided[(9,)](x, sums, y, 40, 16)

    deferred(launches).values_at(y, np.array([3, 3 * 40 + 30]), 0)
    assert np.flatnonzero(sums).tolist() == [0, 3]
    assert sorted({(int(r), int(c) // 16) for r, c in np.argwhere(y)}) == [(0, 0), (3, 1)]


def test_elements_that_no_launch_writes_are_told():
    x, y = np.ones(100, np.float32), np.zeros(100, np.float32)
    found = deferred(lambda: doubled[(4,)](x, y, 64, 16)).values_at(y, np.array([0, 63, 64, 99]), 0)
    given_, others = np.isin(found.positions, [64, 99]), found.positions < 64
    assert not found.written[given_].any()
    assert found.written[others].all()
    assert (found.values[others] == 2).all()


def test_outputs_may_be_views():
    x, y = np.arange(64, dtype=np.float32), np.zeros((8, 8), np.float32)
    found = deferred(lambda: doubled[(4,)](x, y, 64, 16)).values_at(y.T, np.array([1, 62]), 0)
    assert dict(zip(found.positions.tolist(), found.values.tolist(), strict=True)) == {1: 16.0, 62: 110.0}


def test_a_launch_that_writes_to_what_it_reads_is_computed_once_for_all_outputs():
    y = np.arange(64, dtype=np.float32)
    found = deferred(lambda: added_in_place[(4,)](y, 64, 16)).values_of(
        [(y, np.array([1, 20]), 0), (y.reshape(8, 8).T, np.array([8, 62]), 0)]
    )
    first, second = (dict(zip(x.positions.tolist(), x.values.tolist(), strict=True)) for x in found)
    assert [first[1], first[20]] == [2.0, 21.0]
    assert [second[8], second[62]] == [2.0, 56.0]


def test_a_sum_over_programs_is_computed_whole_where_it_is_small():
    x, out = np.ones(100, np.float32), np.zeros(1, np.float32)
    found = deferred(lambda: total[(7,)](x, out, 100, 16)).values_at(out, np.array([0]), 0)
    assert found.values.tolist() == [100.0]


@pytest.mark.exhaustive
def test_stores_by_tables_too_large_to_look_at_are_taken_from_drawn_programs():
    rows = 1 << 13
    file = ValueFile(np.random.default_rng(0).random(PERIOD, np.float32))
    x, y = (RepeatedMemory(rows * rows, np.dtype(np.float32), f).array() for f in (file, None))
    launches = deferred(lambda: by_table[(rows * rows // 8192,)](x, y, rows, rows, rows * rows, 8192))
    found = launches.values_at(y, drawn_positions((rows, rows), 1), 1)
    assert len(found.positions) > 500
    assert found.written.all()
    assert np.isin(drawn_positions((rows, rows), 1), found.positions).sum() >= 4
    assert (found.values == x[found.positions % rows * rows + found.positions // rows]).all()


def test_fewer_positions_where_the_budget_is_small():
    n = 1 << 22
    x, y = (RepeatedMemory(n, np.dtype(np.float32)).array() for _ in range(2))
    positions = drawn_positions((n,), 3)
    kept = []
    for budget_s in (0.01, 0.1):
        found = deferred(lambda: heavy[(n // 4096,)](x, y, n, 20, 4096))
        found.budget_s = budget_s
        kept.append(np.isin(positions, found.values_at(y, positions, 0).positions).sum())
    assert 4 <= kept[0] < kept[1]


def test_programs_beyond_the_budget_are_refused_with_both_figures():
    x, y = np.ones(64, np.float32), np.ones(64, np.float32)
    found = deferred(lambda: heavy[(4,)](x, y, 64, 20_000, 16))
    with pytest.raises(NotSampledError, match=r"takes about 0\.4 s, and sampled values may take 0\.2 s"):
        found.values_at(y, np.array([0, 20, 40, 60]), 0)


def test_memory_of_launches_that_are_not_computed_is_known():
    x, y, other = (np.zeros(64, np.float32) for _ in range(3))
    found = deferred(lambda: doubled[(4,)](x, y, 64, 16))
    assert (found.touches(x[3:]), found.touches(y), found.touches(other)) == (True, True, False)
    found.compute_all("a copy")
    assert (found.calls, found.touches(y)) == ([], False)
