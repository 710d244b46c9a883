"""`ascendtile report`: every kind of file to every kind of output, and what is refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ascendtile.kernels import precision_study, precision_sweep, run_op
from ascendtile.reports.facts.study.json_form import study_json, sweep_json
from ascendtile.reports.pictures import PICTURES
from ascendtile.reports.terminal.console import as_text
from ascendtile.reports.terminal.precision_view import study_page, sweep_page
from ascendtile.simulator import device
from ascendtile.tiling import explore

from .. import page_reader

MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records")
    with device(errors="lines"):
        run_op("rms_norm_grad", case="tiny").run.save(folder / "a.run")
    run_op("rms_norm_grad", case="tiny", tiling={"buffers": 1}).run.save(folder / "b.run")
    found = explore(
        "rms_norm_grad", case="tiny", space={"buffers": (1, 2), "rows": (1, 2)}, store=folder / "s.db"
    )
    (folder / "e.json").write_text(json.dumps(found.to_dict()))
    case = {"m": 16, "n": 16, "k": 32}
    (folder / "p.json").write_text(json.dumps(study_json(precision_study("matmul", sizes=case))))
    sweep = precision_sweep("matmul", "scale", case, values=(0, 20), modes="KEEP_DTYPE", time=False)
    (folder / "w.json").write_text(json.dumps(sweep_json("scale", sweep)))
    return folder


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "names", [("a.run",), ("s.db",), ("e.json",), ("p.json",), ("w.json",), ("a.run", "b.run")]
)
def test_every_kind_of_file_becomes_a_page(
    ascendtile: Any, files: Path, tmp_path: Path, names: tuple[str, ...]
) -> None:
    out = tmp_path / "x.html"
    answer = ascendtile("report", *(files / n for n in names), "-o", out)
    assert (answer.status, answer.out, answer.err) == (0, "", f"wrote {out}\n")
    reader = page_reader.read(out.read_text())
    assert sum(t == "section" for t, _ in reader.elements) >= 3


DRAWN = [(n, p) for n, kind in (("a.run", "run"), ("s.db", "exploration")) for p in PICTURES[kind]]
DRAWN += [("p.json", "precision"), ("w.json", "precision"), ("w.json", "sweep")]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("name", "picture", "ending"), [(*d, list(MAGIC)[k % 3]) for k, d in enumerate(DRAWN)]
)
def test_every_picture(
    ascendtile: Any, files: Path, tmp_path: Path, name: str, picture: str, ending: str
) -> None:
    out = tmp_path / f"x.{ending}"
    assert ascendtile("report", files / name, "--picture", picture, "-o", out).status == 0
    assert out.read_bytes().startswith(MAGIC[ending])


@pytest.mark.exhaustive
def test_the_terminal_page_of_a_study_is_that_of_the_study(ascendtile: Any, tmp_path: Path) -> None:
    """Of its JSON, word by word what `ascendtile precision` shows; also modes that share a computation."""
    case = {"m": 16, "n": 16, "k": 32}
    study = precision_study("matmul", sizes=case, dtypes="mixed", modes="KEEP_DTYPE,USE_FP16,USE_HF32")
    path = tmp_path / "x.json"
    path.write_text(json.dumps(study_json(study)))
    assert ascendtile("report", path).out.rstrip() == as_text(study_page(study)).rstrip()
    sweep = precision_sweep("matmul", "scale", case, values=(0, 20), time=False)
    path.write_text(json.dumps(sweep_json("scale", sweep)))
    answer = ascendtile("report", path)
    assert answer.out.rstrip() == as_text(sweep_page("scale", sweep)).rstrip()
    assert max(map(len, answer.out.splitlines())) <= 80
    assert json.loads(ascendtile("report", path, "--json").out)["sweep"]["parameter"] == "scale"


def lacks(*names: str) -> Any:
    """Rows of a study without a field, or without a part of one."""

    def change(data: Any) -> Any:
        part = data["rows"][0]
        for n in names[:-1]:
            part = part[n]
        del part[names[-1]]
        return data

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lacks("output_dtypes"), "lacks field"),
        (lacks("output_dtypes", "out"), "lacks the type of the output"),
        (lacks("verdicts", "out"), "lacks errors or verdicts against exact_inputs"),
        (lacks("errors", "out", "rounded_inputs"), "lacks errors or verdicts against rounded_inputs"),
        (lambda d: d["rows"][0].update(dtype="\x1b[2Jfloat") or d, "unknown number format"),
        (lambda d: d["rows"][0].update(time_us="soon") or d, "must be"),
        (lambda d: {**d, "numerics": [1]}, "must be a JSON object"),
    ],
)
def test_studies_that_lack_what_a_page_says_are_refused(
    refused: Any, files: Path, tmp_path: Path, change: Any, words: str
) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(change(json.loads((files / "p.json").read_text()))))
    message = refused("report", path)
    assert words in message
    assert "\x1b" not in message


def test_json_of_many_explorations_is_shown(ascendtile: Any, files: Path, tmp_path: Path) -> None:
    """That of a store, of many cases, and of changed machines."""
    one = json.loads((files / "e.json").read_text())
    whole = {
        "store": json.loads(ascendtile("report", files / "s.db", "--json").out),
        "cases": {"op": one["op"], "cases": {"tiny": one, "other": {**one, "case": "other"}}},
        "variants": {"variants": [one, {**one, "set": {"buffers.ub": 131072}}]},
    }
    for name, data in whole.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(data))
        answer = ascendtile("report", path)
        assert answer.status == 0
        assert answer.out.count("proof ") == (1 if name == "store" else 2)
        assert ascendtile("report", path, "-o", tmp_path / "x.html").status == 0
    assert "with buffers.ub=131072" in answer.out


def test_two_runs_are_compared_in_the_terminal(ascendtile: Any, files: Path) -> None:
    a, b = files / "a.run", files / "b.run"
    assert ascendtile("report", a, b).out == ascendtile("compare", a, b).out
    assert ascendtile("report", a, b, "--json").out == ascendtile("compare", a, b, "--json").out


def test_the_terminal_shows_runs_and_explorations(ascendtile: Any, files: Path) -> None:
    assert "lower bounds" in ascendtile("report", files / "a.run").out
    assert "rms_norm_grad" in ascendtile("report", files / "s.db").out
    assert json.loads(ascendtile("report", files / "a.run", "--json").out)["op"] == "rms_norm_grad"
    (one,) = json.loads(ascendtile("report", files / "s.db", "--json").out)["explorations"]
    assert one["optimal"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("a.run", "p.json"), "only two runs"),
        (("a.run", "b.run", "a.run"), "one file, or of two runs"),
        (("a.run", "-o", "x.txt"), "a page ends in .html"),
        (("a.run", "-o", "x.svg"), "say which --picture"),
        (("a.run", "--picture", "roofline"), "-o FILE.png"),
        (("a.run", "--picture", "roofline", "-o", "x.gif"), ".png, .svg or .pdf"),
        (("a.run", "--picture", "pareto", "-o", "x.svg"), "there are roofline"),
        (("a.run", "--json", "-o", "x.html"), "give one of them"),
        (("a.run", "s.db", "-o", "x.html"), "only two runs"),
        (("p.json", "--picture", "sweep", "-o", "x.svg"), "study of one point"),
        (("gone.run",), "No such file"),
        ((".",), "folder"),
        (("a.run", "-o", "no/x.html"), "does not exist"),
        (("a.run", "-o", "."), "is a folder"),
        (("a.run", "-o", "a.run/x.html"), "is no folder"),
        (("a.run", "-o", ""), "is empty"),
    ],
)
def test_wrong_usage_is_told_in_words(
    refused: Any, files: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(files)
    before = sorted(p.name for p in files.iterdir())
    assert words in refused("report", *arguments)
    assert sorted(p.name for p in files.iterdir()) == before


def rewritten(path: Path, out: Path, change: Any) -> Path:
    """A record whose JSON is changed, the rest as it is."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for m in old.infolist():
            data = old.read(m)
            new.writestr(
                m.filename, json.dumps(change(json.loads(data))) if m.filename == "run.json" else data
            )
    return out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: {**d, "version": 99}, "has version 99"),
        (lambda d: {**d, "format": "other"}, "does not say format"),
        (lambda d: {**d, "run": {**d["run"], "name": 7}}, "must be str"),
        (lambda d: {**d, "run": {**d["run"], "colour": 7}}, "unknown field"),
    ],
)
def test_records_of_another_kind_are_refused(
    refused: Any, files: Path, tmp_path: Path, change: Any, words: str
) -> None:
    other = rewritten(files / "a.run", tmp_path / "o.run", change)
    assert words in refused("report", other, "-o", tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize("part", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("name", ["a.run", "e.json", "p.json", "s.db"])
def test_files_that_are_cut_short_are_refused(
    refused: Any, files: Path, tmp_path: Path, name: str, part: float
) -> None:
    whole = (files / name).read_bytes()
    cut = tmp_path / name
    cut.write_bytes(whole[: int(len(whole) * part)])
    message = refused("report", cut, "-o", tmp_path / "x.html")
    assert str(cut) in message
    assert not (tmp_path / "x.html").exists()


OTHERS = [
    "",
    "hello",
    "[]",
    "{}",
    '{"rows": 3}',
    '{"rows": [3]}',
    '{"sweep": {"points": []}}',
    '{"space": []}',
    "{" * 100_000,
]


@pytest.mark.parametrize("text", OTHERS)
def test_other_files_are_refused(refused: Any, tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    assert str(path) in refused("report", path, "-o", tmp_path / "x.html")


def test_a_claim_of_ten_gigabytes_is_not_believed(refused: Any, files: Path, tmp_path: Path) -> None:
    raw = bytearray((files / "a.run").read_bytes())
    at = raw.rfind(b"PK\x01\x02")
    raw[at + 24 : at + 28] = (2**32 - 16).to_bytes(4, "little")
    (tmp_path / "big.run").write_bytes(raw)
    assert "claims" in refused("report", tmp_path / "big.run", "-o", tmp_path / "x.html")


@pytest.mark.exhaustive
def test_the_same_record_gives_the_same_files(ascendtile: Any, files: Path, tmp_path: Path) -> None:
    for end in ("html", "svg", "png", "pdf"):
        how = () if end == "html" else ("--picture", "roofline")
        for k in (1, 2):
            ascendtile("report", files / "a.run", *how, "-o", tmp_path / f"{k}.{end}")
        assert (tmp_path / f"1.{end}").read_bytes() == (tmp_path / f"2.{end}").read_bytes(), end
