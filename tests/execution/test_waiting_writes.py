"""Programs that add floats to the same memory, or store there, run together, with the bits of running in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.interpreter import lanes
from ascendtile.simulator.interpreter.two_cores.flags import scheduling
from ascendtile.simulator.launch import prepare

from .runs import launch, run

f32 = np.float32


@sim.jit
def sums(total, x, items, tiles, B: tl.constexpr):
    lane = tl.arange(0, B)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        tl.atomic_add(total + item % tiles * B + lane, tl.load(x + item * B + lane), mask=lane < B - 1)


@sim.jit
def sums_that_look(total, x, items, tiles, B: tl.constexpr):
    lane = tl.arange(0, B)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        p = total + item % tiles * B + lane
        tl.atomic_add(p, tl.load(x + item * B + lane) + tl.load(p))


@sim.jit
def sums_through_a_table(total, x, table, items, B: tl.constexpr):
    lane = tl.arange(0, B)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        tl.atomic_add(total + tl.load(table + lane), tl.load(x + item * B + lane))


@sim.jit
def sums_and_stores(total, x, items, tiles, B: tl.constexpr):
    lane = tl.arange(0, B)
    tl.store(total + tl.program_id(0) + lane, tl.load(x + lane))
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        tl.atomic_add(total + item % tiles * B + lane, tl.load(x + item * B + lane))


def drawn(items: int, tiles: int, seed: int, dtype: Any = f32) -> tuple[np.ndarray, np.ndarray]:
    """Sums that are zero, and terms of many sizes: another order of additions gives other bits."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(items * 8) * 2.0 ** rng.integers(-6, 7, items * 8)
    return np.zeros(tiles * 8, dtype), x.astype(dtype)


def schedule_of(kernel: Any, programs: int, *args: Any, **kw: Any) -> Any:
    call = prepare(kernel, (programs,), args, kw)
    return scheduling(call.program, call.grid, call.arguments, call.device.step_limit)


@given(
    st.integers(2, 9),
    st.integers(1, 40),
    st.integers(1, 5),
    st.sampled_from((f32, np.float16)),
    st.integers(0, 99),
)
def test_same_bits_as_one_program_after_the_other(
    programs: int, items: int, tiles: int, dtype: Any, seed: int
) -> None:
    total, x = drawn(items, tiles, seed, dtype)
    want, *_ = run(sums, (programs,), total, x, items, tiles, chunk=1, B=8)
    got = total.copy()
    launch(sums, (programs,), got, x, items, tiles, B=8)
    np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


def test_they_run_together_and_the_order_would_matter() -> None:
    total, x = drawn(40, 2, 3)
    found = schedule_of(sums, 6, total, x, 40, 2, B=8)
    assert found.size > 1
    assert found.waiting
    want, *_ = run(sums, (6,), total, x, 40, 2, chunk=1, B=8)
    iterations = total.copy().reshape(2, 8)  # in turn, as programs that run together reach them
    for item in range(40):
        iterations[item % 2, :7] += x.reshape(40, 8)[item, :7]
    assert not np.array_equal(iterations.reshape(-1), want)


@pytest.mark.parametrize(
    ("kernel", "more"), [(sums_that_look, (5,)), (sums_and_stores, (5,)), (sums_through_a_table, ())]
)
def test_kernels_that_use_the_sums_otherwise_run_in_order(kernel: Any, more: tuple[int, ...]) -> None:
    total, x = drawn(30, 5, 1)
    table = (np.arange(8, dtype=np.int32),) if not more else ()
    found = schedule_of(kernel, 4, total, x, *table, 30, *more, B=8)
    assert found.size == 1
    assert not found.waiting


def test_the_order_of_a_seed_is_kept() -> None:
    total, x = drawn(40, 1, 7)
    results = []
    for seed in (None, 1, 2):
        got = total.copy()
        with sim.device(time=False, atomic_seed=seed):
            sums[(6,)](got, x, 40, 1, B=8)
        results.append(got)
    order = np.random.Generator(np.random.PCG64(1)).permutation(6)
    want = np.zeros(8, f32)
    for p in order:
        for item in range(p, 40, 6):
            want[:7] += x.reshape(40, 8)[item, :7]
    np.testing.assert_array_equal(results[1], want)
    assert not np.array_equal(results[0], results[1]) or not np.array_equal(results[1], results[2])


def test_fewer_programs_at_once_where_their_tiles_take_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    total, x = drawn(40, 2, 5)
    monkeypatch.setattr(lanes, "MOST_BYTES", 2 * 8 * 8 * 4)  # two programs of up to 8 tiles
    assert schedule_of(sums, 6, total, x, 40, 2, B=8).size == 2
    monkeypatch.setattr(lanes, "MOST_BYTES", 1)
    alone = schedule_of(sums, 6, total, x, 40, 2, B=8)
    assert alone.size == 1
    assert not alone.waiting


@sim.jit
def overlapping_stores(out, x, items, tiles, B: tl.constexpr):
    lane = tl.arange(0, B)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        tl.store(out + item % tiles * B // 2 + lane, tl.load(x + item * B + lane), mask=lane < B - 1)


@sim.jit
def stores_of_rows_from_a_table(out, x, table, items, B: tl.constexpr):
    lane = tl.arange(0, B)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        row = tl.load(table + item)
        tl.store(out + item % 3 * B // 2 + lane, tl.load(x + row * B + lane))


@sim.jit
def stores_that_look(out, x, items, tiles, B: tl.constexpr):
    lane = tl.arange(0, B)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        p = out + item % tiles * B + lane
        tl.store(p, tl.load(x + item * B + lane) + tl.load(p))


@given(st.integers(2, 9), st.integers(1, 30), st.integers(1, 5), st.integers(0, 99))
def test_of_overlapping_stores_that_of_the_last_program_stays(
    programs: int, items: int, tiles: int, seed: int
) -> None:
    out, x = drawn(items, tiles, seed)
    want, *_ = run(overlapping_stores, (programs,), out, x, items, tiles, chunk=1, B=8)
    got = out.copy()
    launch(overlapping_stores, (programs,), got, x, items, tiles, B=8)
    np.testing.assert_array_equal(got, want)


@given(st.integers(2, 5), st.integers(0, 99))
def test_stores_wait_too_where_addresses_are_data(programs: int, seed: int) -> None:
    out, x = drawn(20, 2, seed)
    table = np.random.default_rng(seed).permutation(20).astype(np.int32)
    want = out.copy()
    for p in range(programs):
        for item in range(p, 20, programs):
            want[item % 3 * 4 :][:8] = x.reshape(20, 8)[table[item]]
    stores_of_rows_from_a_table[(programs,)](out, x, table, 20, B=8)
    np.testing.assert_array_equal(out, want)


def test_stores_run_together_unless_the_kernel_reads_what_it_stores() -> None:
    out, x = drawn(30, 5, 1)
    assert schedule_of(overlapping_stores, 4, out, x, 30, 5, B=8).size > 1
    assert schedule_of(stores_that_look, 4, out, x, 30, 5, B=8).size == 1
