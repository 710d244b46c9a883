"""What slows a kernel stands in every form of its page with its cost and its cure; a comparison begins with its cause."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.reports.comparing import compare_runs
from ascendtile.reports.facts.advice.causes import causes, causing_waits, verdict
from ascendtile.reports.facts.advice.slowing import slow_lines
from ascendtile.reports.facts.json_view import run_json
from ascendtile.reports.html.comparison_page import comparison_page
from ascendtile.reports.html.run_page import run_page
from ascendtile.reports.terminal.difference_view import difference_page
from ascendtile.reports.terminal.record_view import run_report
from ascendtile.simulator.record.slowing import SORTS

from ..support.sample_runs import launch, run
from .test_compare_runs import as_text


@sim.jit
def slow(x, y, out, n, stride, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    a = tl.load(x + i * 7 % n, mask=i < n)
    b = tl.load(y + i, mask=(i < n) & (i % 3 == 0))
    c = a * b
    j = i.to(tl.int64) * 3
    c = tl.where(j % 5 > 2, c, a)
    tl.store(out + i * stride, c, mask=i < n)
    for k in range(0, 2):
        tl.store(out + k * n + i, i.to(tl.float32) * a, mask=i < n)


@pytest.fixture(scope="module")
def slowed():
    given = (sim.shape(4096, "bfloat16"), sim.shape(4096, "bfloat16"), sim.shape(16_384, "bfloat16"))
    with sim.device("ascend910b3"):
        return slow.time((32,), *given, 4096, 4, B=128)


def test_each_sort_is_found_with_its_line(slowed):
    texts = {(x.sort, x.line): x.what for x in slowed.launches[0].slowing}
    first = min(line for _, line in texts)
    found = {(sort, line - first) for sort, line in texts}
    assert {("discrete", 0), ("discrete", 1), ("cast", 2), ("scalar", 4), ("copy", 7)} <= found
    assert ("scalar", 5) in found  # addresses of a stride that is known at run time only
    assert {sort for sort, _ in texts} <= set(SORTS)
    assert all(x.cure and x.what for x in slowed.launches[0].slowing)


def test_the_dearest_line_comes_first_and_costs_what_the_line_costs(slowed):
    rows = slow_lines(slowed)
    times = {(x.file, x.line): x.cycles * slowed.launches[0].us_per_cycle for x in slowed.lines}
    assert [row.us for row in rows] == sorted((row.us for row in rows), reverse=True)
    assert all(row.us == pytest.approx(times[row.file, row.line]) for row in rows)


def test_every_form_of_the_page_has_it_and_no_warning_comes_twice(slowed):
    data = json.loads(json.dumps(run_json(slowed)))["slowing"]
    page, html = as_text(run_report(slowed)), run_page(slowed)
    assert html.sections[0].title == "What slows this kernel"
    assert page.index("what slows this kernel") < page.index("lower bounds")
    assert max(map(len, page.splitlines())) <= 80
    told = " ".join(page.split())
    assert " ".join(data[0]["what"].split()) in told
    for x in data:
        assert x["line_time_us"] >= 0
        assert x["sort"] in SORTS
        assert told.count(x["what"]) <= 1 + sum(y["what"] == x["what"] for y in data)
        assert x["what"] in str(html.sections[0].body.unescape())


def test_the_record_keeps_it(slowed, tmp_path):
    slowed.save(tmp_path / "x.run")
    assert sim.load_run(tmp_path / "x.run").launches[0].slowing == slowed.launches[0].slowing


def test_a_comparison_begins_with_its_largest_cause():
    first = launch()
    second = replace(first, overhead_us=first.overhead_us + 3.0, time_us=first.time_us + 3.0)
    d = compare_runs(run(launches=(first,)), run(launches=(second,)))
    said = "B takes 3.00 us more than A; the largest cause is launch overhead: 3.00 us more."
    assert verdict(d) == said
    assert comparison_page(d.first, d.second).summary[0] == said
    assert "because launch overhead: 3.00 us more" in " ".join(as_text(difference_page(d)).split())
    assert sum(p.change for p in causes(d)) == pytest.approx(d.time.change)


def test_what_is_equal_or_no_cause_is_not_listed(slowed):
    other = launch("other", cycles=2 * launch().cycles)
    for d in (compare_runs(run(), run(launches=(other,))), compare_runs(slowed, slowed)):
        assert all(p.change for p in (*causes(d), *causing_waits(d)))
        assert not [p for p in causing_waits(d) if p.name.endswith("waits for data")]
    assert verdict(compare_runs(slowed, slowed)) == "B takes as long as A."
