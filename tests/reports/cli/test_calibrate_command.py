"""`ascendtile calibrate` and `validate --cross`: the page, JSON, the product file, exit status."""

import csv
import json

import pytest

from ascendtile.kernels.validation import Prediction, predicts, registry
from ascendtile.kernels.validation.table import COLUMNS
from ascendtile.reports.cli.main import status_of
from ascendtile.simulator.products import load_product

PRODUCT = "ascend910b3"
MEMORY = "memory.bandwidth_tb_per_s"


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Rows of an op that moves its shape in MB through memory and has no other time; measured 1.25 times as long."""
    monkeypatch.setattr(registry, "_predictors", {})
    monkeypatch.setattr(registry, "TOPICS", ())

    @predicts("test move")
    def move(row):
        return Prediction(float(row.shapes) / load_product(row.product).number(MEMORY))

    def write(count=12, source="my board"):
        path = tmp_path / "mine.csv"
        usual = dict.fromkeys(COLUMNS, "") | {
            "product": PRODUCT, "op": "test move", "group": "moves", "unit": "us", "fitted": "no", "trust": "B",
        }  # fmt: skip
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            for k in range(1, count + 1):
                measured = 1.25 * k / load_product(PRODUCT).number(MEMORY)
                name = source if isinstance(source, str) else source(k)
                writer.writerow(usual | {"id": f"r{k}", "shapes": k, "measured": measured, "source": name})
        return str(path)

    return write


def test_the_page_tells_errors_and_figures_and_fits_80_columns(table, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    target = tmp_path / "mine.toml"
    assert status_of(["calibrate", table(), "--product", PRODUCT, "-o", str(target)]) == 0
    page, told = capsys.readouterr()
    assert max(map(len, page.splitlines())) <= 80
    words = " ".join(page.split())
    assert "used 12 kernels from 12 launches: 9 fitted, 3 left out" in words
    assert "left out, before 3 20.0 % 20.0 % -20 %" in words
    assert "memory.bandwidth_tb_per_s, TB/s 1.75 1.4" in words
    assert "alone clock.aicore_mhz, l2.bandwidth_tb_per_s, " in words
    assert ": 0 of 9 rows depend on it by 5% or more" in words
    assert f"use it with --product {target}" in told
    assert load_product(target).number(MEMORY) == pytest.approx(1.4, rel=0.02)


def test_json_has_all_of_it_and_nothing_else_is_printed(table, capsys):
    assert status_of(["calibrate", table(), "--json", "--seed", "3"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["product"] == PRODUCT
    (figure,) = data["figures"]
    assert figure["key"] == MEMORY
    assert figure["rows"] == data["errors"]["fitted_before"]["rows"] == 9
    assert data["errors"]["before"]["median"] == pytest.approx(0.2)
    assert data["errors"]["after"]["median"] < 0.02
    assert data["better"] is True
    assert data["toml"].startswith("# mine.csv: what differs from ascend910b3")
    assert not data["left_out"]


def test_kernels_that_nothing_predicts_are_told_apart_from_those_left_out_for_the_check(table, capsys):
    path = table()
    with open(path, "a", newline="") as file:
        usual = dict.fromkeys(COLUMNS, "") | {"product": PRODUCT, "op": "foo", "group": "moves", "unit": "us"}
        row = {"id": "f", "shapes": 1, "measured": 5, "fitted": "no", "trust": "B", "source": "my board"}
        csv.DictWriter(file, COLUMNS).writerow(usual | row)
    assert status_of(["calibrate", path]) == 0
    assert "\nunused  foo, 1 launch: nothing predicts it\n" in capsys.readouterr().out


def test_a_file_is_not_replaced_unless_asked(table, tmp_path, capsys):
    target = tmp_path / "mine.toml"
    target.write_text("precious")
    arguments = ["calibrate", table(), "-o", str(target)]
    assert status_of(arguments) == 2
    assert "exists; take another name, or --force to replace it" in capsys.readouterr().err
    assert target.read_text() == "precious"
    assert status_of([*arguments, "--force"]) == 0
    assert load_product(target).number(MEMORY) < 1.5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["calibrate", "missing.csv"], "missing.csv: cannot read it: No such file"),
        (["calibrate", "TABLE", "--product", "ascend9"], "unknown product 'ascend9'"),
        (["calibrate", "TABLE", "--leave-out", "1"], "1.0 is not in the range 0.0<=x<=0.9"),
        (["calibrate", "TABLE", "--force"], "--force is for the file of --output"),
        (["calibrate", "TABLE", "-o", "no/such/folder/x.toml"], "does not exist; make it first"),
        (["calibrate", "TABLE", "-o", "x.json"], "must end in .toml"),
        (
            ["calibrate", "TABLE", "--product", "ascend910b4"],
            "0 different kernels (op and shape) of this file can be predicted",
        ),
        (["validate", "--cross", "--table", "TABLE"], "1 sources with times in us, leaving one out needs 2"),
        (["validate", "--cross", "--plot", "x.svg"], "give one of them"),
    ],
)
def test_bad_input_is_status_2_and_words(table, arguments, words, capsys):
    path = table()
    assert status_of([path if a == "TABLE" else a for a in arguments]) == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_sources_left_out_are_shown_beside_what_was_fitted(table, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    path = table(source=lambda k: f"lab{k % 3} page {k}")
    assert status_of(["validate", "--cross", "--table", path]) == 0
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= 80
    assert "moves 12 20.0 20.0 1.000" in " ".join(page.split())
    assert "lab1 4 20.0" in " ".join(page.split())
    assert status_of(["validate", "--cross", "--table", path, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert set(data["groups"]) == {"moves", "all"}
    assert {f["source"] for f in data["folds"]} == {"lab0", "lab1", "lab2"}
    assert len(data["rows"]) == 12
