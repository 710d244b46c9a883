"""Two runs side by side: the parts of the difference add up to it, and the page names what moved."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from click.testing import CliRunner
from hypothesis import given

import ascendtile.simulator as sim
from ascendtile.kernels.running.run_op import run_op
from ascendtile.reports.cli.main import cli
from ascendtile.reports.comparing import compare_runs
from ascendtile.reports.comparing.table import difference_table
from ascendtile.reports.facts.differences import FigurePair
from ascendtile.reports.facts.texts import percent, signed_percent
from ascendtile.reports.html.comparison_page import comparison_page
from ascendtile.reports.terminal.console import as_text
from ascendtile.reports.terminal.difference_view import difference_json, difference_page

from ..support.sample_runs import hostile_runs, launch, run


def made(**tiling):
    """With so narrow an L2 that the cores share it."""
    narrow = {"l2.bandwidth_tb_per_s": 0.5}
    sizes = {"rows": 256, "cols": 2048}
    return run_op("rms_norm_grad", sizes, "float16", tiling=tiling, values=False, overrides=narrow).run


@pytest.fixture(scope="module")
def pair():
    return made(rows=1), made(rows=2)


def test_lines_and_the_rest_add_up_to_the_difference(pair):
    d = compare_runs(*pair)
    moved = sum(p.change for p in d.lines) + d.other.change
    assert moved == pytest.approx(pair[1].time_us - pair[0].time_us, rel=1e-9)
    assert abs(moved) > 0
    changes = [abs(p.change) for p in d.lines]
    assert changes == sorted(changes, reverse=True)


def test_busy_and_waits_are_those_of_the_runs_in_us(pair):
    d = compare_runs(*pair)
    for p in d.busy:
        for run_, us in zip(pair, (p.first, p.second), strict=True):
            cycles = sum(x.pipes[p.name].busy_cycles for x in run_.launches if p.name in x.pipes)
            assert us == pytest.approx(cycles / 1800, rel=1e-6)
    names = {p.name for p in d.waits}
    assert {"AIV.V waits for data", "AIV.MTE2 busy longer: shared bandwidth"} <= names
    assert not any("waits for shared bandwidth" in n for n in names)


def test_a_run_beside_itself_has_no_difference(pair):
    d = compare_runs(pair[0], pair[0])
    assert d.time.change == d.other.change == 0
    assert not d.settings
    assert not any(p.change for group in (d.lines, d.busy, d.waits, d.bounds, d.buffers) for p in group)
    assert "as fast as A" in as_text(difference_page(d))


def test_the_page_says_who_is_faster_and_what_differs(pair):
    d = compare_runs(*pair)
    page = as_text(difference_page(d))
    word = "slower" if d.time.change > 0 else "faster"
    assert word in page
    assert "what differs" in page
    assert "rows" in page
    assert "time by source line" in page
    assert max(map(len, page.splitlines())) <= 80
    told = json.loads(json.dumps(difference_json(d), allow_nan=False))
    assert told["time_us"]["change"] == pytest.approx(d.time.change)
    assert {"name": "tiling rows", "a": "1", "b": "2"} in told["settings"]


def test_kernels_that_share_no_line_are_all_there():
    other = launch("other", lines=tuple(replace(x, source=f"{x.source} + 1") for x in launch().lines))
    d = compare_runs(run(), run(launches=(other,)))
    assert {(p.first is None, p.second is None) for p in d.lines} == {(True, False), (False, True)}
    assert math.isclose(sum(p.change for p in d.lines), 0.0, abs_tol=1e-9)


def test_a_line_that_moved_is_the_same_line():
    moved = launch(lines=tuple(replace(x, line=x.line + 100, cycles=x.cycles + 9) for x in launch().lines))
    d = compare_runs(run(), run(launches=(moved,)))
    assert {p.name.split()[0] for p in d.lines} == {"tile.py:13", "tile.py:12"}
    assert all(p.first and p.second and p.change > 0 for p in d.lines)


def test_runs_for_values_only_are_compared_by_their_errors():
    d = compare_runs(run(), run(launches=()))
    assert d.time == FigurePair("time", 38.0, None)
    assert "out: effective bits" in {p.name for p in d.errors}
    page = as_text(difference_page(d))
    assert "values only" in page
    assert "errors against float64" in page
    assert "B is" not in page


def test_runs_without_times_are_refused():
    with pytest.raises(sim.UsageError, match="was run for values only"):
        compare_runs(run(), run(launches=(), errors={}))


@given(hostile_runs(), hostile_runs())
def test_whatever_records_hold_the_page_is_plain(a, b):
    try:
        page = as_text(difference_page(compare_runs(a, b)))
    except sim.UsageError:
        return
    assert all(c.isprintable() or c == "\n" for c in page)


def test_the_command(pair, tmp_path):
    for name, record in zip(("a.run", "b.run"), pair, strict=True):
        record.save(tmp_path / name)
    shown = CliRunner().invoke(cli, ["compare", str(tmp_path / "a.run"), str(tmp_path / "b.run")])
    assert shown.exit_code == 0
    assert "B is" in shown.stdout
    told = CliRunner().invoke(cli, ["compare", str(tmp_path / "a.run"), str(tmp_path / "b.run"), "--json"])
    assert json.loads(told.stdout)["time_us"]["a"] == pytest.approx(pair[0].time_us)


def test_the_html_page_has_what_the_terminals_has(pair):
    """Lines, pipes, bounds, buffers and bytes moved."""
    titles = {s.id for s in comparison_page(*pair).sections}
    assert {"lines", "pipes", "bounds", "buffers", "moved"} <= titles


def test_long_names_are_cut_in_what_is_refused(tmp_path, refused):
    long = "k" * 5000
    run(name=long, launches=(), errors={}).save(tmp_path / "values.run")
    run(name=long, launches=(launch(long),) * 30).save(tmp_path / "many.run")
    table = tmp_path / "PipeUtilization.csv"
    table.write_text("block_id,aiv_time(us),aiv_vec_ratio\n0,3.0,0.5\n")
    for first, second, words in (
        ("values.run", "values.run", "was run for values only"),
        ("many.run", table, "and 22 more); say with --launch"),
        ("values.run", table, "was run for values only"),
    ):
        said = refused("compare", tmp_path / first, tmp_path / second)
        assert words in said
        assert len(said) < 1000
    said = refused("compare", tmp_path / "many.run", table, "--launch", "3")
    assert "does not tell cores apart" in said
    assert len(said) < 500


def test_runs_of_two_operators_are_both_named(pair):
    other = run_op("matmul", case="tiny", values=False).run
    a, b, *_ = as_text(difference_page(compare_runs(pair[0], other))).splitlines()
    assert a.split()[:2] == ["A", "rms_norm_grad"]
    assert b.split()[:3] == ["B", "matmul", "tiny"]
    one = as_text(difference_page(compare_runs(*pair))).splitlines()[0]
    assert one.split()[0] == "rms_norm_grad"


def test_the_timelines_of_a_page_name_their_launches_and_have_one_scale(pair):
    """Every launch of both runs is there, and equal widths are equal times."""
    page = comparison_page(*pair)
    drawn = [x for run_ in pair for x in run_.launches]
    assert len(page.data) == len(drawn) == 4
    widths = [t["axis"] * t["cycles_per_tick"] * t["us_per_cycle"] for t in page.data.values()]
    ends = [t["span"] * t["cycles_per_tick"] * t["us_per_cycle"] for t in page.data.values()]
    assert widths == pytest.approx([max(ends)] * 4, rel=1e-3)
    assert min(ends) < max(ends) <= max(x.working_us for x in drawn) * (1 + 1e-9)
    assert all(t["axis"] >= t["span"] for t in page.data.values())
    found = {s.id: str(s.body) for s in page.sections}
    for name, run_ in zip(("timeline-a", "timeline-b"), pair, strict=True):
        assert all(x.kernel in found[name] for x in run_.launches)


def test_a_timeline_that_is_alone_in_its_run_is_named():
    page = comparison_page(run(), run())
    found = {s.id: str(s.body) for s in page.sections}
    assert "<h3>tile_kernel, 38.0 us</h3>" in found["timeline-a"]


def test_runs_without_times_have_no_table_of_times():
    """Nothing is compared with nothing: no row of dashes, in the terminal, as JSON and as CSV."""
    d = compare_runs(run(launches=()), run(launches=()))
    assert "time by source line" not in as_text(difference_page(d))
    assert difference_json(d)["lines_us"] == []
    assert "line," not in difference_table(d)


@pytest.mark.parametrize(
    ("x", "shown"), [(-0.004, "0 %"), (0.004, "0 %"), (0.0, "0 %"), (-0.006, "-1 %"), (0.12, "+12 %")]
)
def test_a_share_that_rounds_to_zero_has_no_sign(x, shown):
    assert signed_percent(x) == shown
    assert percent(x) == shown.removeprefix("+")
