"""Loops that hand tiles to and fro between Cube and Vector: their stages run some iterations ahead of each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.timing.trace.repeats import Repeats
from ascendtile.simulator.timing.trace.rotating import Rotating
from ascendtile.simulator.timing.trace.staged import staged
from ascendtile.simulator.timing.trace.tree import Loop


@sim.jit
def two_products(a, b, c, out, n, K: tl.constexpr, SQUARED: tl.constexpr):
    i = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    total = tl.zeros((32, 32), tl.float32)
    left = tl.load(a + i)
    for k in range(n):
        s = tl.dot(left, tl.load(b + k * 1024 + i))
        p = tl.exp(s - tl.max(s, 1)[:, None])
        scale = tl.sum(p, 1)
        if SQUARED:
            p = p * p
        total = total * scale[:, None] + tl.dot(p.to(tl.float16), tl.load(c + k * 1024 + i))
    tl.store(out + i, total)


@sim.jit
def each_needs_the_last(a, b, out, n):
    i = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    x = tl.load(a + i)
    for k in range(n):
        x = tl.exp(tl.dot(x, tl.load(b + k * 1024 + i))).to(tl.float16)
    tl.store(out + i, x)


def timed(kernel: Any, trips: int, ahead: int, programs: int = 1, **constants: Any) -> Any:
    one, many = np.zeros((32, 32), np.float16), np.zeros((trips, 32, 32), np.float16)
    args = (one, many, many) if kernel is two_products else (one, many)
    constants = {"K": 0, "SQUARED": False} if kernel is two_products and not constants else constants
    with sim.device("ascend910b2", compiler="ascendc", workspace_copies=ahead):
        return kernel.time((programs,), *args, np.zeros((32, 32), np.float32), trips, **constants)


@given(trips=st.integers(1, 19), ahead=st.integers(2, 6), programs=st.integers(1, 30))
def test_every_iteration_of_every_stage_runs_once(trips: int, ahead: int, programs: int) -> None:
    alone, apart = (timed(two_products, trips, n, programs) for n in (1, ahead))
    assert apart.launches[0].instructions == alone.launches[0].instructions
    for name in ("AIC.M", "AIC.MTE1", "AIV.V"):
        assert apart.pipes[name].busy_cycles == pytest.approx(alone.pipes[name].busy_cycles, rel=1e-9)


def test_nobody_waits_for_the_tile_that_was_sent_last() -> None:
    times = [timed(two_products, 64, n).cycles for n in (1, 2, 4)]
    assert times[1] < 0.8 * times[0]
    assert times[2] < times[1]


def test_what_the_next_iteration_needs_is_waited_for() -> None:
    assert timed(each_needs_the_last, 32, 4).cycles == pytest.approx(timed(each_needs_the_last, 32, 1).cycles)


def test_a_value_that_a_later_stage_reads_has_a_place_for_each_iteration_under_way() -> None:
    one, four = (timed(two_products, 32, n).buffers["UB"] for n in (1, 4))
    assert four.placed_bytes > one.placed_bytes


def test_the_compiler_takes_turns() -> None:
    x = np.zeros((32, 32, 32), np.float16)
    args = (x[0], x, x, np.zeros((32, 32), np.float32), 32)
    with sim.device("ascend910b2"):
        usual = two_products.time((1,), *args, K=0, SQUARED=False)
    with sim.device("ascend910b2", compiler="ascendc"):
        assert two_products.time((1,), *args, K=0, SQUARED=False).cycles < 0.8 * usual.cycles


def expanded(repeats: Repeats, code: list[int], rows: tuple[int, ...] = ()) -> list[tuple[int, int]]:
    """(stage, iteration) of all instructions, as the engine decodes them."""
    out = []
    for c in code:
        if c < 0:
            trip_count, body, _ = repeats.loops[-1 - c]
            for k in range(trip_count):
                out += expanded(repeats, list(body), (k, *rows))
        else:
            key = repeats.keys[c]
            out.append((key[9], key[3] + sum(s * r for s, r in zip(key[8], rows, strict=True))))
    return out


@given(trips=st.integers(1, 40), ahead=st.integers(2, 8), stages=st.integers(1, 7))
def test_rows_of_numbers_follow_their_iterations(trips: int, ahead: int, stages: int) -> None:
    assume(ahead >= (stages + 1) // 2)  # else a loop runs as a whole (`Stages.rounds`)
    keys: list[tuple[Any, ...]] = []
    repeats = Repeats(keys, Rotating())

    def number(key: tuple[Any, ...]) -> int:
        if key not in keys:
            keys.append(key)
        return keys.index(key)

    codes = {s: (number((0.0, 0.0, 0.0, 0, -1, 1, 1, ((), (), ()), (1,), s, -1, -1)),) for s in range(stages)}
    found = expanded(repeats, staged(repeats, number, codes, Loop(trips, [], {}, ahead), 0))
    assert sorted(found) == [(s, i) for s in range(stages) for i in range(trips)]
    place = {x: n for n, x in enumerate(found)}
    for s in range(1, stages):
        assert all(place[s - 1, i] < place[s, i] for i in range(trips))
        assert all(place[s, i] < place[0, i + ahead] for i in range(trips - ahead))
    if stages == 4 and ahead >= 2:  # the core of a chunk's first round does not wait for its second one
        size = ahead // 2
        chunks = trips // size
        assert all(place[0, k * size] < place[2, (k - 1) * size] for k in range(1, chunks))


@sim.jit
def two_products_each(a, b, c, out, counts, first, step, LOADED: tl.constexpr):
    """As `two_products`, with trip counts of each program."""
    i = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    total = tl.zeros((32, 32), tl.float32)
    left = tl.load(a + i)
    n = tl.load(counts + tl.program_id(0)) if LOADED else first + step * tl.program_id(0)
    for k in range(n):
        p = tl.exp(tl.dot(left, tl.load(b + k * 1024 + i)))
        total += tl.dot(p.to(tl.float16), tl.load(c + k * 1024 + i))
    tl.store(out + tl.program_id(0) * 1024 + i, total)


def each(first: int, step: int, programs: int = 8, loaded: bool = False) -> Any:
    longest = first + step * (programs - 1)
    one, many = np.zeros((32, 32), np.float16), np.zeros((longest, 32, 32), np.float16)
    counts = (
        np.arange(first, longest + 1, step or 1, np.int32) if step else np.full(programs, first, np.int32)
    )
    out = np.zeros((programs, 32, 32), np.float32)
    with sim.device("ascend910b2", compiler="ascendc"):
        return two_products_each[(programs,)](one, many, many, out, counts, first, step, LOADED=loaded)


@given(first=st.integers(1, 30), step=st.integers(0, 3))
@settings(max_examples=12, deadline=None)
def test_trip_counts_of_their_own_take_no_longer_than_the_longest_for_all(first: int, step: int) -> None:
    assert each(first, step).cycles <= 1.02 * each(first + 7 * step, 0).cycles


def test_one_iteration_more_takes_longer() -> None:
    times = [each(n, 0, 1).cycles for n in range(1, 14)]
    assert times == sorted(times)
    assert times[-1] < 0.6 * 13 * times[0]


def test_it_does_not_matter_how_a_trip_count_becomes_known() -> None:
    assert each(16, 0, loaded=True).cycles == pytest.approx(each(16, 0).cycles, rel=0.1)
