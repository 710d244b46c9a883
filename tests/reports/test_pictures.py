"""Pictures: Figures that say what the record says, in one style, whatever the record's texts are."""

from __future__ import annotations

import io
import re
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

from ascendtile.kernels import precision_study, precision_sweep, run_op
from ascendtile.reports import pictures
from ascendtile.reports.facts.launch_figures import units
from ascendtile.reports.facts.study.json_form import study_json, sweep_json
from ascendtile.reports.html.pages import page_of
from ascendtile.reports.html.writing import page_text
from ascendtile.reports.pictures.style import COLOURS, drawn
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.record.run import Run
from ascendtile.tiling import explore
from ascendtile.tiling.results.exploration import Exploration

from .test_html_pages import EVIL, everywhere


@pytest.fixture(scope="module")
def run() -> Run:
    return run_op("rms_norm_grad", case="tiny").run


@pytest.fixture(scope="module")
def exploration() -> Exploration:
    return explore("rms_norm_grad", case="tiny", space={"buffers": (1, 2), "rows": (1, 2)})


def test_a_roofline_has_the_points_of_the_record(run: Run) -> None:
    (axes,) = pictures.roofline(run).axes
    (unit,) = units(max(run.launches, key=lambda x: x.time_us))
    marks = [
        (x.get_xdata()[0], x.get_ydata()[0]) for x in axes.lines if x.get_marker() not in ("None", None, "")
    ]
    assert marks == [(v.intensity, unit.gops) for v in unit.levels]
    for v in unit.levels:
        assert unit.gops <= v.intensity * v.gb_per_s  # under its slope


def test_a_timeline_has_the_busy_time_of_the_record(run: Run) -> None:
    launch = max(run.launches, key=lambda x: x.time_us)
    t = launch.timeline
    assert t is not None
    (axes,) = pictures.timeline(run).axes
    names = [x.get_text() for x in axes.get_yticklabels()]
    for name, bars in zip(names, axes.collections, strict=True):
        mine = t.select(int(t.core.min()), t.pipes.index(name))
        widths = [np.ptp(p.vertices[:, 0]) for p in bars.get_paths()]
        assert sum(widths) == pytest.approx((t.end[mine] - t.start[mine]).sum(), abs=0.1 * len(mine))


def test_an_occupancy_peaks_where_the_ledger_does(run: Run) -> None:
    (axes,) = pictures.occupancy(run).axes
    stairs = axes.lines[0].get_ydata()
    assert max(stairs) * 1024 == max(size for _, size in run.buffers["UB"].held)


def test_a_histogram_has_every_element(run: Run) -> None:
    for axes, e in zip(pictures.error_histogram(run).axes, run.errors.values(), strict=True):
        assert sum(p.get_height() for p in axes.patches) == e.compared


def test_a_heat_map_has_the_best_of_each_cell(exploration: Exploration) -> None:
    axes, colour_bar = pictures.heat_map(exploration, "rows", "buffers").axes
    shown = axes.images[0].get_array()
    assert colour_bar.get_ylabel() == "us"
    for i, rows in enumerate(exploration.axes["rows"]):
        for j, buffers in enumerate(exploration.axes["buffers"]):
            times = [
                x.time_us
                for x in exploration.found
                if (x.point["rows"], x.point["buffers"]) == (rows, buffers)
            ]
            if times:
                assert shown[i, j] == pytest.approx(min(times))
            else:
                assert np.ma.getmaskarray(shown)[i, j] or np.isnan(shown[i, j])


def test_a_front_has_its_points(exploration: Exploration) -> None:
    (axes,) = pictures.pareto(exploration).axes
    assert sorted(axes.lines[-1].get_xdata()) == sorted(x.time_us for x in exploration.pareto)


def test_what_has_no_such_figures_is_refused(exploration: Exploration) -> None:
    times = run_op("rms_norm_grad", case="tiny", values=False).run
    values = run_op("rms_norm_grad", case="tiny", time=False).run
    for draw in (pictures.error_histogram, pictures.error_magnitude):
        with pytest.raises(UsageError, match="this run"):
            draw(times)
    for draw in (pictures.roofline, pictures.timeline, pictures.occupancy):
        with pytest.raises(UsageError, match="this run"):
            draw(values)
    with pytest.raises(UsageError, match="has no core 999"):
        pictures.timeline(times, core=999)
    with pytest.raises(UsageError, match="needs two knobs"):
        pictures.heat_map(exploration, "colour")


@pytest.mark.drawn(1)
@pytest.mark.parametrize("word", [EVIL, "$x$ \\frac{", "\x00\x1b\ud800", "x" * 500])
def test_texts_of_a_record_are_drawn_as_they_are(word: str) -> None:
    run = everywhere(word)
    for draw in (pictures.timeline, pictures.occupancy, pictures.error_histogram, pictures.error_magnitude):
        assert drawn(draw(run), "svg").startswith(b"<?xml")


def test_the_style_is_ours_alone(run: Run) -> None:
    before = dict(mpl.rcParams)
    pictures.roofline(run)
    assert dict(mpl.rcParams) == before


@pytest.mark.exhaustive
def test_no_picture_is_blank_or_beyond_its_edges(run: Run) -> None:
    study = study_json(precision_study("matmul", sizes={"m": 16, "n": 16, "k": 16}))
    for figure in (pictures.roofline(run), pictures.timeline(run), pictures.precision_bars(study)):
        image = np.asarray(Image.open(io.BytesIO(drawn(figure, "png"))).convert("L"))
        assert image.std() > 5
        edge = np.concatenate([image[0], image[-1], image[:, 0], image[:, -1]])
        assert (edge == 255).all()  # nothing touches the edge: no label is cut off


def test_pictures_use_the_font_that_comes_with_matplotlib(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever fonts the user's settings name; and one that is missing is told once."""
    with mpl.rc_context({"font.family": "No such font", "font.sans-serif": ["None either"]}):
        mine = pictures.roofline(run)
        drawn(mine, "png")
    assert not [r for r in caplog.records if "findfont" in r.getMessage()]
    for text in mine.findobj(mpl.text.Text):
        text.set_fontfamily("No such font")
    drawn(mine, "png")
    assert len([r for r in caplog.records if "No such font" in r.getMessage()]) == 1


def _sweep() -> dict[str, Any]:
    case = {"m": 16, "n": 16, "k": 16}
    return sweep_json("k", precision_sweep("matmul", "k", case, values=(16, 64), time=False))


@pytest.mark.exhaustive
def test_a_legend_covers_no_data(run: Run, exploration: Exploration) -> None:
    cube = pictures.roofline(run_op("matmul", case="1024", dtype="float16").run)  # six ways of memory
    for figure in (
        cube,
        pictures.roofline(run),
        pictures.pareto(exploration),
        pictures.precision_sweep(_sweep()),
    ):
        figure.draw_without_rendering()
        legends = [*figure.legends, *(a.get_legend() for a in figure.axes if a.get_legend())]
        assert legends
        for legend in legends:
            assert not any(legend.get_window_extent().overlaps(a.bbox) for a in figure.axes)
            assert legend.get_window_extent().x1 <= figure.bbox.x1  # nor is it cut


def test_a_sweep_has_the_colours_of_its_page() -> None:
    """A computation that is missing in one chart does not move the colours of the others."""
    data = _sweep()
    for row in (r for p in data["sweep"]["points"] for r in p["rows"] if r["compute_dtype"] == "hf32"):
        row["errors"]["out"]["exact_inputs"]["max_ulp"] = (
            0.0  # no place on the logarithmic axis of that chart
        )
    picture = pictures.precision_sweep(data).axes[0].get_lines()
    drawn = {str(x.get_label()): COLOURS.index(str(x.get_color())) for x in picture}
    legends = re.findall(r'<li><i class="b(\d)"></i>([^<]+)</li>', page_text(page_of(data)))
    assert len(drawn) > 3
    assert {(str(k), name) for name, k in drawn.items()} == set(legends)


def test_a_front_of_time_alone_says_so(exploration: Exploration) -> None:
    """The Cube's kernels use no UB: the lower bound stands beside time, and is no aim."""
    cube = explore("matmul", case="tiny", budget=4)
    assert "only time differs" in pictures.pareto(cube).axes[0].get_title(loc="left")
    assert "is no aim of its own" in page_text(page_of(cube))
    assert "only time differs" not in pictures.pareto(exploration).axes[0].get_title(loc="left")
    assert "only time differs" not in page_text(page_of(exploration))


def test_a_picture_of_one_output_of_several_says_how_to_draw_the_others() -> None:
    study = precision_study("rms_norm_grad", "tiny", dtypes="float16", time=False)
    titles = [
        pictures.precision_bars(study, output=n).axes[0].get_title(loc="left") for n in (None, "dgamma")
    ]
    numbers = [
        str(list(study.rows[0].errors).index(n) + 1) for n in (next(iter(study.rows[0].errors)), "dgamma")
    ]
    assert all(f"output {k} of 2; others: precision_bars" in t for k, t in zip(numbers, titles, strict=True))
