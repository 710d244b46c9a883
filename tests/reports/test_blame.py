"""Blame beside the source: every view has the shares of the record, whatever its texts are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.reports import pictures
from ascendtile.reports.facts.blame import blames
from ascendtile.reports.html.error_blame import blame_tables
from ascendtile.reports.pictures.style import drawn
from ascendtile.reports.terminal.console import as_text
from ascendtile.reports.terminal.record_view import run_report
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.record.run import Run

from .test_html_pages import EVIL, everywhere


@sim.jit
def halved(x_ptr, out_ptr, mean_ptr, C: tl.constexpr):
    at = tl.program_id(0) * C + tl.arange(0, C)
    x = tl.load(x_ptr + at)
    y = x * 0.1  # rounds to float16
    z = y + x
    tl.store(out_ptr + at, z)
    tl.store(mean_ptr + tl.program_id(0), tl.sum(z) / C)


@pytest.fixture(scope="module")
def run() -> Run:
    x = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float16)
    with sim.device(errors="lines"):
        return halved[(4,)](x, np.empty_like(x), np.empty(4, np.float16), C=64)


def test_functions_and_the_rest_have_every_share_of_the_record_once(run: Run) -> None:
    for found in blames(run):
        inside = [x.share for f in found.functions for x in f.lines if x.share is not None]
        shares = sorted([*inside, *(share for _, share in found.rest)])
        assert shares == sorted(run.error_lines[found.output].values())
        assert sum(shares) == pytest.approx(1.0)
        assert found.largest == max(map(abs, shares))


def test_a_share_stands_beside_the_text_of_its_line(run: Run) -> None:
    (function,) = blames(run)[0].functions
    blamed = [x.code.strip() for x in function.lines if x.share]
    assert "y = x * 0.1  # rounds to float16" in blamed
    assert "@sim.jit" not in blamed


def test_a_record_without_texts_still_has_its_shares(run: Run) -> None:
    bare = replace(run, launches=())
    (first, *_) = blames(bare)
    assert not first.functions
    assert dict(first.rest) == {
        place.rpartition("/")[2]: x for place, x in run.error_lines["out_ptr"].items()
    }
    assert "does not hold" in blame_tables(bare)
    assert drawn(pictures.error_blame(bare), "svg")


def test_a_run_without_lines_has_no_blame() -> None:
    x = np.ones((1, 64), np.float16)
    with sim.device(errors=True):
        run = halved[(1,)](x, np.empty_like(x), np.empty(1, np.float16), C=64)
    assert blame_tables(run) == ""
    with pytest.raises(UsageError, match="errors='lines'"):
        pictures.error_blame(run)


def test_bars_of_a_picture_are_the_shares(run: Run) -> None:
    for name, shares in run.error_lines.items():
        _, bars = pictures.error_blame(run, name).axes
        assert sorted(p.get_width() for p in bars.patches) == pytest.approx(sorted(shares.values()))


def test_a_picture_of_an_unknown_output_is_refused_with_those_that_there_are(run: Run) -> None:
    with pytest.raises(UsageError, match="no output 'y' here; there are out_ptr, mean_ptr"):
        pictures.error_blame(run, "y")


def test_a_share_that_undoes_others_goes_to_the_left_everywhere(run: Run) -> None:
    place, other = list(run.error_lines["out_ptr"])[:2]
    signed = replace(run, error_lines={"out_ptr": {place: 1.25, other: -0.25}})
    html = blame_tables(signed)
    assert 'class="b3" style="left:50.0%;width:50.0%"' in html
    assert 'class="b2" style="left:40.0%;width:10.0%"' in html
    _, bars = pictures.error_blame(signed).axes
    assert min(p.get_width() for p in bars.patches) == -0.25
    assert bars.get_xlim()[0] < -0.25
    page = as_text(run_report(signed))
    assert "-25 %" in page
    assert "125 %" in page


def test_the_terminal_has_the_text_of_the_lines(run: Run) -> None:
    page = as_text(run_report(run))
    assert any("y = x * 0.1" in line and "%" in line and "#" in line for line in page.splitlines())


@pytest.mark.parametrize("word", [EVIL, "\r\n\ra", "\x00\x1b\ud800", "x" * 500])
def test_texts_of_a_record_are_shown_and_never_run(word: str, run: Run) -> None:
    odd = everywhere(word)
    place = f"{odd.launches[0].sources[0].file}:{odd.launches[0].sources[0].first_line}"
    odd = replace(odd, error_lines={word: {place: 0.5, word: float("nan"), "a": float("-inf")}})
    html = blame_tables(odd)
    assert "<script" not in html
    assert "<img" not in html
    assert drawn(pictures.error_blame(odd), "svg").startswith(b"<?xml")
