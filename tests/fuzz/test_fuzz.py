"""Nine targets: inputs of fixed numbers in the usual run, minutes of new ones for each with `-m long`."""

from __future__ import annotations

import os

import pytest

import ascendtile.simulator as sim

from . import sources
from .play import play, play_for
from .targets import TARGETS

SECONDS = float(os.environ.get("ASCENDTILE_FUZZ_SECONDS", "600"))  # of the processor, for each target
FIRST = int(os.environ.get("ASCENDTILE_FUZZ_FIRST", "0"))
FEW = 3


@pytest.mark.drawn(3)
@pytest.mark.parametrize("target", TARGETS)
def test_a_few_inputs_do_no_harm(target):
    for number in range(FEW):
        play(target, number)


@pytest.mark.parametrize("name", sources.seeds()[1])
def test_the_kernels_that_are_changed_are_right(name):
    head, found = sources.seeds()
    first, body = found[name]
    kernel = sources.compiled("\n".join([head, first, *body, ""]), name)
    with sim.device(check=True, timeline=0):
        kernel[(2,)](**sources.arguments())


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
def test_minutes_of_inputs_do_no_harm(target):
    tally = play_for(target, SECONDS, FIRST)
    assert tally.accepted  # some are not refused at the front


@pytest.mark.parametrize("target", TARGETS)
def test_a_number_always_gives_the_same_input(target, monkeypatch):
    """So that a finding can be played again."""
    seen = []
    monkeypatch.setitem(
        TARGETS, target, lambda chance, bench: seen.append([chance.random() for _ in range(5)])
    )
    play(target, 7)
    play(target, 7)
    assert seen[0] == seen[1]
