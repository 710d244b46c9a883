"""Loops whose programs have different trip counts, or that differ from some iteration on: what is alike is lowered once."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.timing.lowering.loops import LoopLowering
from ascendtile.simulator.timing.trace.lanes import IterationLanes, even, ranges_of_trip_counts
from ascendtile.simulator.timing.trace.tree import Cut, Instruction

from .test_loops import check, kernels, shapes


@sim.jit
def tiles(x_ptr, out_ptr, count, deep, last, BLOCK: tl.constexpr, TAIL: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sums of rows, taken in turn, by pointers that move; the last row of all is shorter."""
    for row in range(tl.program_id(0), count, tl.num_programs(0)):
        total = tl.zeros((BLOCK,), tl.float32)
        at = x_ptr + row * deep * BLOCK + tl.arange(0, BLOCK)
        iterations = deep
        if TAIL:
            iterations = last if row == count - 1 else deep
        for _ in range(0, iterations):
            total += tl.load(at).to(tl.float32)
            at += BLOCK
        tl.store(out_ptr + row * BLOCK + tl.arange(0, BLOCK), total)


@sim.jit
def wider(x_ptr, out_ptr, iterations, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Steps that grow, so that no iteration adds what the one before did."""
    at = tl.program_id(0) * BLOCK
    step = 1
    for iteration in range(0, iterations):
        x = tl.load(x_ptr + at + tl.arange(0, BLOCK))
        tl.store(out_ptr + iteration * BLOCK + tl.arange(0, BLOCK), x)
        at += step
        step += 2


def bodies_lowered(work: Any) -> int:
    """How often a body is lowered for many iterations at once."""
    bodies = 0
    body = LoopLowering._body

    def counted(*args: Any) -> None:
        nonlocal bodies
        bodies += 1
        body(*args)

    with mock.patch.object(LoopLowering, "_body", counted):
        check(work)
    return bodies


def on_tiles(programs: int, count: int, deep: int, last: int, tail: bool) -> Any:
    def work() -> None:
        with sim.device("ascend910b3", values=False):
            tiles[(programs,)](
                *shapes(count * deep * 64), *shapes(count * 64, dtype="float32"), count, deep, last, BLOCK=64, TAIL=tail
            )  # fmt: skip

    return work


def test_programs_with_one_iteration_less_are_lowered_with_the_others() -> None:
    """20 programs take 5 or 6 rows: the outer body is lowered once, and the inner one."""
    assert bodies_lowered(on_tiles(20, 117, 30, 0, False)) == 2


def test_iterations_before_the_one_that_differs_are_lowered_at_once() -> None:
    """Of the rows of one program the last has a shorter loop: two loops over rows are lowered at once, and its own loop."""
    assert bodies_lowered(on_tiles(1, 12, 30, 9, True)) == 3


@given(st.integers(1, 7), st.integers(1, 30), st.integers(1, 12), st.integers(0, 12), st.booleans())
def test_rows_of_any_number(programs: int, count: int, deep: int, last: int, tail: bool) -> None:
    check(on_tiles(programs, count, deep, min(last, deep), tail))


@pytest.mark.drawn(1)
@pytest.mark.parametrize("iterations", [2, 9, 40])
def test_what_does_not_grow_evenly_is_found_out(iterations: int) -> None:
    def work() -> None:
        with sim.device("ascend910b3", values=False):
            wider[(3,)](*shapes(1 << 14), *shapes(1 << 14), iterations, BLOCK=64)

    check(work)


@pytest.mark.exhaustive
def test_uneven_products_are_lowered_twice_at_most() -> None:
    """Stretches of a loop around a loop with a sum in L0C and a pointer that moves."""

    def work() -> None:
        with sim.device("ascend910b3", values=False):
            sizes = {"EVEN": True, "BIAS": False, "BM": 32, "BN": 32, "BK": 32}
            kernels.product[(7,)](*shapes((320, 512), (512, 320), (320, 320)), 320, 320, 512, **sizes)

    assert bodies_lowered(work) == 2


trip_counts = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any)


@given(trip_counts)
def test_every_program_has_a_lane_for_each_of_its_iterations(trip_count: list[int]) -> None:
    found = IterationLanes(ranges_of_trip_counts(np.array(trip_count)))
    lanes = sorted(zip(found.iteration.tolist(), found.index.tolist(), strict=True))
    assert lanes == sorted((t, p) for p, n in enumerate(trip_count) for t in range(n))
    assert (np.diff(found.iteration) >= 0).all()
    assert found.trip_count == max(trip_count)


@given(trip_counts, st.integers(1, 3))
def test_a_range_takes_its_own_lanes_of_each_row(trip_count: list[int], rows: int) -> None:
    found = IterationLanes(ranges_of_trip_counts(np.array(trip_count)))
    lanes, done = len(found.index), 0
    numbers = np.arange(rows * lanes) + 100
    for part in found.parts:
        end = done + part.trip_count * len(part.programs)
        (cut,) = Cut(lanes, done, end).body([Instruction(0, 0, numbers)])
        assert np.atleast_1d(cut.occupancy).tolist() == [
            100 + r * lanes + i for r in range(rows) for i in range(done, end)
        ]
        done = end


def test_one_range_is_all_iterations_of_all_programs() -> None:
    found = even(3, 2)
    assert found.index.tolist() == [0, 1, 2, 0, 1, 2]
    assert found.iteration.tolist() == [0, 0, 0, 1, 1, 1]
