"""Slots that alternate: which copy an iteration has."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.timing.trace.rotating import Rotating
from ascendtile.simulator.timing.trace.tree import Instruction, Loop

choices = st.lists(st.integers(0, 9).map(lambda s: (s,)), min_size=1, max_size=4).map(tuple)
gains = st.dictionaries(st.sampled_from("ab"), st.integers(0, 5))


@given(choices, st.integers(0, 20), gains, st.integers(0, 9))
def test_after_some_iterations_it_is_the_copy_of_the_count_then(
    copies: tuple[tuple[int], ...], count: int, by: dict[str, int], iterations: int
) -> None:
    rotating = Rotating()
    slot = rotating.number(copies, "a", count)
    then = count + iterations * by.get("a", 0)
    assert rotating.now(slot) == copies[count % len(copies)][0]
    assert rotating.now(rotating.after(slot, by, iterations)) == copies[then % len(copies)][0]
    assert rotating.after(7, by, iterations) == 7  # a slot that does not rotate


@given(choices, st.integers(0, 20), st.integers(0, 4))
def test_counts_that_mean_the_same_copy_have_one_number(
    copies: tuple[tuple[int], ...], count: int, rounds: int
) -> None:
    rotating = Rotating()
    assert (
        rotating.number(copies, "a", count)
        == rotating.number(copies, "a", count + rounds * len(copies))
        == -1
    )
    assert len(rotating.meaning) == 1


@given(choices, st.integers(0, 9), gains, st.integers(0, 5), st.integers(0, 5))
def test_later_and_later_still_is_later_by_both(
    copies: tuple[tuple[int], ...], count: int, by: dict[str, int], first: int, more: int
) -> None:
    rotating = Rotating()
    slot = rotating.number(copies, "b", count)
    x = Instruction(0, 0, 1.0, reads=(slot, 3), writes=(4,), clobbers=(slot,))
    body = [x, Loop(2, [x], {"b": 1})]
    twice = rotating.later(rotating.later(body, by, first), by, more)
    assert twice == rotating.later(body, by, first + more)
    assert rotating.counters(body) == {"b"}
    assert twice[0].reads[1] == 3
