"""Runs of memory: what programs touch, merged, against a plain loop over bytes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.interpreter.program_order.spans import Spans, meet_each_other, meet_others

RUN = st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(1, 9))
RUNS = st.lists(RUN, max_size=12)


def spans_of(runs: list[tuple[int, int, int]], far: int = 0, cuts: int = 1) -> Spans:
    """In batches; `far`: distance of the second half of the addresses, and of program numbers."""
    out = Spans()
    for k in range(0, len(runs), cuts):
        program, low, size = np.array(runs[k : k + cuts], np.int64).T
        low, program = low + far * (low >= 20), program + (far >> 20)
        out.add(program, low, low + size)
    return out


def touched(runs: list[tuple[int, int, int]]) -> set[tuple[int, int]]:
    return {(p, b) for p, low, size in runs for b in range(low, low + size)}


@pytest.mark.parametrize("far", [0, 1 << 44])  # so far that addresses go by rank
@given(runs=RUNS, cuts=st.integers(1, 4))
def test_merged_runs_hold_the_same_bytes_and_neither_overlap_nor_touch(
    far: int, runs: list[tuple[int, int, int]], cuts: int
) -> None:
    runs = [(p, low // 2 if low < 20 else low, size) for p, low, size in runs]  # those below 20 end there
    program, low, high = spans_of(runs, far, cuts).merged()
    near = low < 20
    low, high = np.where(near, low, low - far), np.where(near, high, high - far)
    found = list(zip((program - (far >> 20)).tolist(), low.tolist(), high.tolist(), strict=True))
    assert touched([(p, a, b - a) for p, a, b in found]) == touched(runs)
    assert found == sorted(found)
    assert all(p != q or b < c for (p, _, b), (q, c, _) in itertools.pairwise(found))


@given(runs=RUNS)
def test_programs_meet_where_a_byte_is_of_two(runs: list[tuple[int, int, int]]) -> None:
    owners: dict[int, set[int]] = {}
    for p, b in touched(runs):
        owners.setdefault(b, set()).add(p)
    assert meet_each_other(spans_of(runs)) == any(len(x) > 1 for x in owners.values())


@given(mine=RUNS, of_others=st.lists(st.integers(0, 3), max_size=12))
def test_what_programs_read_meets_what_others_write(
    mine: list[tuple[int, int, int]], of_others: list[int]
) -> None:
    written = [(p, 4 * k, 4) for k, p in enumerate(of_others)]  # each byte is of one program
    owner = {b: p for p, b in touched(written)}
    expected = any(owner.get(b, p) != p for p, b in touched(mine))
    assert meet_others(spans_of(mine), spans_of(written)) == expected


def test_a_batch_that_is_added_later_counts() -> None:
    spans = spans_of([(0, 0, 4)])
    assert len(spans.merged()[0]) == 1
    spans.add(np.array([1]), np.array([2]), np.array([3]))
    assert meet_each_other(spans)
