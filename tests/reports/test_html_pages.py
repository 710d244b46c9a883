"""Pages of records: what is on them, that nothing of a record becomes markup, and that files are whole or not there."""

from __future__ import annotations

import base64
import copy
import hashlib
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from ascendtile.kernels import precision_study, precision_sweep, run_op
from ascendtile.reports.facts.facts import main_stall_text
from ascendtile.reports.facts.launch_figures import units
from ascendtile.reports.facts.study.json_form import study_json, sweep_json
from ascendtile.reports.html.launch_charts import roofline_chart
from ascendtile.reports.html.pages import page_of, write_page
from ascendtile.reports.html.writing import page_text
from ascendtile.reports.terminal.console import as_text
from ascendtile.reports.terminal.record_view import run_report
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.precision.metrics import compare
from ascendtile.simulator.record.run import Buffer, LineCost, LiveValue, Run, SourceText
from ascendtile.tiling import explore
from ascendtile.tiling.evaluate import Evaluation
from ascendtile.tiling.results.exploration import Exploration, Found

from ..support import sample_runs
from . import page_reader

EVIL = '</script><script>alert(1)</script><img src=x onerror="alert(2)">\'"--><b>&amp;{{ 7*7 }}'


@pytest.fixture(scope="module")
def run() -> Run:
    return run_op("rms_norm_grad", case="tiny", explain=True).run


@pytest.fixture(scope="module")
def exploration() -> Exploration:
    return explore("rms_norm_grad", case="tiny", space={"buffers": (1, 2)}, budget=12)


@pytest.fixture(scope="module")
def study() -> dict[str, Any]:
    return study_json(precision_study("matmul", sizes={"m": 32, "n": 32, "k": 64}))


def titles(reader: page_reader.Reader) -> list[str]:
    return [str(a.get("id")) for tag, a in reader.elements if tag == "section" and "id" in a]


def test_a_run_has_every_section(run: Run) -> None:
    reader = page_reader.check_safe(page_text(page_of(run)), scripts=2)
    assert titles(reader) == [
        *("timeline", "source", "pipes", "bounds", "roofline", "buffers", "errors", "trust", "repeat"),
    ]
    text = " ".join(reader.text)
    for word in (
        "rms_norm_grad",
        "Ascend 910B3",
        "HBM bandwidth",
        "dgamma",
        "grade D",
        "capacity",
        "ascendtile run",
    ):
        assert word in text


def test_sections_without_facts_are_left_out(run: Run) -> None:
    values = page_text(page_of(run_op("rms_norm_grad", case="tiny", time=False).run))
    assert titles(page_reader.check_safe(values, scripts=1)) == ["errors", "repeat"]
    times = page_text(page_of(run_op("rms_norm_grad", case="tiny", values=False).run))
    assert "errors" not in titles(page_reader.check_safe(times, scripts=2))


def test_the_source_stands_beside_its_cycles(run: Run) -> None:
    text = "".join(page_reader.read(page_text(page_of(run))).text)
    for line in run.launches[-1].sources[0].text.split("\n"):
        assert line in text
    assert f"{run.lines[0].cycles:,.0f}" in text


def test_figures_are_those_of_the_record(run: Run) -> None:
    text = " ".join(page_reader.read(page_text(page_of(run))).text)
    assert f"{run.cycles:,.0f}" in text
    for pipe in run.pipes.values():
        assert f"{pipe.busy_cycles:,.0f}" in text


def test_no_page_asks_for_anything_and_only_our_scripts_may_run(run: Run) -> None:
    page = page_text(page_of(run))
    reader = page_reader.check_safe(page, scripts=2)
    policy = next(a["content"] for t, a in reader.elements if t == "meta" and "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    for attributes, text in reader.scripts:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert (f"'sha256-{digest}'" in policy) == ("type" not in attributes)


def everywhere(word: str) -> Run:
    """A run in which every text is that word."""
    value = LiveValue(word, word, 3, (2, 4), word, 16, 2, 0)
    line = LineCost(word, 7, word, 100.0, {word: 50.0}, {word: {word: 40.0}})
    t = replace(sample_runs.timeline(), pipes=(word, f"{word}.V"))
    n = len(t.core)
    t = replace(
        t, gap=np.ones(n), reason=np.zeros(n, np.int8), waited=np.zeros(n, np.int32), bandwidth=np.ones(n), bytes=np.ones(n),
        name=np.zeros(n, np.int32), reasons=(word,), names=(word,),
    )  # fmt: skip
    launch = sample_runs.launch(
        word, constants={word: word}, arguments={word: word}, lines=(line, line), bounds={word: 3.0}, warnings=(word,),
        buffers={word: Buffer(10, 20, (value,), ((7, 10), (8, 5)))}, notes=(word,), timeline=t, lifted={word: 3.0},
        sources=(SourceText(word, 6, f"{word}\n{word}"),), grades={word: 1.0},
        pipes={word: sample_runs.launch().pipes["AIV.V"]},
    )  # fmt: skip
    product = {
        "name": word,
        "figures": {"product.name": {"value": word}, word: {"value": word, "overridden": True}},
    }
    errors = {word: replace(compare([1.0, 2.0], [1.5, 2.0], "fp16", where=True), fmt=word)}
    return sample_runs.run(
        name=word, op=word, case=word, dtype=word, cube_math_type=word, launches=(launch, launch), errors=errors,
        product=product, tiling={word: word}, options={word: word}, inputs={word: word}, changes={word: 2.0},
        value_warnings=(word,), error_lines={word: {f"{word}:6": 1.5, word: -0.5}},
    )  # fmt: skip


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    "word", [EVIL, "\x00\x1b[31m\u202e\ud800", "x" * 5000, "", "$x$ \\frac", "{% raw %}"]
)
def test_texts_of_a_record_stay_texts(word: str) -> None:
    run = everywhere(word)
    for page in (page_text(page_of(run)), page_text(page_of(run, run))):
        page.encode("utf-8", "backslashreplace")
        reader = page_reader.check_safe(page, scripts=2)
        assert "49" not in " ".join(reader.text) or "7*7" not in word
        for block in page_reader.data_of(reader).values():
            assert block["lanes"]
    assert "<b>" not in run._repr_html_()


def test_texts_of_an_exploration_stay_texts() -> None:
    found = tuple(
        Found(
            {EVIL: k, "b": EVIL},
            Evaluation(time_us=1.0 + k, bound=EVIL, pipe=EVIL, ub_peak_bytes=9 - k, errors={EVIL: 0.1 * k}),
        )
        for k in range(4)
    )
    whole = Exploration(
        EVIL,
        EVIL,
        EVIL,
        "time",
        4,
        4,
        {EVIL: 1},
        0,
        found,
        {EVIL: 2},
        0,
        1.0,
        True,
        EVIL,
        {EVIL: (0, 1, 2, 3), "b": (EVIL,)},
    )
    reader = page_reader.check_safe(page_text(page_of((whole, whole))), scripts=2)
    assert set(page_reader.data_of(reader)) == {"explore0", "explore1"}


def test_texts_of_a_study_stay_texts(study: dict[str, Any]) -> None:
    words = {"reason": EVIL, "cube_math_type": EVIL, "compute_dtype": EVIL}
    rows = [
        {**r, **words, **{n: {EVIL: r[n]["out"]} for n in ("errors", "verdicts", "output_dtypes") if r[n]}}
        for r in copy.deepcopy(study["rows"])
    ]
    for verdict in (v for r in rows for by in r["verdicts"].values() for vs in by.values() for v in vs):
        verdict |= {"rule": EVIL, "words": EVIL}
    head = {n: EVIL for n in ("op", "case", "product", "sample")}
    changed = {**study, **head, "data": {EVIL: EVIL}, "notes": [EVIL], "numerics": {EVIL: EVIL}, "rows": rows}
    page_reader.check_safe(page_text(page_of(changed)), scripts=1)
    sweep = {**changed, "sweep": {"parameter": EVIL, "points": [{"value": EVIL, "rows": rows}] * 2}}
    page_reader.check_safe(page_text(page_of(sweep)), scripts=1)


def test_a_study_with_a_data_type_that_is_none_is_refused(study: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"points.0.rows.0.dtype: unknown number format"):
        page_of({**study, "rows": [{**r, "dtype": EVIL} for r in study["rows"]]})


@settings(suppress_health_check=list(HealthCheck))
@given(sample_runs.hostile_runs())
def test_any_figures_make_a_page(run: Run) -> None:
    page_reader.check_safe(page_text(page_of(run)), scripts=2 if run.launches else 1)


def test_an_exploration_has_its_points_and_front(exploration: Exploration) -> None:
    reader = page_reader.check_safe(page_text(page_of(exploration)), scripts=2)
    data = page_reader.data_of(reader)["explore0"]
    assert len(data["points"]) == exploration.evaluated
    assert min(p[-3] for p in data["points"]) == pytest.approx(exploration.best.time_us, rel=1e-5)  # type: ignore[union-attr]
    marks = [a for t, a in reader.elements if "front" in (a.get("class") or "").split()]
    assert len(marks) == len(exploration.pareto)


def test_a_study_has_a_row_for_each_mode(study: dict[str, Any]) -> None:
    reader = page_reader.check_safe(page_text(page_of(study)), scripts=1)
    assert sum(r["status"] == 0 for r in study["rows"]) <= sum(t == "tr" for t, _ in reader.elements)
    assert "USE_HF32" in " ".join(reader.text)


def test_a_sweep_has_lines_over_its_points() -> None:
    case, values = {"m": 16, "n": 16, "k": 16}, (16, 32, 64)
    studies = precision_sweep("matmul", "k", case, values=values, modes="KEEP_DTYPE", time=False)
    reader = page_reader.check_safe(page_text(page_of(sweep_json("k", studies))), scripts=1)
    lines = [a for t, a in reader.elements if t == "polyline"]
    assert all(len((a["points"] or "").split()) == 3 for a in lines)
    assert len(lines) >= 4


def test_two_runs_side_by_side(run: Run) -> None:
    other = run_op("rms_norm_grad", case="tiny", tiling={"buffers": 1}).run
    reader = page_reader.check_safe(page_text(page_of(run, other)), scripts=2)
    text = " ".join(reader.text)
    assert "tiling buffers" in text
    assert {"pipes", "lines", "timeline-a", "timeline-b"} <= set(titles(reader))


def test_every_figure_and_table_can_be_read_aloud(run: Run, exploration: Exploration) -> None:
    for shown in (run, exploration):
        reader = page_reader.read(page_text(page_of(shown)))
        for tag, a in reader.elements:
            if tag == "svg" or (tag == "canvas" and a.get("aria-hidden") != "true"):
                assert a.get("aria-label"), tag
                assert a.get("role") == "img"
        count = {
            t: sum(x == t for x, _ in reader.elements) for t in ("table", "caption", "main", "nav", "h1")
        }
        assert count["table"] == count["caption"]
        assert (count["main"], count["nav"], count["h1"]) == (1, 1, 1)
        ids = [a["id"] for _, a in reader.elements if "id" in a]
        assert len(ids) == len(set(ids))


@pytest.mark.exhaustive
def test_faces_in_python(run: Run, exploration: Exploration, tmp_path: Path) -> None:
    run.html(tmp_path / "r.html")
    exploration.html(tmp_path / "e.html")
    assert all((tmp_path / n).read_text().startswith("<!doctype html>") for n in ("r.html", "e.html"))
    for shown in (
        run,
        exploration,
        precision_study("matmul", sizes={"m": 16, "n": 16, "k": 16}, modes="KEEP_DTYPE"),
    ):
        html = shown._repr_html_()
        assert "data:image/png;base64," in html
        assert "<script" not in html


def test_a_page_is_whole_or_not_there(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.html"
    path.write_text("before")
    monkeypatch.setattr("os.replace", _no_space)
    with pytest.raises(UsageError, match="No space left"):
        write_page(run, path)
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["x.html"]


def _no_space(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_what_cannot_be_shown_is_said(run: Run, exploration: Exploration, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no page shows a list"):
        page_of([run])
    with pytest.raises(UsageError, match="only two runs"):
        page_of(run, exploration)
    with pytest.raises(UsageError, match="is a folder"):
        write_page(run, tmp_path)
    with pytest.raises(UsageError, match="does not exist"):
        write_page(run, tmp_path / "a" / "b.html")


def test_bank_conflicts_are_told_beside_the_pipes() -> None:
    """Mean over the cores that worked, of all launches; nothing where a record has none."""
    one = run_op("rms_norm_grad", {"rows": 64, "cols": 512}, "float16", values=False).run
    text = page_text(page_of(one))
    lost = [sum(x.pipes["AIV.V"].core_conflicts["bank"]) / x.cores_used for x in one.launches]
    assert f"{sum(lost):,.0f} cycles of AIV.V ({100 * sum(lost) / one.cycles:.0f} %) by the bank" in text
    assert "Bank conflicts" not in page_text(page_of(sample_runs.run()))


def test_page_and_terminal_name_the_same_wait() -> None:
    """Also where a pipe is free most of the time because its program has nothing more for it."""
    done = run_op("matmul", case={"m": 60, "n": 52, "k": 104}, dtype="float16", values=False).run
    shown = " ".join(page_reader.check_safe(page_text(page_of(done)), scripts=2).text)
    found = {n: main_stall_text(p, done.cycles) for n, p in done.pipes.items() if p.busy_cycles > 0}
    assert any("the program's end" in x for x in found.values())
    terminal = as_text(run_report(done))
    for words in found.values():
        assert words in shown
        assert words in terminal


def test_a_roofline_says_that_padding_counts_and_its_figures_are_of_its_title() -> None:
    """Operations are those of whole tiles, more than the sizes ask for; the Cube's peak is some 300 TFLOP/s."""
    sizes = {"m": 60, "n": 52, "k": 104}
    done = run_op("matmul", case=sizes, dtype="float16", values=False).run
    (unit,) = units(done.launches[0])
    assert unit.operations > 2 * math.prod(sizes.values())
    shown = " ".join(page_reader.check_safe(page_text(page_of(done)), scripts=2).text)
    assert f"{unit.operations:,.0f} operations (padding of tiles included)" in shown
    picture = str(roofline_chart(unit))
    assert ">TFLOP/s<" in picture
    assert ">100<" in picture
