"""The page of a run: what it says, how wide it is, and that nothing of a record reaches a terminal raw."""

from __future__ import annotations

import io
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ascendtile.reports.facts import texts
from ascendtile.reports.terminal.console import make_console, note
from ascendtile.reports.terminal.record_view import run_report
from ascendtile.simulator.precision.metrics import compare
from ascendtile.simulator.record.run import Buffer, LiveValue, Pipe

from ..support.sample_runs import hostile_runs, launch, run

PAGE = """\
tile  medium  float16
device  Ascend 910B3 (ascend910b3), changed: buffers.l1 = 262144
tiling  rows=2  cols=4096  strategy=whole
time    38.0 us: 60,000 cycles at 1800 MHz + 4.00 us launch overhead
bound   HBM bandwidth allows 28.5 us, 75 % of the run's time
work    40 programs on 40 of 40 cores, 12,345 instructions

lower bounds                               us  of time
HBM bandwidth                            28.5     75 % ###############.....
Vector unit (AIV.V)                      13.0     34 % #######.............
launch and handing out programs          4.00     11 % ##..................

pipes       busy cycles of cycles                      waits most for
AIV.MTE2         45,000      75 % ###############.....
  of which       30,000      50 % for shared bandwidth
AIV.V            24,000      40 % ########............ data (60 %)
  never used: AIV.S

buffers at their peak                   KiB              of
UB  75 %                              144.0           192.0 ###############.....
  1,179,648 of 1,572,864 bits
  x  2x4096 fp16                       32.0     second copy tile.py:12
  between and above them              112.0            hole
- UB would need 128.0 KiB without second copies (reckoned)

error against float64    max abs   max rel  mean rel      rmse   max ulp   bits
out                     5.00e-01  2.00e-01  6.67e-02  2.89e-01   2.1e+06   3.91
exact                          0         0         0         0         0    inf
- out: 1 NaN on one side only, of 4 elements

numerics: sum_order=tree

the lines that cost most
  67 %     40,000 cycles  tile.py:13
        tl.store(out_ptr + cols, x * 2)
  25 %     15,000 cycles  tile.py:12
        x = tl.load(x_ptr + cols)

what costs time
- tile.py:12: a discrete access

notes
- exp on fp16: costed as exp on fp32

keep    run.save("x.run") or --save x.run; then: ascendtile report x.run"""


def test_the_whole_page():
    assert str(run()) == PAGE
    assert str(run()) == PAGE


def test_the_page_of_plain_text_is_ascii_but_for_names():
    assert str(run()).isascii()


@given(hostile_runs())
def test_no_line_is_wider_than_80_columns_and_nothing_unprintable_gets_out(one):
    for line in str(one).split("\n"):
        assert cell_len(line) <= 80
        assert line.isprintable()


def test_markup_escapes_and_long_names_are_only_text():
    odd = run(op="[red]<script>\x1b[31m", tiling={"[bold]x[/bold]": "\x07" * 3}, case="c" * 500)
    text = str(odd)
    assert "[red]<script>\\x1b[31m" in text
    assert "[bold]x[/bold]=\\x07\\x07\\x07" in text
    assert "c" * 16 + ".." in text


def test_values_only():
    text = str(run(launches=()))
    assert "time    not asked for: this run has values only" in text
    assert "error against float64" in text
    for absent in ("bound ", "pipes", "buffers", "lines that cost", "us"):
        assert f"\n{absent}" not in text


def test_time_only():
    text = str(run(errors={}))
    assert "error against" not in text
    assert "HBM bandwidth allows" in text


def test_several_launches():
    text = str(run(launches=(launch("first"), launch("second", cycles=30000.0, time_us=21.0))))
    assert "time    59.0 us: 90,000 cycles at 1800 MHz + 8.00 us launch overhead" in text
    assert "work    80 programs in 2 launches, 24,690 instructions" in text
    rows = [line.split() for line in text.splitlines() if line.startswith(("first", "second"))]
    assert [(r[0], *r[4:]) for r in rows] == [
        ("first", "38.0", "60,000", "40"),
        ("second", "21.0", "30,000", "40"),
    ]
    assert "  89 %     80,000 cycles  tile.py:13" in text  # one row for the line of both launches


def test_long_lists_are_cut_and_say_so():
    values = tuple(LiveValue(f"v{k}", "f.py", k, (), "fp32", 4, 1, 0) for k in range(9))
    one = launch(
        bounds={f"AIV.P{k}": 9.0 - k for k in range(9)},
        buffers={"UB": Buffer(300, 200, values)},
        notes=tuple(f"note {k}" for k in range(11)),
    )
    text = str(run(launches=(one,) * 12))
    assert "3 more, none above 36.0 us" in text
    assert "and 4 smaller" in text
    assert "and 3 more notes" in text
    assert "and 2 more launches" in text
    assert "v0  scalar fp32" in text


def test_a_buffer_over_its_capacity_has_a_full_bar():
    text = str(run(launches=(launch(buffers={"UB": Buffer(400 * 1024, 200 * 1024)}),)))
    assert "UB  200 %                             400.0           200.0 ####################\n" in text


def test_a_buffer_tells_bits_why_each_value_is_there_holes_and_what_frees_most():
    values = (
        LiveValue("x", "f.py", 3, (64,), "fp32", 40_960, 2, 0, "tile"),
        LiveValue("scratch of sum", "f.py", 4, (), "", 20_480, 1, 0, "scratch"),
        LiveValue("mask", "f.py", 5, (64,), "int64", 10_240, 1, 0, "comparison"),
    )
    tried = {"with ROWS 8 -> 4": 70_000, "without second copies": 90_000}

    def page(**more):
        return str(run(launches=(launch(buffers={"UB": Buffer(122_880, 196_608, values, **more)}),)))

    text = page(freed=tried)
    assert "983,040 of 1,572,864 bits" in text
    assert "second copy f.py:3" in text
    assert "scratch f.py:4" in text
    assert "comparison f.py:5" in text
    assert "between and above them               10.0            hole" in text
    tried_first = "68.4 KiB with ROWS 8 -> 4 (tried); 87.9 KiB without second copies (tried)"
    int64 = "115.0 KiB with int32 in place of int64 (reckoned)"
    assert f"- UB would need {tried_first}; {int64}" in " ".join(text.split())
    reckoned = "80.0 KiB without second copies (reckoned)"
    assert f"- UB would need {reckoned}; {int64}" in " ".join(page().split())


def test_the_cube_mode_is_shown_where_there_is_a_cube():
    cube = launch(pipes={"AIC.M": Pipe(10.0, 0.1)})
    assert "cube    cubeMathType USE_HF32" in str(run(launches=(cube,), cube_math_type="USE_HF32"))
    assert "cubeMathType" not in PAGE


def test_losses_of_an_output_are_counted():
    lost = compare(np.float16([0, 6e-8, np.inf, 1]), np.float32([1e-9, 6e-8, 7e4, 1]), "fp16")
    text = " ".join(str(run(errors={"out": lost})).split())
    assert (
        "- out: 1 infinite on one side only, 1 too large for the type, 1 lost to zero, 1 subnormal, of 4 elements"
        in text
    )


@pytest.mark.parametrize(
    ("record", "last"),
    [
        ("a/x.run", ["open    ascendtile report a/x.run"]),
        ("my file.run", ["open    ascendtile report 'my file.run'"]),
        ("d" * 60, [f"ascendtile report {'d' * 60}"]),
        ("d" * 90, ["ascendtile report \\", "d" * 80, "d" * 10]),
    ],
)
def test_how_to_open_the_record(record, last):
    out = io.StringIO()
    Console(file=out, width=80).print(run_report(run(), record))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert lines[-len(last) :] == last


class Terminal(io.StringIO):
    """A text file that says it is a terminal of 120 columns."""

    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.mark.parametrize(("colour", "file"), [(True, Terminal), (False, Terminal), (False, io.StringIO)])
def test_colour_is_for_terminals_without_no_color(monkeypatch, colour, file):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("FORCE_COLOR", "1")
    if not colour and file is Terminal:
        monkeypatch.setenv("NO_COLOR", "1")
    out = file()
    make_console(out).print(run_report(run()))
    assert ("\x1b[" in out.getvalue()) is colour
    assert "\u2588" in out.getvalue()
    if not colour:
        assert all(cell_len(line) <= 80 for line in out.getvalue().splitlines())


def test_a_narrow_terminal_wraps_lines_and_cuts_no_digit(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    assert make_console(Terminal()).width == 80
    assert make_console(io.StringIO()).width == 80


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (texts.micros(0.01144), "0.0114"),
        (texts.micros(1234.5), "1,234"),
        (texts.micros(math.nan), "nan"),
        (texts.count(1e300), "1e+300"),
        (texts.count(-math.inf), "-inf"),
        (texts.percent(math.inf), "inf %"),
        (texts.kib(2**90), "1.21e+24"),
        (texts.small(math.inf), "inf"),
        (texts.meaning("AIC.M"), "Cube unit (AIC.M)"),
        (texts.meaning("something else"), "something else"),
        (texts.clean("a\nb\tc\u202e\ud800"), "a b c\\u202e\\ud800"),
        (texts.clean("漢" * 10, 9), "漢漢漢 .."),
        (texts.place("/a/b.py", 7), "b.py:7"),
        (texts.cut("a_long_name.py:1234", 12), "a_lon..:1234"),
        (texts.cut(f"b.py:{2**62}", 10), "..:46116.."),
        (texts.cut("a sentence: with words", 12), "a sentence.."),
    ],
)
def test_words(shown, text):
    assert shown == text


def test_an_odd_stall_is_named_as_it_is():
    one = launch(pipes={"AIV.V": Pipe(10.0, 0.1, {"moonlight": 30000.0})})
    assert "moonlight (50 %)" in str(run(launches=(replace(one),)))


def test_values_that_are_alike_at_the_peak_are_one_row():
    """Eight tiles that differ by their place only; bytes are those of all."""
    one = launch().buffers["UB"].peak[0]
    many = tuple(replace(one, offset=k * one.bytes, bytes=2048, copies=1) for k in range(8))
    page = str(run(launches=(launch(buffers={"UB": Buffer(65536, 196608, (one, *many))}),)))
    rows = [line for line in page.splitlines() if "4096 fp16" in line]
    assert [r.split()[:2] for r in rows] == [["x", "2x4096"], ["8", "x"]]
    assert rows[1].split()[5] == "16.0"


def test_no_control_character_of_a_note_reaches_the_terminal(capsys):
    note("one\x1b[31m\n\x00two\u202e")
    assert capsys.readouterr().err == "one\\x1b[31m\n\\x00two\\u202e\n"


def test_no_control_character_of_a_page_reaches_the_terminal():
    page = Table("a\x1b[2J", "b")
    page.add_row("one\x00", Text("two\u202e\nthree"))
    out = io.StringIO()
    make_console(out).print(page)
    shown = out.getvalue()
    assert all(c.isprintable() or c == "\n" for c in shown)
    assert len({cell_len(line) for line in shown.splitlines()}) == 1  # columns are where they were
    make_console(out).print(Text("four\x1b[2J"))
    assert out.getvalue().endswith("four\\x1b[2J\n")
