"""Bits against time: points and front are those of the study, in the page and in the picture."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.kernels import precision_study
from ascendtile.kernels.study.results import EXACT, Study
from ascendtile.reports import pictures
from ascendtile.reports.facts.study.points import families, front, study_points
from ascendtile.reports.html.study.bits_chart import bits_chart
from ascendtile.reports.pictures.style import drawn
from ascendtile.simulator.errors import UsageError

from ..test_html_pages import EVIL


@pytest.fixture(scope="module")
def study() -> Study:
    return precision_study("matmul", sizes={"m": 16, "n": 16, "k": 64})


def retimed(study: Study, figures: list[tuple[float, float]], **more: Any) -> Study:
    """A study of rows with these times and bits, all of them different computations."""
    model = study.rows[0]
    report = model.errors["out"][EXACT]
    rows = []
    for k, (us, bits) in enumerate(figures):
        errors = {
            "out": {**model.errors["out"], EXACT: replace(report, effective_bits=bits, max_abs=float(k))}
        }
        rows.append(replace(model, cube_math_type=f"M{k}", time_us=us, errors=errors, **more))
    return replace(study, rows=tuple(rows))


def test_points_have_the_figures_of_the_rows(study: Study) -> None:
    for p in study_points(study.rows, "out"):
        assert (p.time_us, p.bits) == (p.row.time_us, p.row.bits("out"))
    assert {p.label for p in study_points(study.rows, "out")} >= {"fp32", "fp32 as hf32", "fp16", "bf16"}


@given(st.lists(st.tuples(st.floats(0.1, 1e6), st.floats(-5.0, 60.0)), min_size=1, max_size=40))
def test_nothing_beats_a_point_of_the_front_and_each_other_point_is_beaten(study, figures):
    points = study_points(retimed(study, figures).rows, "out")
    best = front(points)
    for p in points:
        beaten = any(q.time_us <= p.time_us and q.bits >= p.bits for q in best if q is not p)
        assert beaten or p in best
    for p, q in pairwise(best):
        assert p.time_us < q.time_us
        assert p.bits < q.bits


def test_the_picture_has_every_point_and_the_front(study: Study) -> None:
    points = study_points(study.rows, "out")
    (axes,) = pictures.precision_front(study).axes
    line, *groups = axes.lines[: 1 + len(families(points))]
    assert list(line.get_xdata()) == [p.time_us for p in front(points)]
    shown = [xy for g in groups for xy in zip(g.get_xdata(), g.get_ydata(), strict=True)]
    assert sorted(shown) == sorted((p.time_us, p.bits) for p in points)
    assert {t.get_text() for t in axes.texts} == {p.label for p in points}


def test_the_page_has_every_point_with_its_figures(study: Study) -> None:
    text = str(bits_chart(study.rows, "out"))
    points = study_points(study.rows, "out")
    assert len(re.findall("<circle", text)) == len(points)
    for p in points:
        assert f"{p.bits:.4g} bits (exact)" in text
        assert f">{p.label}</text>" in text


def test_rows_without_time_or_error_have_no_point(study: Study) -> None:
    none = retimed(study, [(0.0, 3.0), (1.0, float("inf")), (1.0, float("nan"))])
    assert not bits_chart(none.rows, "out")
    with pytest.raises(UsageError, match="no row with a time and an error"):
        pictures.precision_front(none)


def test_labels_of_a_picture_do_not_overlap_at_one_time(study: Study) -> None:
    bits = np.linspace(3.0, 4.0, 20)
    figure = pictures.precision_front(retimed(study, [(10.0, float(b)) for b in bits]))
    boxes = [t.get_window_extent() for t in figure.axes[0].texts]
    assert len(boxes) == 20
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])


@pytest.mark.drawn(1)
@pytest.mark.parametrize("word", [EVIL, "$x$ \\frac{", "\x00\x1b\ud800"])
def test_names_of_modes_and_types_are_text(study: Study, word: str) -> None:
    odd = retimed(study, [(1.0, 3.0), (2.0, 4.0)], compute_dtype=word)
    assert "<script" not in bits_chart(odd.rows, "out")
    assert drawn(pictures.precision_front(odd), "svg").startswith(b"<?xml")
