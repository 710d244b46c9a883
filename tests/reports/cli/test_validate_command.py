"""`ascendtile validate`: the page, JSON, the picture, exit status."""

import json
import xml.etree.ElementTree as ET

import pytest

from ascendtile.kernels.validation import Prediction, predicts, registry
from ascendtile.kernels.validation.table import COLUMNS
from ascendtile.reports.cli.main import status_of
from ascendtile.simulator.errors import BufferOverflowError

HEAD = ",".join(COLUMNS)
ROWS = (
    "first,ascend910b1,test twice,shared group,4,,,8.5,us,no,A,,somewhere,a note",
    "second,ascend910b1,test twice,shared group,400,,,600,us,yes,A,,somewhere,",
    "third,ascend910b1,test twice,shared group,1,,,600,us,yes,A,the board was cold,somewhere,",
)


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_predictors", {})
    monkeypatch.setattr(registry, "TOPICS", ())

    @predicts("test twice")
    def twice(row):
        return Prediction(2.0 * float(row.shapes), float(row.shapes), "doubled")

    @predicts("test fails")
    def fails(row):
        raise BufferOverflowError("ub overflow, 2 against 1 bytes")

    def write(*rows):
        path = tmp_path / "mine.csv"
        path.write_text("\n".join([HEAD, *rows]) + "\n")
        return str(path)

    return write


@pytest.mark.parametrize(("columns", "room"), [(40, 80), (80, 80), (160, 160)])
def test_an_id_is_in_one_line_where_the_terminal_has_room_for_it(table, capsys, monkeypatch, columns, room):
    """Figures take 49 columns, spaces between them included."""
    monkeypatch.setenv("COLUMNS", str(columns))
    names = ["x" * n for n in (5, 30, 60, 100)]
    assert status_of(["validate", "--table", table(*(ROWS[0].replace("first", name) for name in names))]) == 0
    lines = capsys.readouterr().out.splitlines()
    whole = [name for name in names if any(line.startswith(f"{name} ") for line in lines)]
    assert whole == [name for name in names if len(name) + 49 <= room]
    assert max(map(len, lines)) <= room


def test_the_page_fits_80_columns_and_shows_rows_groups_and_exclusions(table, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert status_of(["validate", "--table", table(*ROWS)]) == 0
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= 80
    words = " ".join(page.split())
    assert "first 8.5 8 -6 % 4 -53 %" in words
    assert "second * 600 800 +33 % 400 -33 %" in words
    assert "shared group 2 1 5.9 % 5.9 % - - - 53 %" in words
    assert "excluded: 1 row (third): the board was cold" in words
    assert "1 a note" in words
    assert "2 doubled" in words
    assert "first 8.5 8 -6 % 4 -53 % 1 2" in words


def test_what_nobody_can_predict_is_listed_with_its_reason(table, capsys):
    lost = "lost,ascend910b1,no such op,others,1,,,7,us,no,A,its source is silent,somewhere,"
    assert status_of(["validate", "--table", table(ROWS[0], lost)]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "not simulated: 1 row (lost): its source is silent" in words
    assert "others, us" not in words
    assert status_of(["validate", "--json", "--table", table(ROWS[0], lost)]) == 0
    row = json.loads(capsys.readouterr().out)["rows"][1]
    assert (row["measured"], row["predicted"], row["error"]) == (7.0, None, None)
    assert row["note"] == "not simulated: its source is silent"


def test_json_is_what_scripts_were_promised(table, capsys):
    assert status_of(["validate", "--json", "--table", table(*ROWS)]) == 0
    out, err = capsys.readouterr()
    data = json.loads(out)
    assert list(data) == ["groups", "orders", "rows"]
    assert data["groups"]["shared group: fitted"] == {
        "rows": 1,
        "median_abs_error": pytest.approx(1 / 3),
        "p90_abs_error": pytest.approx(1 / 3),
        "spearman": None,
        "roofline_median_abs_error": pytest.approx(1 / 3),
        "interval_coverage": None,
        "interval_width": None,
    }
    assert data["rows"][0] == {
        "id": "first",
        "product": "ascend910b1",
        "op": "test twice",
        "group": "shared group",
        "fitted": False,
        "measured": 8.5,
        "predicted": 8.0,
        "unit": "us",
        "error": pytest.approx(-0.5 / 8.5),
        "judged": True,
        "low": None,
        "high": None,
        "inside": None,
        "note": "a note; doubled",
    }
    assert data["rows"][2]["note"].startswith("excluded: the board was cold")
    assert (data["rows"][2]["judged"], data["rows"][2]["error"] is None) == (False, False)
    assert "excluded: 1 row (third)" in err


def test_times_of_kernels_have_an_interval_and_groups_the_share_inside(tmp_path, capsys):
    """In JSON and on the page; a table of others has the same."""
    row = '{},ascend910b2,add,mine,98432,"fp32,fp32->fp32",cores=48 block=1024,{},us,no,A,,somewhere,'
    path = tmp_path / "mine.csv"
    path.write_text("\n".join([HEAD, row.format("near", 8), row.format("far", 800)]) + "\n")
    assert status_of(["validate", "--json", "--table", str(path)]) == 0
    data = json.loads(capsys.readouterr().out)
    near, far = data["rows"]
    assert (near["inside"], far["inside"]) == (True, False)
    assert near["low"] < near["predicted"] < near["high"]
    for name in ("mine", "held out: A2 and A3", "held out: all"):
        assert data["groups"][name]["interval_coverage"] == 0.5
        assert data["groups"][name]["interval_width"] == pytest.approx(near["high"] / near["low"])
    assert status_of(["validate", "--table", str(path), "--plot", str(tmp_path / "x.svg")]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert f"50 % {near['high'] / near['low']:.2f}" in words
    for r in (near, far):
        shown = f"{r['id']} {r['measured']:.3g} {r['predicted']:.3g} {r['low']:.3g}..{r['high']:.3g} "
        assert shown in words


@pytest.mark.drawn(1)
@pytest.mark.parametrize("ending", ["svg", "PNG"])
def test_the_picture_is_written(table, tmp_path, ending):
    picture = tmp_path / f"errors.{ending}"
    assert status_of(["validate", "--table", table(*ROWS), "--plot", str(picture)]) == 0
    data = picture.read_bytes()
    if ending == "svg":
        assert ET.fromstring(data).tag.endswith("svg")
        assert str(picture) not in data.decode()
    else:
        assert data.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--plot", "x.pdf"], "must end in .png or .svg"),
        (["--plot", "no/such/folder/x.svg"], "there is no folder 'no/such/folder'"),
        (["--group", "shared grup"], "did you mean 'shared group'?"),
        (["--table", "missing.csv"], "missing.csv: cannot read it: No such file"),
    ],
)
def test_bad_input_is_status_2_and_words(table, arguments, words, capsys):
    path = table(*ROWS)
    assert status_of(["validate", *(() if "--table" in arguments else ("--table", path)), *arguments]) == 2
    assert words in capsys.readouterr().err


def test_bad_rows_are_status_2_and_failed_rows_are_status_1(table, capsys):
    assert status_of(["validate", "--table", table("a,b")]) == 2
    assert "line 2: 2 cells" in capsys.readouterr().err
    assert status_of(["validate", "--table", table(ROWS[0].replace("twice", "never"))]) == 2
    assert "nothing predicts the op 'test never'" in capsys.readouterr().err
    assert status_of(["validate", "--table", table(ROWS[0].replace("twice", "fails"))]) == 1
    out, err = capsys.readouterr()
    assert "not simulated: 1 row (first): ub overflow" in " ".join(out.split())
    assert not err


def test_terminal_tricks_in_a_table_are_not_obeyed(table, capsys):
    status_of(["validate", "--table", table(ROWS[0].replace("first", "evil\x1b[2Jrow"))])
    assert "\x1b" not in capsys.readouterr().out


def test_an_error_of_any_size_has_its_unit():
    from ascendtile.reports.terminal.validation_view import _signed

    assert [_signed(x) for x in (-0.5, 99.0, 2999.0)] == ["-50 %", "+9900 %", "+3e+05 %"]
