"""The front equals what a comparison of all pairs gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.tiling.results.pareto import pareto

tables = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 4), min_size=n, max_size=n), min_size=1, max_size=30)
)


@given(tables)
def test_front_is_what_no_other_row_beats(rows):
    table = np.array(rows, float)
    front = pareto(table)

    def beaten(k: int) -> bool:
        return any((table[j] <= table[k]).all() and (table[j] < table[k]).any() for j in range(len(table)))

    assert {tuple(table[k]) for k in front} == {tuple(table[k]) for k in range(len(table)) if not beaten(k)}
    assert len({tuple(table[k]) for k in front}) == len(front)
    assert (np.diff(table[front, 0]) >= 0).all()


def test_nan_is_worse_than_any_number():
    assert list(pareto(np.array([[1.0, np.nan], [1.0, 5.0]]))) == [1]
