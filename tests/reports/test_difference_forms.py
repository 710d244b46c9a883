"""The difference of two runs in every form: page, table, picture, trace, notebook, terminal; each says the same."""

from __future__ import annotations

import csv
import io
import json

import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import run_op
from ascendtile.reports import pictures
from ascendtile.reports.comparing import compare_runs
from ascendtile.reports.comparing.table import difference_table
from ascendtile.reports.traces.writing import write_trace

from ..support.sample_runs import launch, run

MAGIC = {
    "html": b"<!doctype html>",
    "csv": b"group,name",
    "png": b"\x89PNG",
    "svg": b"<?xml",
    "pdf": b"%PDF",
}


@pytest.fixture(scope="module")
def pair():
    sizes = {"rows": 96, "cols": 1024}
    return tuple(
        run_op("rms_norm_grad", sizes, "float16", tiling={"rows": n}, values=False).run for n in (1, 2)
    )


@pytest.fixture(scope="module")
def files(pair, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pair")
    for name, one in zip(("a.run", "b.run"), pair, strict=True):
        one.save(folder / name)
    return folder / "a.run", folder / "b.run"


def test_the_table_has_every_figure(pair):
    d = compare_runs(*pair)
    rows = list(csv.DictReader(io.StringIO(difference_table(d))))
    assert (rows[0]["group"], float(rows[0]["change"])) == ("time", pytest.approx(d.time.change, abs=1e-6))
    lines = [float(r["change"]) for r in rows if r["group"] == "line"]
    assert len(lines) == len(d.lines) + 1
    assert sum(lines) == pytest.approx(d.time.change, abs=1e-6 * len(lines))
    choices = {r["name"]: (r["a"], r["b"]) for r in rows if r["group"] == "choice"}
    assert choices["tiling rows"] == ("1", "2")


def test_no_name_of_a_record_becomes_a_formula():
    evil = launch(lines=(launch().lines[0], launch().lines[1]), bounds={"=1+1": 3.0, "HBM": 2.0})
    rows = list(csv.DictReader(io.StringIO(difference_table(compare_runs(run(), run(launches=(evil,)))))))
    assert "'=1+1" in [r["name"] for r in rows]


def test_the_picture_has_the_changes(pair):
    d = compare_runs(*pair)
    axes = pictures.difference(*pair).axes
    assert [a.get_title(loc="left") for a in axes] == [
        "time by source line",
        "pipes, busy",
        "waits, all pipes",
    ]
    widths = [p.get_width() for p in axes[0].patches]
    ranked = sorted((p.change for p in (*d.lines, d.other)), key=abs, reverse=True)
    assert widths == pytest.approx(ranked[: len(widths)])
    assert len({a.get_xlim() for a in axes}) == 1  # bars of all panels can be compared


def test_runs_that_are_equal_and_runs_without_times(pair):
    (axes,) = pictures.difference(pair[0], pair[0]).axes
    assert [p.get_width() for p in axes.patches] == [0.0]
    with pytest.raises(sim.UsageError, match="no times to draw"):
        pictures.difference(run(), run(launches=()))


@pytest.mark.drawn(1)
@pytest.mark.parametrize("ending", MAGIC)
def test_compare_writes_what_the_name_ends_in(ascendtile, files, tmp_path, ending):
    out = tmp_path / f"d.{ending}"
    answer = ascendtile("compare", *files, "-o", out)
    assert (answer.status, answer.out, answer.err) == (0, "", f"wrote {out}\n")
    assert out.read_bytes().startswith(MAGIC[ending])


@pytest.mark.exhaustive
def test_report_draws_two_runs(ascendtile, files, refused, tmp_path):
    out = tmp_path / "d.svg"
    assert ascendtile("report", *files, "--picture", "difference", "-o", out).status == 0
    assert out.read_bytes().startswith(b"<?xml")
    said = refused("report", *files, "--picture", "timeline", "-o", out)
    assert "no picture 'timeline' of two runs; there is difference" in said
    assert "give both files" in refused("report", files[0], "--picture", "difference", "-o", out)


def test_what_compare_cannot_write(refused, files, tmp_path):
    table = tmp_path / "PipeUtilization.csv"
    table.write_text("block_id,aiv_time(us),aiv_vec_ratio\n0,3.0,0.5\n")
    for arguments, words in (
        ((*files, "-o", tmp_path / "d.txt"), "must end in one of"),
        ((*files, "-o", tmp_path / "d.csv", "--json"), "give one of them"),
        ((files[0], table, "-o", tmp_path / "d.csv"), "-o is of two runs"),
        ((*files, "-o", tmp_path / "none" / "d.csv"), "does not exist"),
    ):
        assert words in refused("compare", *arguments)


@pytest.mark.exhaustive
def test_both_runs_are_in_one_trace(pair, tmp_path):
    path = tmp_path / "t.json"
    both = write_trace(pair[0], path, other=pair[1])
    told = json.loads(path.read_text())
    names = {
        e["pid"]: e["args"]["name"].split(", ")[1] for e in told["traceEvents"] if e["name"] == "process_name"
    }
    sides = {title.split()[0] for title in names.values()}
    assert sides == {"A", "B"}
    slices = [e for e in told["traceEvents"] if e.get("cat") == "instruction"]
    for k, side in enumerate("AB"):
        mine = [e for e in slices if names[e["pid"]].startswith(side)]
        alone = write_trace(pair[k], tmp_path / "one.json")
        first = json.loads((tmp_path / "one.json").read_text())["traceEvents"]
        assert len(mine) == alone.instructions
        assert sorted(e["ts"] for e in mine) == sorted(
            e["ts"] for e in first if e.get("cat") == "instruction"
        )
    assert both.instructions == len(slices)


@pytest.mark.exhaustive
def test_the_command_puts_two_runs_in_one_trace(ascendtile, refused, files, tmp_path):
    assert ascendtile("export", *files, "-o", tmp_path / "t.json").status == 0
    assert "other_run" in json.loads((tmp_path / "t.json").read_text())["otherData"]
    out = tmp_path / "u.json"
    assert "export each on its own" in refused("export", *files, "--as", "insight", "-o", out)
    assert "tables are of one run" in refused("export", *files, "--as", "vendor", "-o", tmp_path / "v")


def test_it_shows_itself(pair, tmp_path):
    d = compare_runs(*pair)
    html = d._repr_html_()
    assert "data:image/png;base64," in html
    assert "What won or lost the time" in html
    assert "B is" in str(d)
    assert max(map(len, str(d).splitlines())) <= 80
    assert repr(d) == f"<RunDifference A {d.time.first:.4g} us, B {d.time.second:.4g} us>"
    d.html(tmp_path / "d.html")
    assert "Timeline of B" in (tmp_path / "d.html").read_text()
