"""Of a timeline that was cut, views show the cycles that it tells whole and say so; nothing of the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.reports.facts.timelines import told_part, told_text
from ascendtile.reports.html import page_of
from ascendtile.reports.html.timeline_data import timeline_data
from ascendtile.reports.html.writing import page_text
from ascendtile.reports.pictures import timeline as picture
from ascendtile.simulator.errors import UsageError

from ..support import sample_runs


@given(st.integers(1, 40), st.floats(0.25, 50, allow_nan=False))
def test_what_starts_before_that_cycle_is_kept_and_points_to_the_same(n: int, until: float) -> None:
    whole = replace(sample_runs.timeline(n), record=np.arange(n, dtype=np.int32), until=until)
    part = told_part(whole)
    assert part.record.tolist() == [k for k in range(n) if whole.start[k] < until]
    assert part.waited is not None
    assert whole.waited is not None
    for k, waited in enumerate(part.waited.tolist()):
        before = int(whole.waited[part.record[k]])
        assert (int(part.record[waited]) if waited >= 0 else -1) == (before if before in part.record else -1)


def test_a_whole_timeline_is_left_alone() -> None:
    whole = replace(sample_runs.timeline(), complete=True, until=3.0)
    assert told_part(whole) is whole
    assert told_text(sample_runs.launch(timeline=whole)) == ""


def test_the_page_draws_and_names_that_part_only() -> None:
    cut = sample_runs.launch(timeline=replace(sample_runs.timeline(9), until=5.0))
    found = timeline_data(cut)
    assert sum(lane["count"] for lane in found["lanes"]) == 5
    assert found["span"] * found["cycles_per_tick"] == 5.0
    page = page_text(page_of(sample_runs.run(launches=(cut,))))
    assert "Shown: 2 of 40 cores, the first 5 of 60,000 cycles (0 %); 5 records of instructions" in page


def test_the_picture_ends_there_and_its_title_says_so() -> None:
    run = sample_runs.run(
        launches=(sample_runs.launch(timeline=replace(sample_runs.timeline(9), until=5.0)),)
    )
    for last in (None, 1e9):
        axes = picture(run, last=last).axes[0]
        assert axes.get_xlim() == (0.0, 5.0)
        assert axes.get_title(loc="left").endswith("the first 5 of 60,000 cycles")


def test_a_timeline_without_a_whole_cycle_is_said_to_be_too_short() -> None:
    late = replace(sample_runs.timeline(3), start=np.array([7.0, 8.0, 9.0]), end=np.full(3, 9.5), until=2.0)
    run = sample_runs.run(launches=(sample_runs.launch(timeline=late),))
    assert "too short to draw" in page_text(page_of(run))
    with pytest.raises(UsageError, match="too short to draw"):
        picture(run)
