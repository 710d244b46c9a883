"""Programs longer than what the engine keeps of them at one time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.timing.engine.engine import Machine, simulate

from .engine_builder import Part, Records, of_parts
from .engine_reference import Reference
from .engine_strategies import machines
from .test_engine_reference import agree

ROWS = 100_000


def long_part(machine: Machine, records: int, programs: int, far: int, seed: int) -> Part:
    """Records that wait for some of the `far` before them, now and then for the very first ones; a fifth is skipped."""
    rng = np.random.default_rng(seed)
    waits = np.minimum(rng.integers(0, 4, records), np.arange(records))
    owner = np.repeat(np.arange(records), waits)
    near = np.maximum(0, owner - rng.integers(1, far + 1, len(owner)))
    dep = np.where(rng.random(len(owner)) < 0.1, np.minimum(rng.integers(0, 5, len(owner)), owner - 1), near)
    table = rng.integers(0, 60, (6, programs)).astype(float)
    table[3:][rng.random((3, programs)) < 0.6] = -1
    found = Records(
        pipe=rng.integers(0, len(machine.pipes), records),
        occupancy=rng.integers(0, 40, records) / 4,
        latency=rng.integers(0, 80, records) / 4,
        channel=rng.integers(-1, len(machine.channels), records)
        if machine.channels
        else np.full(records, -1),
        amount=rng.integers(0, 200, records).astype(float),
        column=np.where(rng.random(records) < 0.4, rng.integers(0, 6, records), -1),
        table=table,
        instructions=rng.integers(0, 3, records),
        line=rng.integers(0, 5, records),
        dep_start=np.cumsum([0, *waits]),
        dep=dep,
        dep_kind=rng.integers(0, 2, len(owner)),
    )
    return Part(found, np.arange(programs))


long = st.tuples(
    st.integers(1, 700), st.integers(1, 4), st.sampled_from([1, 10, 100, 600]), st.integers(0, 1 << 30)
)


@given(machines(channels=0), long)
def test_a_long_program_equals_the_reference(machine: Machine, size: tuple[int, int, int, int]) -> None:
    parts = [long_part(machine, *size)]
    agree(simulate(machine, of_parts(parts), ROWS), Reference(machine, parts), 0)


@given(machines(), long)
def test_a_long_program_with_transfers_agrees_with_the_reference(
    machine: Machine, size: tuple[int, int, int, int]
) -> None:
    parts = [long_part(machine, *size)]
    agree(simulate(machine, of_parts(parts), ROWS), Reference(machine, parts), 1e-9)


@given(
    machines(channels=0, cores=1), st.integers(1, 700), st.sampled_from([1, 10, 600]), st.integers(0, 1 << 30)
)
def test_lines_are_charged_what_the_timeline_says(
    machine: Machine, records: int, far: int, seed: int
) -> None:
    """Between two events busy pipes share the time; while none is busy, the last one that was is charged."""
    part = long_part(machine, records, 1, far, seed)
    result = simulate(machine, [part.group], ROWS)
    rows = result.timeline
    took = rows[rows["end"] > rows["start"]]
    times = np.unique(np.concatenate([[0.0, result.cycles], took["start"], took["end"]]))
    expected = np.zeros(int(part.records.line.max()) + 1)
    for a, b in itertools.pairwise(times):
        busy = took[(took["start"] <= a) & (took["end"] >= b)]
        if not len(busy):
            before = took[took["end"] <= a]
            if len(before):  # of several that end at once the one on the highest pipe
                busy = before[np.lexsort((before["pipe"], before["end"]))[-1:]]
            elif len(took):
                busy = took[np.lexsort((took["pipe"], took["start"]))[:1]]
            else:
                busy = rows[np.lexsort((rows["record"], -rows["done"]))[:1]]
        np.add.at(expected, part.records.line[busy["instruction"]], (b - a) / len(busy))
    assert result.line_exposed == pytest.approx(expected, rel=1e-9, abs=1e-9)
