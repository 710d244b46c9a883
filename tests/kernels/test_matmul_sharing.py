"""How many cores read the same tile: as counted one by one, from the order in which the kernel hands out tiles."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ascendtile.kernels.matmul.loads import sharing


def tiles_in_order(down, across, group, split):
    """(part, row, column) of each tile, as bands of `group` rows that are taken column by column."""
    for part in range(split):
        for first in range(0, down, group):
            for column in range(across):
                for row in range(first, min(down, first + group)):
                    yield part, row, column


def counted(down, across, group, split, cores, operand):
    """Readers of each tile's operand (1: of a, by row; 2: of b, by column), round by round."""
    tiles = list(tiles_in_order(down, across, group, split))
    rounds = [tiles[k : k + cores] for k in range(0, len(tiles), cores)]
    out = []
    for some in rounds:
        readers = Counter((t[0], t[operand]) for t in some)
        out.append([(t, readers[t[0], t[operand]]) for t in some])
    return out


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from((1, 2, 4, 8)),
    st.sampled_from((1, 2)),
    st.integers(1, 12),
    st.booleans(),
    st.booleans(),
)
def test_as_counted_one_by_one(down, across, group, split, cores, cut_m, cut_n):
    columns = (np.array([x]) for x in (down, across, group, split, cores))
    found = sharing(*columns, (np.array([cut_m]), np.array([cut_n])))
    for operand, length, cut, got in ((1, down, cut_m, found[0]), (2, across, cut_n, found[1])):
        rounds = counted(down, across, group, split, cores, operand)
        every = [n for some in rounds for _, n in some]
        whole = [n for some in rounds for t, n in some if t[operand] < length - cut]
        averages = [np.mean(every), np.mean([np.mean([n for _, n in some]) for some in rounds])]
        averages += [np.mean(whole)] if whole else []
        assert got[0] == pytest.approx(min(averages))


def test_products_of_very_many_tiles_count_as_not_shared():
    one = np.array([1])
    a, b = sharing(200 * one, 200 * one, one, one, 20 * one, (0 * one, 0 * one))
    assert (a[0], b[0]) == (1.0, 1.0)
