"""Spaces: declared values, numbering, rules with counts, and what an empty one says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.errors import UsageError
from ascendtile.tiling import Rule, Space, choices, divisors, integers, multiples, powers_of_two


def test_declared_values():
    assert powers_of_two(3, 33) == (4, 8, 16, 32)
    assert integers(5, 14, 3) == (5, 8, 11, 14)
    assert multiples(48, 50, 200) == (96, 144, 192)
    assert divisors(60, 4, 20) == (4, 5, 6, 10, 12, 15, 20)
    assert choices("a", 1) == ("a", 1)


@pytest.mark.parametrize(
    ("declare", "values"), [(powers_of_two, (8, 4)), (integers, (1, 5, 0)), (divisors, (6, 0))]
)
def test_wrong_ranges_are_refused(declare, values):
    with pytest.raises(UsageError, match="takes 1 <= low <= high"):
        declare(*values)


axes = st.dictionaries(
    st.sampled_from("abcd"),
    st.lists(st.one_of(st.integers(1, 99), st.sampled_from("xyz")), min_size=1, max_size=4),
)


@given(axes)
def test_points_and_columns_are_all_combinations_once(given_axes):
    space = Space(given_axes)
    points = [space.point(k) for k in range(space.size)]
    assert len({tuple(p.items()) for p in points}) == space.size
    assert [space.number(p) for p in points] == list(range(space.size))
    columns = space.columns(np.arange(space.size))
    assert all([p[n] for p in points] == list(columns[n]) for n in space.axes)


@given(st.integers(2, 60), st.integers(1, 7), st.integers(1, 7))
def test_legal_points_and_counts_equal_a_loop_over_all(high, a, b):
    rules = [
        Rule("by columns", lambda x, y: (x + y) % a == 0, columns=True),
        Rule("one by one", lambda x, y: x % b == 0),
    ]
    space = Space({"x": integers(1, high), "y": (1, 2, 3)}, rules)
    every = [space.point(k) for k in range(space.size)]
    first = [p for p in every if (p["x"] + p["y"]) % a == 0]
    both = [p for p in first if p["x"] % b == 0]
    if not both:
        with pytest.raises(UsageError, match="the space is empty"):
            space.legal()
        return
    legal, refused = space.legal()
    assert [space.point(int(k)) for k in legal] == both
    counts = {"by columns": len(every) - len(first), "one by one": len(first) - len(both)}
    assert refused == {n: c for n, c in counts.items() if c}
    assert all((space.allowed(k) is None) == (space.point(k) in both) for k in range(space.size))


def test_empty_space_names_the_rule_that_removed_the_last_point():
    small, odd = Rule("small", lambda x: x < 3), Rule("odd", lambda x: x > 7)
    with pytest.raises(
        UsageError, match=r"of 4 points 'small' refused 2, 'odd' refused 2; 'odd' removed the last"
    ):
        Space({"x": (1, 2, 4, 8)}, [small, odd]).legal()


def test_axis_without_values_and_space_too_large_to_list():
    with pytest.raises(UsageError, match="axis 'x' of the space has no value"):
        Space({"x": ()})
    with pytest.raises(UsageError, match=r"narrow an axis .*'x' has 5000 values.*or sample"):
        Space({"x": range(5000), "y": range(4999)}).legal()


def test_a_rule_that_does_not_take_the_point_says_so():
    with pytest.raises(UsageError, match="does not take the point"):
        Space({"x": (1, 2)}, [lambda other: True]).legal()


def test_digits_and_numbers_are_inverse():
    space = Space({"a": (1, 2, 3), "b": ("x",), "c": (True, False)})
    for number in range(space.size):
        assert space.joined(space.digits(number)) == number == space.number(space.point(number))


def test_a_space_whose_points_have_no_numbers_is_refused_in_words():
    with pytest.raises(UsageError, match=r"the space has 1.2e\+24 points, more than 4.6e\+18 have no number"):
        Space({f"b{k}": powers_of_two(1, 1 << 15) for k in range(20)})
