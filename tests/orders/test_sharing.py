"""Programs meet where one writes what another one touches."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.orders.sharing import Sharing

accesses = st.lists(
    st.tuples(st.integers(0, 3), st.booleans(), st.lists(st.integers(0, 7), min_size=1, max_size=3)),
    max_size=8,
)


@given(accesses)
def test_programs_meet_where_a_pair_of_accesses_says_so(every):
    """Accesses come program by program."""
    every = sorted(every, key=lambda x: x[0])
    sharing, memory = Sharing(), np.zeros(8, np.int64)
    for program, writes, at in every:
        sharing.access(memory, np.array(at), program, writes)
    meet = any(
        a[0] != b[0] and (a[1] or b[1]) and set(a[2]) & set(b[2]) for a, b in itertools.combinations(every, 2)
    )
    assert sharing.met == meet


def test_windows_of_one_array_share_its_elements():
    memory = np.zeros(8, np.int64)
    sharing = Sharing()
    sharing.access(memory[2:], np.array([1]), 0, True)
    sharing.access(memory[:3], np.array([2]), 1, True)
    assert not sharing.met
    sharing.access(memory, np.array([3]), 1, False)
    assert sharing.met
