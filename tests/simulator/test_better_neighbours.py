"""On kernels with a better neighbour, found by timing all of them, the line `try` names it."""

from __future__ import annotations

import pytest

import ascendtile.simulator as sim
from ascendtile.reports.facts.advice import tried

from .neighbour_kernels import LAUNCHES

WORTH = 0.98  # of the time: what is better by less is none


def neighbours(launched):
    """Knob and value -> time with it, of every size twice and half as large that can be launched."""
    found = {}
    for name, now in launched.sizes.items():
        for other in (2 * now, now // 2):
            sizes = {**launched.sizes, **launched.shapes, name: other}
            if other:
                try:
                    run = launched.kernel.time(launched.grid(sizes), *launched.arguments, **sizes)
                except sim.AscendtileError:
                    continue
                found[name, other] = run.time_us
    return found


def test_there_are_thirty():
    assert len(LAUNCHES) >= 30


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", LAUNCHES)
def test_try_names_the_better_neighbour(name):
    launched = LAUNCHES[name]
    given = launched.grid_as_given(), *launched.arguments
    with sim.device("ascend910b3", details=False):
        times = neighbours(launched)
    with sim.device("ascend910b3", explain=True, details=False, timeline=0):
        run = launched.kernel.time(*given, **launched.sizes, **launched.shapes)
    (knob, value), best_us = min(times.items(), key=lambda item: item[1])
    assert best_us < WORTH * run.time_us, "no neighbour is better: the launch proves nothing"
    named = {c.knob: c for c in tried.helpful(run)[: tried.MOST_KNOBS]}
    assert knob in named, (knob, value, tried.advice(run), run.untried)
    assert run.changes[named[knob].text] <= best_us
    assert f"{knob} {launched.sizes[knob]} -> {named[knob].value}" in tried.advice(run)
    assert not {c.knob for c in tried.changes(run)} & set(
        launched.shapes
    )  # sizes of the data are not proposed
