"""The picture of a chain: shares and times by step are those of the run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ascendtile.kernels.chains import ChainRun, run_chain
from ascendtile.reports import pictures
from ascendtile.reports.pictures.chains import GIVEN, KINDS
from ascendtile.reports.pictures.style import drawn
from ascendtile.simulator.errors import UsageError


@pytest.fixture(scope="module")
def run() -> ChainRun:
    return run_chain("norm_loss", {"rows": 16, "cols": 64, "classes": 16}, formats={"all": "bf16"})


def test_bars_are_the_shares_and_times_of_the_steps(run: ChainRun) -> None:
    assert run.blame is not None
    for name, shares in run.blame.shares.items():
        error, time = pictures.chain_blame(run, name).axes
        rows = len(run.steps) + 1
        bars = [p.get_width() for p in error.patches]
        assert len(bars) == rows * len(KINDS)
        assert sum(bars) == pytest.approx(sum(shares.values()))
        steps = {"" if n == GIVEN else n: bars[k] + bars[k + rows] for k, n in enumerate(_rows(run))}
        assert steps == pytest.approx(run.blame.by_step(name))
        assert sum(p.get_width() for p in time.patches) == pytest.approx(run.time_us)


def _rows(run: ChainRun) -> list[str]:
    return [GIVEN, *(s.name for s in run.steps)]


def test_a_run_without_blame_or_output_of_that_name_is_refused(run: ChainRun) -> None:
    with pytest.raises(UsageError, match="has no blame"):
        pictures.chain_blame(replace(run, blame=None))
    with pytest.raises(UsageError, match="no output 'z' here; there are logits, loss"):
        pictures.chain_blame(run, "z")


def test_a_run_without_times_has_its_shares(run: ChainRun) -> None:
    untimed = replace(run, steps=tuple(replace(s, time_us=None, casts=()) for s in run.steps))
    assert drawn(pictures.chain_blame(untimed), "svg").startswith(b"<?xml")
