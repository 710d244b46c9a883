"""A loop of lanes has the records of its iterations one by one, also on the two Vector cores of a program."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.timing.costs.l2_cache import FirstTouch
from ascendtile.simulator.timing.engine.engine import ProgramGroup
from ascendtile.simulator.timing.trace.builder import TraceBuilder
from ascendtile.simulator.timing.trace.tree import BOTH, Cut, Instruction, Loop
from ascendtile.simulator.timing.trace.two_cores import Pair

from ..lowering.trace_records import Records, assert_same

PIPES, SLOTS = 2, 3


@st.composite
def loops(draw: st.DrawFn) -> tuple[int, Loop]:
    """Programs and a loop of lanes, with one inside: numbers for all, for each lane, and lanes that skip a record."""
    programs, trips, inner = draw(st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3)))

    def instruction(rows: int) -> Instruction:
        size = rows * programs
        occupancy: Any = float(draw(st.integers(1, 9)))
        each = st.lists(st.integers(1, 9), min_size=rows, max_size=rows)
        if draw(st.booleans()):
            occupancy = np.repeat(np.array(draw(each), float), programs)
        partial = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
        slots = st.lists(st.integers(0, SLOTS - 1), max_size=2, unique=True).map(tuple)
        return Instruction(
            draw(st.integers(0, PIPES - 1)), draw(st.integers(0, 2)), occupancy,
            reads=draw(slots), writes=draw(slots), clobbers=draw(slots), cores=BOTH,
            partial=partial if draw(st.booleans()) else None,
        )  # fmt: skip

    body = [instruction(trips), Loop(inner, [instruction(trips * inner)], {}), instruction(trips)]
    return programs, Loop(trips, body, {})


def records(programs: int, bodies: list[list[Any]], pair: Pair | None) -> Records:
    builder = TraceBuilder(np.arange(programs), FirstTouch(0), pair)
    for body in bodies:
        builder.take(body, None, 1)
    trace = builder.trace(2 * SLOTS)
    return Records(ProgramGroup(trace=trace, programs=np.arange(programs)))


def one_by_one(programs: int, loop: Loop) -> list[list[Any]]:
    """The body of each iteration, with the lanes of that one only."""
    out = []
    for k in range(loop.trip_count):
        cut = Cut(loop.trip_count * programs, k * programs, (k + 1) * programs)
        first, inner, last = cut.body(loop.body)
        out.append([first])
        size = inner.trip_count * programs
        out += [Cut(size, i, i + programs).body(inner.body) for i in range(0, size, programs)]
        out.append([last])
    return out


@given(loops())
def test_a_loop_has_the_records_of_its_iterations(drawn: tuple[int, Loop]) -> None:
    programs, loop = drawn
    assert_same(records(programs, [[loop]], None), records(programs, one_by_one(programs, loop), None))


def two_cores(programs: int) -> Pair:
    """All pipes and slots are there once for each Vector core."""
    return Pair(range(PIPES), lambda _: True, lambda _: False, lambda s: s + SLOTS, programs, {})


@given(loops())
def test_two_cores_each_have_the_records_of_one(drawn: tuple[int, Loop]) -> None:
    """On their own pipes and in their own slots; neither waits for the other."""
    programs, loop = drawn
    one, both = (records(programs, [[loop]], pair) for pair in (None, two_cores(programs)))
    for p in range(programs):
        done, pipes = both.done[:, p], both.fields["pipe"]
        for core in range(2):
            mine = done & (pipes // PIPES == core)
            assert np.array_equal(pipes[mine] - core * PIPES, one.fields["pipe"][one.done[:, p]])
            assert np.array_equal(both.numbers[mine, p], one.numbers[one.done[:, p], p])
            place = np.flatnonzero(mine[done]).tolist()
            waits = [both.waits(p)[r] for r in place]
            number = {r: k for k, r in enumerate(place)} | {-1: -1}
            assert [sorted((number[q], kind) for q, kind in w) for w in waits] == one.waits(p)
