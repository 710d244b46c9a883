"""From slots to dependencies: the hazards one by one, and no order lost by leaving out what is implied."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.timing.engine.engine import BUFFER, DATA, Lists, dependencies

Sets = list[list[int]]


def lists(sets: Sets) -> Lists:
    return Lists(np.cumsum([0, *(len(s) for s in sets)]), np.array([x for s in sets for x in s], int))


def found(
    reads: Sets,
    writes: Sets,
    clobbers: Sets | None = None,
    slots: int = 8,
    conditional: list[int] | None = None,
) -> list[list[tuple[int, int]]]:
    skips = None if conditional is None else np.isin(np.arange(len(reads)), conditional)
    d = dependencies(lists(reads), lists(writes), slots, lists(clobbers) if clobbers else None, skips)
    pairs = list(zip(d.dep.tolist(), d.dep_kind.tolist(), strict=True))
    return [pairs[a:b] for a, b in zip(d.dep_start[:-1], d.dep_start[1:], strict=True)]


def test_a_read_waits_for_the_last_writer_only() -> None:
    assert found([[], [], [0]], [[0], [0], []]) == [[], [(0, BUFFER)], [(1, DATA)]]


def test_a_write_waits_for_all_readers_since_the_last_write() -> None:
    reads, writes = [[], [0], [0], [], [0], []], [[0], [], [], [0], [], [0]]
    assert found(reads, writes)[3] == [(2, BUFFER), (1, BUFFER)]
    assert found(reads, writes)[5] == [(4, BUFFER)]


def test_a_write_waits_for_the_writer_itself_if_its_readers_may_be_skipped() -> None:
    assert found([[], [0], []], [[0], [], [0]], conditional=[1])[2] == [(1, BUFFER), (0, BUFFER)]
    assert found([[], [0], []], [[0], [], [0]])[2] == [(1, BUFFER)]


def test_a_read_of_a_slot_that_nobody_wrote_waits_for_nothing_but_is_waited_for() -> None:
    assert found([[0], []], [[], [0]]) == [[], [(0, BUFFER)]]


def test_an_update_in_place_waits_once_and_for_data() -> None:
    assert found([[], [0], [0]], [[0], [0], [0]]) == [[], [(0, DATA)], [(1, DATA)]]


def test_a_clobber_waits_like_a_write_but_does_not_become_the_writer() -> None:
    """Slots 0 and 1 share bytes. Record 2 writes slot 1; a read of slot 0 after that still names record 0."""
    assert found([[], [0], [], [0]], [[0], [], [1], []], [[], [], [0], []]) == [
        [],
        [(0, DATA)],
        [(1, BUFFER)],
        [(0, DATA)],
    ]


def test_two_halves_of_an_old_buffer_each_wait_for_its_readers_and_not_for_each_other() -> None:
    deps = found([[], [0], [], []], [[0], [], [1], [2]], [[], [], [0], [0]])
    assert deps[2:] == [[(1, BUFFER)], [(1, BUFFER)]]


def test_buffers_that_take_turns_wait_for_each_other() -> None:
    reads: Sets = [[], [0], [], [1], [], [0]]
    writes: Sets = [[0], [], [1], [], [0], []]
    clobbers: Sets = [[1], [], [0], [], [1], []]
    assert found(reads, writes, clobbers) == [
        [],
        [(0, DATA)],
        [(1, BUFFER)],
        [(2, DATA)],
        [(1, BUFFER), (3, BUFFER)],
        [(4, DATA)],
    ]


def test_a_dead_buffer_with_many_readers_is_waited_for_once() -> None:
    """A thousand reads of slot 0, then a thousand writes of slot 1 in its bytes: not a million
    dependencies."""
    n = 1000
    reads, writes = [[], *[[0]] * n, *[[]] * n], [[0], *[[]] * n, *[[1]] * n]
    clobbers = [[], *[[]] * n, *[[0]] * n]
    d = dependencies(lists(reads), lists(writes), 2, lists(clobbers))
    assert len(d.dep) == n + n + (n - 1)


def hazards(reads: Sets, writes: Sets, clobbers: Sets) -> list[set[int]]:
    """What each record has to wait for by the definition of a hazard, nothing left out."""
    found_by_rule = []
    for r in range(len(reads)):
        waits: set[int] = set()
        for slot in reads[r]:
            waits |= set([q for q in range(r) if slot in writes[q]][-1:])
        for slot in [*writes[r], *clobbers[r]]:
            last = max((q for q in range(r) if slot in writes[q]), default=-1)
            waits |= {q for q in range(last, r) if q >= 0 and (q == last or slot in reads[q])}
        found_by_rule.append(waits)
    return found_by_rule


def closure(waits: list[set[int]], through: Callable[[int], bool] = lambda q: True) -> list[set[int]]:
    """All that follows: waiting for q is waiting for what q waits for, if one may go through q."""
    closed: list[set[int]] = []
    for own in waits:
        closed.append(own.union(*(closed[q] for q in own if through(q))))
    return closed


slot_sets = st.lists(st.integers(0, 4), max_size=3)


@given(st.lists(st.tuples(slot_sets, slot_sets, slot_sets), max_size=14), st.sets(st.integers(0, 13)))
def test_what_is_left_out_is_implied(records: list[tuple[list[int], ...]], skipped: set[int]) -> None:
    """With everything that follows from them, the dependencies are those of the definition, no more.

    Records that may be skipped imply nothing: every hazard must also hold without going through them.
    """
    reads, writes, clobbers = ([list(record[i]) for record in records] for i in range(3))
    own = [[q for q, _ in deps] for deps in found(reads, writes, clobbers, conditional=sorted(skipped))]
    assert all(len(set(deps)) == len(deps) for deps in own)
    waits, expected = [set(deps) for deps in own], hazards(reads, writes, clobbers)
    assert closure(waits) == closure(expected)
    for sure, wanted in zip(closure(waits, lambda q: q not in skipped), expected, strict=True):
        assert wanted <= sure


def test_bad_lists_are_refused() -> None:
    with pytest.raises(UsageError, match=r"writes has slot 8, there are 8 slots"):
        found([[]], [[8]])
    with pytest.raises(UsageError, match=r"writes has 2 records, reads has 1"):
        found([[]], [[0], [0]])
    with pytest.raises(UsageError, match=r"start\[2\] is 1, less than 2 before it"):
        Lists(np.array([0, 2, 1, 2]), np.array([0, 0]))
    with pytest.raises(UsageError, match=r"must run from 0 to 2"):
        Lists(np.array([0, 1]), np.array([0, 0]))


def test_no_records_have_no_dependencies() -> None:
    assert found([], []) == []
