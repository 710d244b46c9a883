"""What measured times lie between, in words: on the page, in HTML and in JSON, and only where a record says so."""

import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import run_op
from ascendtile.reports.facts.intervals import interval_text
from ascendtile.reports.facts.json_view import run_json
from ascendtile.reports.html.pages import page_of
from ascendtile.reports.html.writing import page_text
from ascendtile.reports.terminal.console import as_text
from ascendtile.reports.terminal.record_view import run_report
from ascendtile.simulator.record.later import but

from ..support.sample_runs import launch, run


def known(rows):
    return run(launches=(but(launch(), low_us=30.0, high_us=60.0, measured_rows=rows),))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (200, "90 % of measured times lie between 30.0 and 60.0 us"),
        (1, "few measurements of this product: 90 % should lie between 30.0 and 60.0 us"),
        (0, "no measurements of this product: 90 % should lie between 30.0 and 60.0 us"),
    ],
)
def test_page_and_html_say_the_same_and_json_has_the_ends(rows, words):
    one = known(rows)
    assert interval_text(one) == words
    assert f"board {words}" in " ".join(as_text(run_report(one)).split())
    assert words[1:] in page_text(page_of(one))
    data = run_json(one)
    assert (data["interval_us"], data["interval_percent"], data["measured_rows"]) == ([30.0, 60.0], 90, rows)


def test_a_record_without_an_interval_says_nothing_of_one():
    one = run()
    assert interval_text(one) is None
    assert "measured times" not in as_text(run_report(one))
    data = run_json(one)
    assert (data["interval_us"], data["interval_percent"]) == (None, None)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"buffers.ub": 131072}, "no board is this machine: buffers.ub was changed"),
        (
            {"buffers.ub": 131072, "clock.aicore_mhz": 900, "buffers.l1": 262144},
            "no board is this machine: clock.aicore_mhz and 2 more figures were changed",
        ),
    ],
)
def test_measured_times_of_the_product_say_nothing_of_a_changed_machine(changed, words, tmp_path):
    with sim.device(overrides=changed):
        one = run_op("rms_norm", case="tiny", values=False).run
    one.save(tmp_path / "x.run")
    for seen in (one, sim.load_run(tmp_path / "x.run")):
        assert interval_text(seen) == words
        assert f"board {words}" in " ".join(as_text(run_report(seen)).split())
        assert words[1:] in page_text(page_of(seen))
        data = run_json(seen)
        assert (data["interval_us"], data["measured_rows"]) == (None, 0)
