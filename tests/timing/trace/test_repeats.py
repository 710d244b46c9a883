"""Iterations that repeat become loops, and the code stays the same sequence."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.timing.trace import repeats
from ascendtile.simulator.timing.trace.builder import _loops_met
from ascendtile.simulator.timing.trace.repeats import Repeats
from ascendtile.simulator.timing.trace.rotating import Rotating

# What comes: an instruction by its number, a loop of iterations that come one by one, or "settle" between two of them.
SETTLE = "settle"


def repeated(iterations: list[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """A loop of these iterations, some times over."""
    return st.integers(1, 5).map(lambda n: tuple(iterations) * n)


bodies = st.recursive(
    st.lists(st.one_of(st.integers(0, 2), st.just(SETTLE)), max_size=3),
    lambda inner: st.lists(
        st.one_of(st.integers(0, 2), st.just(SETTLE), st.lists(inner, max_size=4).flatmap(repeated)),
        max_size=3,
    ),
    max_leaves=12,
)


def record(to: Repeats, body: list[Any], told: list[int]) -> None:
    for x in body:
        if x == SETTLE:
            to.finish()
        elif isinstance(x, int):
            to.code.append(x)
            told.append(x)
        else:
            to.begin()
            for iteration in x:
                record(to, iteration, told)
                to.next()
            to.end()


def unrolled(of: Repeats, code: Any) -> list[int]:
    out: list[int] = []
    for c in code:
        trip_count, body = (1, ()) if c >= 0 else of.loops[-1 - c][:2]
        out += [c] if c >= 0 else trip_count * unrolled(of, body)
    return out


@given(bodies.map(lambda body: [tuple([body] * 4), *body]), st.sampled_from([1, 2, 12]))
def test_the_code_unrolls_to_what_came(body: list[Any], period: int) -> None:
    to, told = Repeats([], Rotating()), list[int]()
    with mock.patch.object(repeats, "PERIOD", period):
        record(to, body, told)
        to.finish()
    assert unrolled(to, to.code) == told
    assert all(c > repeats.OPEN for c in to.code)


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3), min_size=1, max_size=12), st.integers(3, 60)
)
def test_what_repeats_after_some_iterations_is_one_loop(unit: list[list[int]], times: int) -> None:
    """However often: the code is that of a few units."""
    to, told = Repeats([], Rotating()), list[int]()
    record(to, [tuple(unit * times)], told)
    assert unrolled(to, to.code) == told
    assert len(to.code) <= 3 * sum(map(len, unit))
    assert len(_loops_met(to.code, to.loops)[1]) <= 2 * len(unit)


def test_empty_iterations_before_a_long_one_leave_no_gap() -> None:
    """Two iterations without records are a loop of nothing, which goes when one in a later loop inside is settled."""
    to, told = Repeats([], Rotating()), list[int]()
    record(to, [([], [], [([1], [1], [1, SETTLE], [1])], [2])], told)
    assert unrolled(to, to.code) == told == [1, 1, 1, 1, 2]


@pytest.mark.parametrize("copies", [1, 2, 3])
@given(st.lists(st.integers(1, 7), min_size=1, max_size=5), st.integers(0, 2))
def test_a_loop_that_goes_on_becomes_one(copies: int, trip_count: list[int], by: int) -> None:
    """Stretches of a loop whose slot alternates are one loop; where the count does not fit, another one comes."""
    rotating = Rotating()
    keys: list[tuple[Any, ...]] = []
    to, done = Repeats(keys, rotating), 0
    choices = tuple((s,) for s in range(copies))
    for n in trip_count:
        slot = rotating.number(choices, "count", done * by)
        keys.append((0.0, 0.0, 0.0, -1, -1, 1, 0, ((slot,), (), ()), (), 0, -1))
        to.append(to.loop(n, (len(keys) - 1,), (("count", by),)))
        done += n
    (code,) = to.code
    assert to.loops[-1 - code][0] == sum(trip_count)
    keys.append(
        (
            0.0,
            0.0,
            0.0,
            -1,
            -1,
            1,
            0,
            ((rotating.number(choices, "count", done * by + 1),), (), ()),
            (),
            0,
            -1,
        )
    )
    to.append(to.loop(3, (len(keys) - 1,), (("count", by),)))
    assert len(to.code) == (1 if copies == 1 else 2)
