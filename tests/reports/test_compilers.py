"""Every page says who made the code and why; two runs under the two authors say what the compiler costs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import run_op
from ascendtile.reports.comparing import compare_runs
from ascendtile.reports.facts.authors import code_text
from ascendtile.reports.facts.compiler_cost import compiler_cost
from ascendtile.reports.facts.repeat_command import repeat_command
from ascendtile.reports.html.comparison_page import comparison_page
from ascendtile.reports.html.run_page import run_page
from ascendtile.reports.terminal.console import as_text
from ascendtile.reports.terminal.difference_view import difference_json, difference_page
from ascendtile.reports.terminal.record_view import run_report

from ..support.kernels import copy_iterations
from ..support.sample_runs import run

ASKED = ("triton-ascend", "ascendc")


def kernel(block=4096, **asked):
    x = sim.shape(8 * block, "float32")
    return copy_iterations.time((1,), x, x, iterations=8, BLOCK=block, **asked)


def operator(**asked):
    with sim.device(**asked):
        return run_op("rms_norm_grad", "tiny", values=False).run


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (kernel(), "triton-ascend 9.0: usual for a kernel of your own"),
        (kernel(compiler="ascendc"), "ascendc, written by hand: as asked"),
        (operator(), "ascendc, written by hand: usual for an operator"),
        (operator(compiler="triton-ascend", compiler_version="8.5"), "triton-ascend 8.5: as asked"),
    ],
    ids=["kernel", "kernel by hand", "operator", "operator compiled"],
)
def test_the_pages_say_who_made_the_code_and_why(found, words):
    assert code_text(found) == words
    assert f"code    {words}" in as_text(run_report(found))
    assert words in run_page(found).subtitle


def test_a_record_that_does_not_say_who_made_the_code_has_no_line_of_it():
    old = run()
    assert code_text(old) == ""
    assert "\ncode " not in as_text(run_report(old))


def test_values_without_times_have_an_author_too():
    with sim.device(time=False):
        found = replace(kernel(), launches=())
    assert code_text(found).startswith("triton-ascend 9.0")


def test_rules_that_are_assumed_on_a_product_are_said_to_be():
    with sim.device("ascend310p"):
        assert "its rules are those of Atlas A2, assumed on ascend310p" in code_text(kernel(1024))
        assert "assumed" not in code_text(kernel(1024, compiler="ascendc"))


@pytest.mark.parametrize("swapped", [False, True])
def test_two_authors_of_one_kernel_say_what_the_compiler_costs(swapped):
    """The same words in either order: the cost is the compiler's."""
    compiled, by_hand = (kernel(compiler=c, multibuffer=n) for c, n in zip(ASKED, (1, 2), strict=True))
    compiled = replace(compiled, options=by_hand.options)
    d = compare_runs(*((by_hand, compiled) if swapped else (compiled, by_hand)))
    cost = compiled.time_us - by_hand.time_us
    assert cost > 0
    text = " ".join(compiler_cost(d))
    gain = f"{100 * cost / compiled.time_us:.0f} %"
    assert text.startswith("triton-ascend 9.0 costs ")
    assert f"writing the kernel by hand would gain {gain}." in text
    assert "Where it goes: AIV." in text
    assert "waits for a free buffer +" in text
    shown = " ".join(as_text(difference_page(d)).split())
    assert "code triton-ascend 9.0 costs" in shown
    assert shown.index("code triton-ascend") < shown.index("what differs")
    assert comparison_page(d.first, d.second).summary[0] == compiler_cost(d)[0]
    assert json.loads(json.dumps(difference_json(d)))["compiler"] == compiler_cost(d)


def test_what_is_as_fast_by_the_compiler_is_not_worth_writing_by_hand():
    found = kernel()
    other = replace(found, launches=tuple(replace(x, compiler="ascendc") for x in found.launches))
    (verdict,) = compiler_cost(compare_runs(found, other))
    assert "as fast as ascendc: writing it by hand would gain nothing" in verdict


def test_another_cause_beside_the_compiler_is_named():
    with sim.device("ascend910b4"):
        slow = kernel(compiler="ascendc")
    assert "Other choices differ, too: product" in " ".join(compiler_cost(compare_runs(kernel(), slow)))


def test_runs_of_one_author_or_of_two_kernels_say_nothing_of_its_cost():
    assert compiler_cost(compare_runs(kernel(), kernel(1024))) == []
    assert compiler_cost(compare_runs(kernel(), kernel(compiler="triton-ascend"))) == []
    assert compiler_cost(compare_runs(kernel(), operator())) == []


def test_an_author_who_was_asked_for_is_no_other_than_the_usual_one():
    assert "compiler" not in {
        n for n, *_ in compare_runs(kernel(), kernel(compiler="triton-ascend")).settings
    }


def test_the_command_that_repeats_a_run_asks_for_the_same_author():
    assert "--compiler" not in str(repeat_command(operator()))
    found = str(repeat_command(operator(compiler="triton-ascend", compiler_version="8.5")))
    assert "--compiler triton-ascend --compiler-version 8.5" in found
    usual = str(repeat_command(operator(compiler="triton-ascend")))
    assert "--compiler triton-ascend" in usual
    assert "--compiler-version" not in usual


# ---- the command line ----


@pytest.mark.drawn(1)
@pytest.mark.parametrize("author", ASKED)
def test_run_takes_the_author_and_its_record_is_of_that_author(ascendtile, tmp_path, author):
    record = tmp_path / "x.run"
    command = ("run", "rms_norm_grad", "--case", "tiny", "--no-values", "--compiler", author)
    answer = ascendtile(*command, "--json", "--save", record)
    assert answer.status == 0
    data = json.loads(answer.out)
    assert data["compiler"].startswith(author)
    assert {x["compiler"] for x in data["launches"]} == {data["compiler"]}
    assert f"code    {data['compiler']}" in ascendtile("report", record).out


def test_compare_shows_the_two_authors_of_records(ascendtile, tmp_path):
    files = []
    for author in ASKED:
        files.append(tmp_path / f"{author}.run")
        kernel(compiler=author).save(files[-1])
    shown = ascendtile("compare", *files).out
    assert "\ncode    " in shown
    assert [line.split() for line in shown.splitlines() if line.startswith("compiler")] == [
        ["compiler", "triton-ascend", "9.0", "ascendc"]
    ]


@pytest.mark.parametrize("command", ["run", "explore", "precision"])
def test_a_release_of_the_compiler_is_refused_where_the_code_is_by_hand(refused, command):
    message = refused(command, "rms_norm_grad", "--case", "tiny", "--compiler-version", "8.5")
    assert "--compiler-version 8.5 is of triton-ascend" in message
    assert "add --compiler triton-ascend" in message


@pytest.mark.parametrize("command", ["run", "explore", "precision"])
def test_an_unknown_author_is_refused_with_those_there_are(refused, command):
    message = refused(command, "rms_norm_grad", "--compiler", "gcc")
    assert "'gcc' is not one of 'triton-ascend', 'ascendc'" in message


@pytest.mark.parametrize("author", ASKED)
def test_explore_says_whose_code_it_timed_and_the_command_for_its_best(ascendtile, tmp_path, author):
    sweep = ("explore", "rms_norm_grad", "--case", "tiny", "--budget", "2", "--compiler", author)
    shown = ascendtile(*sweep, "--store", tmp_path / "s.sqlite").out
    assert f"ascend910b3, code by {author}" in shown
    assert f"--compiler {author}" in shown
    data = json.loads(ascendtile(*sweep, "--store", tmp_path / "s.sqlite", "--json").out)
    assert data["compiler"].startswith(author)


SCRIPT = """
import numpy as np, triton, triton.language as tl

@triton.jit
def double(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i) * 2)

x = np.ones(256, np.float32)
double[(1,)](x, x, B=256)
"""


@pytest.mark.parametrize(
    ("options", "made", "words"),
    [
        ((), "triton-ascend 9.0", "triton-ascend 9.0: usual for a kernel of your own"),
        (("--compiler", "ascendc"), "ascendc", "ascendc, written by hand: as asked"),
        (
            ("--compiler-version", "8.5"),
            "triton-ascend 8.5",
            "triton-ascend 8.5: as asked",
        ),
    ],
)
def test_a_script_takes_the_author_and_its_summary_says_which(ascendtile, tmp_path, options, made, words):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    shown = ascendtile("run", *options, script).out
    assert shown.count(f"code    {words}") == 2  # the table of launches, and the page of the dearest
    data = json.loads(ascendtile("run", *options, "--json", script).out)
    assert [row["compiler"] for row in data["kernels"]] == [made]
    assert data["dearest"]["compiler"] == made


def test_launches_of_two_authors_are_two_rows_of_a_script(ascendtile, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + 'double[(1,)](x, x, B=256, compiler="ascendc")\n')
    data = json.loads(ascendtile("run", "--json", script).out)
    assert sorted(row["compiler"] for row in data["kernels"]) == ["ascendc", "triton-ascend 9.0"]
    shown = " ".join(ascendtile("run", script).out.split())
    both = {"triton-ascend 9.0: usual for a kernel of your own", "ascendc, written by hand: as asked"}
    assert any(f"code {a}; {b}" in shown for a, b in (tuple(both), tuple(both)[::-1]))
