"""Barriers of all programs in the engine: no pipe goes on before the last one has arrived; the wait is a gap for a flag."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.errors import RunError
from ascendtile.simulator.timing.engine.engine import FLAG, REASONS, simulate

from .engine_builder import MTE2, MTE3, Builder, S, V, machine, of_parts, times
from .engine_reference import Reference


def test_the_last_one_to_come_lets_all_go_on():
    """Three programs work 10, 70 and 40 cycles to a barrier, and then 5; these start 3 cycles after the last has arrived."""
    b = Builder()
    work = b.fixed(V, programs=(10, 70, 40))
    met = b.barrier(S, latency=3, data=[work])
    after = b.fixed(V, 5, data=[met])
    found = b.run(machine(cores=3), 3)
    assert [times(found, after, p).start for p in range(3)] == [73] * 3
    assert found.cycles == 78
    assert found.stalls[:, S, FLAG].tolist() == [70, 0, 70]
    assert found.stalls[:, S, REASONS.index("data")].tolist() == [0, 70, 0]
    assert found.busy[:, S].tolist() == [0, 0, 0]


def test_kinds_of_barriers_do_not_mix():
    """MTE3 of program 0 waits for no other pipe; S of both programs wait for each other."""
    first, second = Builder(), Builder()
    first.barrier(MTE3, kind=1)
    first.barrier(S, kind=0, data=[first.fixed(V, 20)])
    second.barrier(S, kind=0, data=[second.fixed(V, 50)])
    found = simulate(machine(cores=2), [first.group([0]), second.group([1])], timeline_limit=100)
    assert times(found, 0, 0).done == 0
    assert times(found, 2, 0).done == times(found, 1, 1).done == 50


def test_one_that_nobody_else_comes_to_hangs():
    """Two programs for one core: the second cannot come."""
    b = Builder()
    b.barrier(S)
    with pytest.raises(RunError, match="hang: core 0 cannot go on with program 0"):
        b.run(machine(cores=1), 2)


@st.composite
def programs_with_barriers(draw):
    """Programs of one trace with their own times: loads, work, barriers in between, stores."""
    programs = draw(st.integers(1, 4))
    numbers = st.lists(st.integers(0, 60), min_size=programs, max_size=programs)
    b, before, who = Builder(), [], draw(st.sampled_from((S, V)))
    for _ in range(draw(st.integers(1, 4))):
        before = before[-2:]
        before.append(b.transfer(MTE2, programs=draw(numbers), data=before[:1]))
        before.append(b.fixed(V, programs=draw(numbers), latency=draw(st.integers(0, 9)), data=before))
        if draw(st.booleans()):
            before.append(b.barrier(who, latency=draw(st.integers(0, 5)), data=before))
        before.append(b.transfer(MTE3, programs=draw(numbers), data=before))
    on = machine(cores=4, hbm=draw(st.sampled_from((8, 12, 1e9))), cross=draw(st.integers(0, 4)), issue=1)
    return on, [b.part(programs)]


@given(programs_with_barriers())
def test_barriers_agree_with_the_slow_simulator(drawn):
    on, parts = drawn
    found, slow = simulate(on, of_parts(parts), timeline_limit=1000), Reference(on, parts)
    assert found.cycles == pytest.approx(slow.cycles, abs=1e-6)
    for row in found.timeline:
        run = slow.runs[int(row["program"])]
        assert float(row["done"]) == pytest.approx(run.done[int(row["instruction"])], abs=1e-6)
    spent = found.busy.sum(axis=1) + np.delete(found.stalls, REASONS.index("bandwidth"), axis=2).sum(
        axis=(1, 2)
    )
    worked = found.core_programs > 0
    assert spent[worked] == pytest.approx(len(on.pipes) * found.core_cycles[worked], abs=1e-6)
