"""`ascendtile formats`."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ascendtile.simulator.precision.block_formats import BLOCK_FORMATS
from ascendtile.simulator.precision.formats import FORMATS
from ascendtile.simulator.precision.rounding import MODES, round_to

TAPERED = 'name = "t"\nexponent = 4\nmantissa = 3\nnan = "none"\ninfinities = false\ntaper = [{}]'


def read(answer):
    assert (answer.status, answer.err) == (0, "")
    return json.loads(answer.out)


def test_every_format_has_a_row(ascendtile):
    page = ascendtile("formats").out
    rows = {line.split()[0]: line for line in page.splitlines() if line}
    assert {*FORMATS, *BLOCK_FORMATS} <= set(rows)
    assert all(len(line) <= 80 for line in page.splitlines())
    assert rows["e4m3"].split()[1:7] == ["8", "e4m3", "7", "448", "0.00195", "0.125"]
    data = read(ascendtile("formats", "--json"))
    assert [f["name"] for f in data["formats"]] == list(FORMATS)
    assert [f["name"] for f in data["block_formats"]] == list(BLOCK_FORMATS)


@pytest.mark.drawn(5)
@pytest.mark.parametrize("name", [*FORMATS, *BLOCK_FORMATS, "e3m3", "e6m9:nan=zero", "int4/fp16/64"])
def test_every_format_has_a_page_and_one_object(ascendtile, name):
    page = ascendtile("formats", name)
    assert (page.status, page.err) == (0, "")
    assert all(len(line) <= 80 for line in page.out.splitlines())
    assert read(ascendtile("formats", name, "--json"))["name"] in (name, "e6m9:infinities=yes,nan=zero")


def test_all_codes_of_8_bits_are_shown(ascendtile):
    for name in ("hif8", "e4m3", "e2m1", "int4"):
        fmt = FORMATS[name]
        values = read(ascendtile("formats", name, "--json"))["values"]
        assert [float(v) for v in values] == pytest.approx(fmt.values.tolist(), rel=0, nan_ok=True)
        page = ascendtile("formats", name).out
        shown = np.abs(fmt.values) if fmt.is_float else fmt.values  # the sign is told in words
        assert all(f"{v:.4g}" in page for v in shown if 1 <= abs(v) < 1e4)
        assert all(f" {v:.0f}" in page for v in shown if float(v).is_integer())


def test_a_value_is_shown_by_every_mode(ascendtile):
    data = read(ascendtile("formats", "e4m3", "--value", "3.3", "--value", "-500", "--json"))["rounded"]
    assert [row.pop("value") for row in data] == [3.3, -500]
    for x, row in zip((3.3, -500), data, strict=True):
        assert {m: float(v) for m, v in row.items()} == pytest.approx(
            {m: float(round_to(x, "e4m3", m)) for m in MODES}, rel=0, nan_ok=True
        )
    page = ascendtile("formats", "e4m3", "--value", "3.3").out
    assert "CEIL                3.5         0.0606 0 1000 110" in page


def test_a_file_of_ones_own(ascendtile, refused, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "command_own"\nexponent = 3\nmantissa = 4\nbias = 5\ninfinities = false\nnan = "one"\n'
    )
    data = read(ascendtile("formats", file, "--json"))
    assert (data["name"], data["max"], data["stored_as"]) == ("command_own", 7.5, "[('command_own', 'u1')]")
    other = tmp_path / "other.toml"
    other.write_text('name = "command_own"\nexponent = 3\nmantissa = 4\n')
    assert "the name 'command_own' is that of another format" in refused("formats", other)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "e4m3"\nexponent = 4\nmantissa = 2', "the name 'e4m3' is that of another format"),
        ('name = "e5m3"\nexponent = 4\nmantissa = 2', "the name 'e5m3' is that of another format"),
        ("exponent = 4", "name, mantissa missing"),
        ('name = "a b"\nexponent = 4\nmantissa = 2', "name 'a b': a letter, then"),
        ('name = "x1"\nexponent = "4"\nmantissa = 2', "exponent is '4'; it takes a whole number"),
        ('name = "x1"\nexponent = 4\nmantissa = 2\nbits = 8', "no field 'bits'; there are name, exponent"),
        (
            'name = "x1"\nexponent = 4\nmantissa = 3\ntaper = [["1", 2]]',
            "must use each code once; they use 0.5",
        ),
        ('name = "x1"\nexponent = 4\nmantissa = 3\ntaper = ["1"]', "it takes rows [prefix, exponent bits]"),
        (
            TAPERED.format('["11", 4], ["10", 3], ["0", -1]'),
            "no number between 2^-3 and 2^4: a row is missing",
        ),
        (TAPERED.format('["1", 0], ["01", 0], ["00", -1]'), "two codes are 1: two rows have that exponent"),
        (TAPERED.format('["11", 9], ["10", 3], ["0", -1]'), "row '11' with 9 exponent bits"),
        (TAPERED.format('["0", 1], ["1", -1]'), "one row, of zeros only, has -1 exponent bits"),
        (
            TAPERED.replace("3", "4").format(
                '["11", 5], ["101", 4], ["100", 3], ["011", 2], ["010", 1], ["001", 0], ["000", -1]'
            ),
            "its spacing changes",
        ),
        ("name = ", "is no TOML"),
        ("x" * 70_000, "70000 bytes; a file of one format has at most 65536"),
    ],
    ids=range(15),
)
def test_bad_files(refused, tmp_path, text, message):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    assert message in refused("formats", file, "--json")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing",), "unknown number format 'nothing': known are fp16"),
        (("e0m0",), "0 exponent and 0 mantissa bits"),
        (("e4m3:bias=300",), "with bias 300 its numbers go from"),
        (("missing.toml",), "missing.toml: cannot be read"),
        (("int4/fp16/0",), "block of 0"),
        (("mxfp4", "--value", "1"), "--value is for formats of single numbers"),
        (("--value", "1"), "--value needs the NAME of a format"),
        (("/no/where",), "unknown number format '/no/where'"),
        (("mxfp5",), "bool; block formats are mxfp8"),
        (("e4m3/e8m0",), "and ELEMENT/SCALE/BLOCK, as int4/fp16/64"),
    ],
    ids=range(10),
)
def test_what_is_refused(refused, arguments, message):
    assert message in refused("formats", *arguments)


def test_a_tapered_file_is_read(ascendtile, tmp_path):
    """A small one: 1 bit of prefix 1 with 1 exponent bit, and the row of zero."""
    file = tmp_path / "tiny.toml"
    file.write_text(
        'name = "tiny"\nexponent = 1\nmantissa = 3\nnan = "none"\ninfinities = false\n'
        'taper = [["1", 1], ["01", 0], ["00", -1]]\n'
    )
    data = read(ascendtile("formats", file, "--json"))
    assert data["values"][:16] == [
        0,
        0.0625,
        0.125,
        0.25,
        1,
        1.25,
        1.5,
        1.75,
        2,
        2.5,
        3,
        3.5,
        0.5,
        0.625,
        0.75,
        0.875,
    ]
