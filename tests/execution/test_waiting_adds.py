"""Programs that add floats to the same memory in loops run together, and give the bits of running one after the other."""

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
