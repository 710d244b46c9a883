"""Errors of a study by magnitude, and what is too large or too small: every view has the figures of the rows."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from ascendtile.kernels import precision_study
from ascendtile.kernels.study.results import Study
from ascendtile.reports import pictures
from ascendtile.reports.facts.study.json_form import read_study, study_json
from ascendtile.reports.facts.study.lost import lost_shares
from ascendtile.reports.facts.study.magnitudes import magnitudes
from ascendtile.reports.html.pages import page_of
from ascendtile.reports.html.study.lost import lost_table
from ascendtile.reports.html.study.magnitude_chart import magnitude_charts
from ascendtile.reports.html.writing import page_text
from ascendtile.reports.terminal.console import as_text
from ascendtile.reports.terminal.precision_view import study_page
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.precision.places import Octave


@pytest.fixture(scope="module")
def study() -> Study:
    """a has numbers that float16 cannot hold, b is plain."""
    draw = np.random.default_rng(0)
    a = draw.standard_normal((8, 16)).astype(np.float32)
    a[0] *= 1e6
    a[1] *= 1e-9
    b = draw.standard_normal((16, 8)).astype(np.float32)
    return precision_study("matmul", inputs={"a": a, "b": b}, modes="KEEP_DTYPE")


@pytest.fixture(scope="module")
def plain() -> Study:
    ones = np.ones((4, 4), np.float32)
    return precision_study("matmul", inputs={"a": ones, "b": ones}, modes="KEEP_DTYPE")


def test_shares_are_the_counts_of_the_rows(study: Study) -> None:
    (fp16,) = [x for x in lost_shares(study.rows, "out") if (x.label, x.tensor) == ("fp16", "a")]
    a = next(r for r in study.rows if r.dtype == "float16").operands["a"]
    assert fp16.shares["overflow"] == a.overflow / 128 > 0
    assert fp16.shares["underflow"] == a.underflow / 128 > 0
    assert fp16.bits == a.bits
    assert not [x for x in lost_shares(study.rows, "out") if x.tensor == "b"]


def test_every_view_has_the_lost_shares(study: Study) -> None:
    found = lost_shares(study.rows, "out")
    html, page = str(lost_table(study.rows, "out")), as_text(study_page(study))
    _, *lines = page.partition("too large: became infinite")[2].splitlines()
    assert html.count('<th scope="row">') == len(found)
    for x in found:
        assert f'data-v="{x.shares["overflow"]}"' in html
        assert any(line.startswith(x.label) and f" {x.tensor} " in line for line in lines)
    (axes,) = pictures.study_lost(study).axes
    drawn = [p.get_width() for p in axes.patches]
    assert sorted(drawn) == pytest.approx(sorted(100 * s for x in found for s in x.shares.values()))


def test_a_study_without_losses_says_nothing_of_them(plain: Study) -> None:
    assert not lost_table(plain.rows, "out")
    assert "became zero: and was not" not in as_text(study_page(plain))
    with pytest.raises(UsageError, match="nothing in this study"):
        pictures.study_lost(plain)


def test_charts_by_magnitude_have_the_octaves_of_every_row(study: Study) -> None:
    found, hidden = magnitudes(study.rows, "out")
    assert (len(found), hidden) == (3, 0)
    for series, row in zip(found, study.rows, strict=True):
        for (exponent, mean, largest), octave in zip(series.points, row.octaves["out"], strict=True):
            assert (exponent, mean) == (octave.exponent, octave.mean_abs / 2.0**exponent)
            assert mean <= largest * (1 + 1e-9)
    means, _ = pictures.study_magnitude(study).axes
    drawn = [list(line.get_ydata()) for line in means.lines]
    assert drawn == [[mean for _, mean, _ in x.points if mean > 0] for x in found]
    html = str(magnitude_charts(study.rows, "out"))
    assert html.count("data-tip") == 2 * sum(len(d) for d in drawn)


def test_ten_lines_differ_in_colour_or_mark_and_their_names_with_them(plain: Study) -> None:
    octaves = {"out": [Octave(0, 1, 1.0, 1.0, 1e-7)]}
    rows = [replace(plain.rows[0], dtype=f"e4m3:bias={k}", octaves=octaves) for k in range(10)]
    axes, _ = pictures.study_magnitude(replace(plain, rows=tuple(rows))).axes
    assert len({(x.get_color(), x.get_marker()) for x in axes.lines}) == len(axes.lines) == 10
    legend = str(magnitude_charts(rows, "out")).split('<ul class="legend">')[1].split("</ul>")[0]
    assert len(set(re.findall(r"<li>(<svg.*?</svg>)", legend))) == 10


def test_bars_say_where_there_is_no_error(plain: Study) -> None:
    bits, _ = pictures.precision_bars(plain).axes
    without = [e for r in plain.rows for e in r.errors["out"].values() if e.effective_bits == math.inf]
    assert [t.get_text() for t in bits.texts] == [" no error"] * len(without)
    assert without


def test_a_study_without_errors_has_no_magnitudes(plain: Study) -> None:
    assert not magnitude_charts(plain.rows, "out")
    with pytest.raises(UsageError, match="where its errors are"):
        pictures.study_magnitude(plain)


def test_the_json_gives_the_same_page(study: Study) -> None:
    again = json.loads(json.dumps(study_json(study)))
    assert page_text(page_of(again)) == page_text(page_of(study))
    (point,) = read_study(again).points
    assert [r.operands for r in point.rows] == [r.operands for r in study.rows]
    assert [r.octaves for r in point.rows] == [r.octaves for r in study.rows]


def test_the_json_of_an_earlier_release_has_the_rest_of_the_page(study: Study) -> None:
    older = study_json(study)
    for row in older["rows"]:
        del row["operands"], row["octaves"]
    text = page_text(page_of(older))
    assert "error by mode, with time" in text
    assert "error by magnitude" not in text


def test_an_unknown_output_is_refused_with_those_that_there_are(study: Study) -> None:
    for draw in (pictures.study_lost, pictures.study_magnitude, pictures.precision_front):
        with pytest.raises(UsageError, match="no output 'y' here; there are out"):
            draw(study, "y")
