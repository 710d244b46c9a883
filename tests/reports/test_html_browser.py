"""Pages in a real browser: they open without a word of complaint, and what is on them answers mouse and keyboard.

Needs playwright (of the extra "test") and a Chromium of the system; skipped where one is missing.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import precision_study, run_op
from ascendtile.reports.facts.study.json_form import study_json
from ascendtile.reports.html import write_page
from ascendtile.tiling import explore

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next((found for name in BROWSERS if (found := shutil.which(name))), None)
playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed (pip install -e '.[test]')"
)
SPAN = "ascendtile.timelines.timeline0.t1 - ascendtile.timelines.timeline0.t0"
# Instructions as the page has them, in the order of its lanes.
ROWS = """() => {
  const d = ascendtile.timelines.timeline0.data, c = d.columns, s = d.cycles_per_tick;
  return Array.from(c.start, (x, i) => {
    const l = d.lanes.find((n) => i >= n.first && i < n.first + n.count);
    const where = [l.core, l.unit + "." + l.pipe, x * s, (x + c.length[i]) * s];
    return [...where, d.lines[c.line[i]][1], d.names[c.name[i]], c.bytes[i], c.waited[i]];
  });
}"""
# Captions whose words, and charts whose edge, are beyond the box that they stand in.
CUT = """() => {
  const cut = [];
  for (const e of document.querySelectorAll(".scroll caption:not(.hidden), svg.chart")) {
    const box = e.closest(".scroll, figure, .side > div");
    const words = document.createRange();
    words.selectNodeContents(e);
    const right = (e.tagName === "CAPTION" ? words : e).getBoundingClientRect().right;
    if (box && right > box.getBoundingClientRect().right + 1) cut.push(e.textContent.slice(0, 60));
  }
  return cut;
}"""
SIZES = """() => {
  const d = ascendtile.timelines.timeline0.data;
  return [d.levels.length, d.columns.start.length];
}"""
pytestmark = [
    pytest.mark.exhaustive,  # a browser takes as long to start as a hundred other tests
    pytest.mark.extra("playwright"),  # and a browser
    pytest.mark.skipif(
        BROWSER is None, reason=f"no browser is installed: none of {', '.join(BROWSERS)} is found"
    ),
]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of each kind."""
    folder = tmp_path_factory.mktemp("pages")
    run = run_op("rms_norm_grad", case="tiny", explain=True).run
    write_page(run, folder / "run.html")
    write_page(run, folder / "both.html", run_op("rms_norm_grad", case="tiny", tiling={"buffers": 1}).run)
    write_page(explore("rms_norm_grad", case="tiny", budget=20), folder / "exploration.html")
    write_page(
        study_json(precision_study("matmul", sizes={"m": 16, "n": 16, "k": 32})), folder / "study.html"
    )
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as p:
        found = p.chromium.launch(
            executable_path=BROWSER,
            args=["--no-sandbox", "--disable-gpu", "--disable-quic", "--renderer-process-limit=1"],
        )
        yield found
        found.close()


class Tab:
    """One page, with what it complained of and asked for."""

    def __init__(self, browser: Any, file: Path, **how: Any) -> None:
        self.page = browser.new_context(viewport={"width": 1280, "height": 900}, **how).new_page()
        self.words: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda m: self.words.append(m.text))
        self.page.on("pageerror", lambda e: self.words.append(str(e)))
        self.page.on("request", lambda r: self.asked.append(r.url))
        self.page.goto(file.as_uri())

    def view(self) -> list[float]:
        """Ticks between which the timeline is shown."""
        return self.page.evaluate("() => { const t = ascendtile.timelines.timeline0; return [t.t0, t.t1]; }")

    def close(self) -> None:
        """Nothing may have gone wrong."""
        assert self.words == []
        assert [u for u in self.asked if not u.startswith(("file:", "data:"))] == []
        self.page.context.close()


def whole(tab: Tab) -> None:
    tab.page.wait_for_selector(".timeline[data-ready=whole]")


@pytest.mark.parametrize("name", ["run", "both", "exploration", "study"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_opens_in_both_colours_and_for_print(
    browser: Any, pages: Path, name: str, scheme: str
) -> None:
    tab = Tab(browser, pages / f"{name}.html", color_scheme=scheme)
    ground = tab.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert (int(ground.removeprefix("rgb(").split(",")[0]) < 64) == (scheme == "dark")
    tab.page.click("#theme")
    assert tab.page.evaluate("() => getComputedStyle(document.body).backgroundColor") != ground
    tab.page.emulate_media(media="print")
    assert tab.page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not tab.page.is_visible("nav")
    tab.close()


def test_a_narrow_screen_scrolls_in_one_direction(browser: Any, pages: Path) -> None:
    for name in ("run", "exploration", "study", "both"):
        tab = Tab(browser, pages / f"{name}.html")
        tab.page.set_viewport_size({"width": 400, "height": 800})
        assert tab.page.evaluate("() => document.documentElement.scrollWidth") <= 400, name
        assert tab.page.evaluate(CUT) == [], name
        tab.close()


def test_the_timeline_zooms_and_moves_by_wheel_mouse_and_keys(browser: Any, pages: Path) -> None:
    tab = Tab(browser, pages / "run.html")
    whole(tab)
    full = tab.view()
    box = tab.page.locator(".lanes canvas").first.bounding_box()
    tab.page.mouse.move(box["x"] + 600, box["y"] + 60)
    tab.page.keyboard.down("Control")
    tab.page.mouse.wheel(0, -400)
    tab.page.keyboard.up("Control")
    tab.page.wait_for_function(f"{SPAN} < {full[1] / 2}")
    near = tab.view()
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + 400, box["y"] + 60, steps=4)
    tab.page.mouse.up()
    assert tab.view()[0] > near[0]
    tab.page.locator(".lanes canvas").first.focus()
    tab.page.keyboard.press("Home")
    assert tab.view() == full
    tab.page.keyboard.press("+")
    assert tab.view()[1] - tab.view()[0] == pytest.approx(full[1] / 2)
    tab.page.keyboard.press("ArrowRight")
    assert tab.view()[0] > full[1] / 4
    tab.page.click("[data-do=fit]")
    assert tab.view() == full
    tab.close()


def test_an_instruction_says_its_line_and_what_it_waited_for(browser: Any, pages: Path) -> None:
    tab = Tab(browser, pages / "run.html")
    whole(tab)
    tab.page.locator(".lanes canvas").first.focus()
    tab.page.keyboard.press("n")
    said = tab.page.locator("output.timeline-detail").first
    assert "core 0" in said.inner_text()
    assert "tiles.py:" in said.inner_text()
    tab.page.keyboard.press("ArrowDown")
    assert "AIV.V" in said.inner_text()
    for _ in range(40):
        tab.page.keyboard.press("n")
        if "waited" in said.inner_text():
            break
    assert "cycles for" in said.inner_text()
    tab.page.select_option("select.core >> nth=0", "0")
    shown = tab.page.evaluate("() => ascendtile.timelines.timeline0.show.length")
    assert shown < tab.page.evaluate("() => ascendtile.timelines.timeline0.data.lanes.length")
    tab.close()


def test_what_the_page_says_of_an_instruction_is_what_the_record_says(
    browser: Any, pages: Path, tmp_path: Path
) -> None:
    run = run_op("rms_norm_grad", case="tiny", values=False).run
    write_page(run, tmp_path / "r.html")
    tab = Tab(browser, tmp_path / "r.html")
    whole(tab)
    launch = max(run.launches, key=lambda x: x.time_us)
    t = launch.timeline
    assert t is not None
    shown = tab.page.evaluate(ROWS)
    order = sorted(range(len(t.start)), key=lambda i: (t.core[i], t.pipe[i], t.start[i], i))
    assert len(shown) == len(order)
    for row, i in zip(shown, order, strict=True):
        assert row[:2] == [t.core[i], t.pipes[t.pipe[i]]]
        assert row[2:4] == pytest.approx([t.start[i], t.end[i]], abs=0.04)
        assert row[4:6] == [launch.lines[t.line[i]].line, t.names[t.name[i]]]  # type: ignore[index]
        assert row[6] == pytest.approx(t.bytes[i], abs=0.5)  # type: ignore[index]
        assert (order[row[7]] if row[7] >= 0 else -1) == t.waited[i]  # type: ignore[index]
    tab.close()


def test_tables_sort_by_figures_and_filter(browser: Any, pages: Path) -> None:
    tab = Tab(browser, pages / "exploration.html")
    table = tab.page.locator("#tilings0")

    def column(k: int) -> list[str]:
        return table.locator(f"tbody tr:visible td:nth-child({k})").all_inner_texts()

    times = [float(x.replace(",", "")) for x in column(1)]
    assert times == sorted(times)
    head = table.locator("thead th").first
    head.locator("button").click()
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert [float(x.replace(",", "")) for x in column(1)] == sorted(times, reverse=True)
    tab.page.fill("input[data-filters=tilings0]", "split_row")
    kept = table.locator("tbody tr:visible").all_inner_texts()
    assert 0 < len(kept) < len(times)
    assert all("split_row" in row for row in kept)
    assert tab.page.inner_text("#tilings0-count") == f"{len(kept)} of {len(times)}"
    tab.close()


def test_points_tell_what_they_are_under_the_mouse_and_by_keyboard(browser: Any, pages: Path) -> None:
    tab = Tab(browser, pages / "exploration.html")
    assert not tab.page.is_visible("#tip")
    tab.page.locator(".front").first.hover()
    said = tab.page.inner_text("#tip")
    assert "us" in said
    assert "buffers=" in said
    tab.page.keyboard.press("Escape")
    assert not tab.page.is_visible("#tip")
    tab.page.locator(".front").last.focus()
    assert "buffers=" in tab.page.inner_text("#tip")
    tab.close()


def test_a_heat_map_is_over_the_knobs_that_are_chosen(browser: Any, pages: Path) -> None:
    tab = Tab(browser, pages / "exploration.html")
    axes = tab.page.evaluate("() => ascendtile.data('explore0').axes")
    tab.page.select_option("select.rows", "buffers")
    tab.page.select_option("select.cols", "strategy")
    heads = tab.page.locator("table.heat tbody th").all_inner_texts()
    assert heads == axes["buffers"]
    best = float(tab.page.inner_text("table.heat td.best >> nth=0").replace(",", ""))
    points = tab.page.evaluate("() => ascendtile.data('explore0').points.map((p) => p[p.length - 3])")
    assert best == pytest.approx(min(points), rel=0.01)
    tab.close()


def test_a_hostile_record_runs_nothing(browser: Any, tmp_path: Path) -> None:
    from .test_html_pages import EVIL, everywhere

    write_page(everywhere(EVIL), tmp_path / "evil.html")
    tab = Tab(browser, tmp_path / "evil.html")
    tab.page.on("dialog", lambda d: tab.words.append(f"dialog {d.message}"))
    whole(tab)
    assert tab.page.locator("img").count() == 0
    tab.close()


def test_long_runs_are_drawn_from_shares_and_near_from_instructions(browser: Any, tmp_path: Path) -> None:
    with sim.device(timeline=200_000):
        run = run_op("rms_norm_grad", case="llama3-8b", values=False, tiling={"rows": 1}).run
    write_page(run, tmp_path / "long.html")
    tab = Tab(browser, tmp_path / "long.html")
    whole(tab)
    levels, count = tab.page.evaluate(SIZES)
    assert (levels > 0) == (count > 40_000)
    for _ in range(12):
        tab.page.click("[data-do=in] >> nth=0")
    tab.close()


def test_the_shorter_of_two_runs_ends_where_its_time_is_over(browser: Any, tmp_path: Path) -> None:
    """One scale: "All" shows the axis of the longer, and nothing can be moved beyond it."""
    runs = [run_op("rms_norm", {"rows": n, "cols": 512}, "float16", values=False).run for n in (512, 64)]
    write_page(runs[0], tmp_path / "two.html", runs[1])
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda e: problems.append(str(e)))
    page.goto((tmp_path / "two.html").as_uri())
    page.wait_for_function("window.ascendtile.timelines && ascendtile.timelines.timeline1")
    shown = page.evaluate(
        """() => Object.values(ascendtile.timelines).map((t) => {
          const us = t.data.cycles_per_tick * t.data.us_per_cycle;
          return [(t.t1 - t.t0) * us, t.data.span * us];
        })"""
    )
    page.close()
    (width_a, us_a), (width_b, us_b) = shown
    assert width_a == pytest.approx(width_b, rel=1e-3)
    assert us_b < us_a == pytest.approx(width_a, rel=1e-3)
    assert not problems
