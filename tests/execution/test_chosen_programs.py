"""Programs computed alone write the same bits as the whole grid does, and nothing else is computed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.execution.chosen.launch_parts import LaunchParts, NoPartsError
from ascendtile.simulator.execution.chosen.memory_runs import MemoryRuns
from ascendtile.simulator.launch import compute
from ascendtile.simulator.observers import watch_calls

EMPTY = np.float32(-7.0)


@sim.jit
def each_tile(x, y, n, B: tl.constexpr, P: tl.constexpr):
    for t in range(tl.program_id(0), tl.cdiv(n, B), P):
        o = t * B + tl.arange(0, B)
        v = tl.load(x + o, mask=o < n)
        tl.store(y + o, v / (1 + tl.exp(-v)), mask=o < n)


@sim.jit
def rows_in_passes(x, y, R, C, B: tl.constexpr, P: tl.constexpr):
    for r in range(tl.program_id(0), R, P):
        total = tl.zeros((B,), tl.float32)
        for c in range(0, C, B):
            o = c + tl.arange(0, B)
            total += tl.load(x + r * C + o, mask=o < C, other=0.0)
        for c in range(0, C, B):
            o = c + tl.arange(0, B)
            v = tl.load(x + r * C + o, mask=o < C, other=0.0)
            tl.store(y + r * C + o, v / tl.sum(total, 0), mask=o < C)


@sim.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    width = tl.cdiv(N, BN)
    m = tl.program_id(0) // width * BM + tl.arange(0, BM)
    n = tl.program_id(0) % width * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        left = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        right = tl.load(b + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(left, right, acc)
    tl.store(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@sim.jit
def transposed_by_table(x, y, R, C, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + o % C * R + o // C, tl.load(x + o, mask=o < n), mask=o < n)


@sim.jit
def running(x, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + o + B, tl.load(x + o, mask=o < n) + 1, mask=o + B < n)


@sim.jit
def to_where_data_say(x, where, y, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + tl.load(where + o), tl.load(x + o))


def call_of(kernel, grid, *args, **constants):
    calls = []
    with sim.device(values=False, time=False), watch_calls(calls.append):
        kernel[grid](*args, **constants)
    return calls[0]


def parts_of(call):
    return LaunchParts(call.program, call.grid, call.arguments, call.device.step_limit)


def runs(tensor, positions):
    at = tensor.ctypes.data + np.unique(positions) * tensor.itemsize
    return MemoryRuns(at, at + tensor.itemsize)


def computed(call, out, positions):
    """The chosen lanes, and the output after these alone were computed."""
    parts = parts_of(call)
    wanted = runs(out, positions)
    chosen = parts.chosen(parts.stores(wanted), np.ones(len(wanted), bool))
    compute(call, quiet=True, only=chosen)
    alone = out.copy()
    compute(call, quiet=True)
    return chosen, alone, out.copy()


def drawn_positions(data, size):
    return np.array(data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=6)))


def assert_same(positions, alone, whole):
    alone, whole = alone.reshape(-1), whole.reshape(-1)
    assert (alone[positions] == whole[positions]).all()
    written = alone != EMPTY
    assert (alone[written] == whole[written]).all()


@given(st.data(), st.integers(1, 700), st.sampled_from([16, 64]), st.integers(1, 5))
def test_tiles_of_programs_that_go_on(data, n, block, programs):
    x, y = np.random.default_rng(n).random(n, np.float32), np.full(n, EMPTY)
    call, positions = call_of(each_tile, (programs,), x, y, n, block, programs), drawn_positions(data, n)
    chosen, alone, whole = computed(call, y, positions)
    assert_same(positions, alone, whole)
    assert (alone != EMPTY).sum() <= block * len(np.unique(positions // block))
    assert sorted(chosen.programs) == sorted({t % programs for t in np.unique(positions // block)})


@given(st.data(), st.integers(1, 9), st.integers(1, 70), st.integers(1, 4))
def test_rows_in_several_passes(data, rows, columns, programs):
    x, y = np.random.default_rng(rows).random((rows, columns), np.float32), np.full((rows, columns), EMPTY)
    call = call_of(rows_in_passes, (programs,), x, y, rows, columns, 16, programs)
    positions = drawn_positions(data, y.size)
    _, alone, whole = computed(call, y, positions)
    assert_same(positions, alone, whole)
    blocks = {(int(p) // columns, int(p) % columns // 16) for p in positions}
    assert (alone != EMPTY).sum() <= 16 * len(blocks)


@given(st.data(), st.integers(1, 40), st.integers(1, 40), st.integers(1, 50))
def test_tiles_of_a_product(data, m, n, k):
    rng = np.random.default_rng(m)
    a, b, c = rng.random((m, k), np.float32), rng.random((k, n), np.float32), np.full((m, n), EMPTY)
    call = call_of(product, (-(-m // 16) * -(-n // 16),), a, b, c, m, n, k, 16, 16, 32)
    positions = drawn_positions(data, c.size)
    chosen, alone, whole = computed(call, c, positions)
    assert_same(positions, alone, whole)
    assert len(chosen.programs) == len({(p // n // 16, p % n // 16) for p in map(int, positions)})


@given(st.data(), st.integers(1, 9), st.integers(1, 30))
def test_stores_through_tables_of_addresses(data, rows, columns):
    n = rows * columns
    x, y = np.random.default_rng(n).random(n, np.float32), np.full(n, EMPTY)
    call = call_of(transposed_by_table, (-(-n // 16),), x, y, rows, columns, n, 16)
    positions = drawn_positions(data, n)
    _, alone, whole = computed(call, y, positions)
    assert_same(positions, alone, whole)


def test_what_chosen_programs_load():
    a, b, c = (np.zeros((64, 64), np.float32) for _ in range(3))
    call = call_of(product, (16,), a, b, c, 64, 64, 64, 16, 16, 32)
    parts = parts_of(call)
    wanted = runs(c, [5])
    chosen = parts.chosen(parts.stores(wanted), np.ones(1, bool))
    start = a.ctypes.data
    found = parts.loads(chosen, MemoryRuns(np.array([start]), np.array([start + a.nbytes])))
    assert (found.low.tolist(), found.high.tolist()) == ([start], [start + 16 * 64 * 4])


def test_drawn_lanes_store_to_parts_of_their_own():
    x, y = np.zeros((5, 40), np.float32), np.full((5, 40), EMPTY)
    call = call_of(rows_in_passes, (2,), x + 1, y, 5, 40, 16, 2)
    parts = parts_of(call)
    found = parts.some_stores(3, np.random.default_rng(0))
    chosen = parts.chosen(found, np.ones(5, bool))
    stored = parts.stored(chosen)
    compute(call, quiet=True, only=chosen)
    assert stored.bytes == 4 * (y != EMPTY).sum()
    assert (y[0, 0] != EMPTY, y[3, 39] != EMPTY) == (True, True)


def test_memory_that_nobody_writes_has_no_writer():
    x, y = np.zeros(64, np.float32), np.zeros(64, np.float32)
    assert not parts_of(call_of(each_tile, (1,), x, y, 40, 16, 1)).stores(runs(y, [40, 63]))


def test_work_grows_with_what_is_chosen():
    x, y = np.zeros(1 << 16, np.float32), np.zeros(1 << 16, np.float32)
    parts = parts_of(call_of(each_tile, (4,), x, y, x.size, 1024, 4))
    few, many = (runs(y, np.arange(k) * 1024) for k in (1, 64))
    work = [parts.seconds(parts.chosen(parts.stores(w), np.ones(len(w), bool))) for w in (few, many)]
    assert 0 < work[0] < work[1]


def test_programs_that_see_each_other_have_no_parts():
    x = np.zeros(64, np.float32)
    with pytest.raises(NoPartsError, match="read what others write"):
        parts_of(call_of(running, (4,), x, 64, 16)).stores(runs(x, [3]))


def test_stores_to_where_data_say_have_no_parts():
    x, y, where = np.zeros(64, np.float32), np.zeros(64, np.float32), np.arange(64, dtype=np.int32)
    parts = parts_of(call_of(to_where_data_say, (4,), x, where, y, 16))
    with pytest.raises(NoPartsError, match="depends on data"):
        parts.stores(runs(y, [3]))
