"""`ascendtile judge`: what it prints, how it exits, and what it refuses."""

from __future__ import annotations

import json

import pytest

from ascendtile.reports.cli.main import status_of
from ascendtile.reports.judging.verdict import CaseVerdict, Cheat, ComparedOutput, Tolerance, Verdict
from ascendtile.reports.terminal.console import as_text
from ascendtile.reports.terminal.judging.page import verdict_page

from .test_judge import ANSWER, TASK

RULE = Tolerance(rtol=1e-4, atol=1e-4, outside=0.0, source="a rule")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "task.py").write_text(TASK)
    (tmp_path / "answer.py").write_text(ANSWER)
    return [str(tmp_path / "task.py"), str(tmp_path / "answer.py")]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--full", "--no-values"], "--full is about values"),
        (["--seed", "-1"], "--seed"),
        (["--seconds", "0"], "--seconds"),
        (["--product", "ascend999"], "ascend999"),
        (["--set", "buffers.nothing=1"], "buffers.nothing"),
        (["-o", "verdict.txt"], "must end in .json"),
        (["-o", "no/such/folder.json"], "folder"),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, list) else "",
)
def test_wrong_usage_is_status_2_and_a_message(files, capsys, options, said):
    assert status_of(["judge", *files, *options]) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert (out, "Traceback" in err) == ("", False)


def test_a_file_that_is_not_there_is_status_2(files, capsys):
    assert status_of(["judge", files[0], "no_such.py"]) == 2
    assert status_of(["judge", "no_such.py", files[1]]) == 2
    assert "no_such.py" in capsys.readouterr().err


def test_an_answer_that_is_no_python_is_a_verdict_with_status_1_and_the_caret(files, capsys):
    with open(files[1], "w") as file:
        file.write("def f(x:\n    pass\n")
    assert status_of(["judge", *files]) == 1
    page = capsys.readouterr().out
    assert page.startswith("not compiled")
    assert "def f(x:" in page
    assert status_of(["judge", *files, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert Verdict.from_json(found).verdict == "not_compiled"


@pytest.mark.extra("torch")  # with all extras: it starts processes
def test_one_object_on_standard_output_and_the_same_in_a_file(files, capsys, tmp_path):
    wanted = tmp_path / "verdict.json"
    assert status_of(["judge", *files, "--json", "--no-trials", "-o", str(wanted)]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == json.loads(wanted.read_text())
    assert json.loads(out)["verdict"] == "correct"
    assert "wrote" in err


def output(**fields):
    known = {
        "name": "output 0",
        "shape": (4,),
        "dtype": "float32",
        "elements": 4,
        "checked": 4,
        "tolerance": RULE,
    }
    return ComparedOutput(**{**known, "passed": True, **fields})


def test_a_page_is_80_columns_wide_whatever_an_answer_says():
    long = "x" * 300 + "\x1b[31m"
    case = CaseVerdict(index=0, inputs=long, verdict="wrong", message=long)
    found = Verdict(
        verdict="cheat",
        message=long,
        compiled=True,
        product="p",
        metadata={"compilation_error": f"{long}\n{long}\n^"},
        cheats=(Cheat(name="no_kernel", message=long, line=3, evidence=long),),
        outputs=(output(passed=False, max_abs=1e300, outside=4, message=long),),
        faults=(long,) * 9,
        cases=(case,) * 30,
        suggestion=long,
    )
    page = as_text(verdict_page(found))
    assert max(map(len, page.splitlines())) <= 80
    assert "\x1b" not in page
    assert "and 4 more faults" in page


def test_positions_are_told_where_not_all_was_checked():
    found = Verdict(
        verdict="correct_so_far",
        message="",
        compiled=True,
        product="p",
        outputs=(output(elements=9_000, checked=12),),
    )
    page = as_text(verdict_page(found))
    assert "--full decides" in page
    assert "12" in page
