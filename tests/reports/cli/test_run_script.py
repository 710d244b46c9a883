"""`ascendtile run script.py`: a script runs as Python would run it, and its launches are told."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from ascendtile.reports.cli.main import status_of
from ascendtile.reports.cli.script_command import first_argument, is_script, script_command
from ascendtile.simulator import load_run
from ascendtile.simulator.triton_shim.scripts.collecting import MOST_GROUPS, Collector

KERNEL = """
import sys
import numpy as np
import triton
import triton.language as tl

@triton.jit
def double(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

x = np.ones(5000, np.float32)
out = np.zeros_like(x)

def launch(B=512, n=5000, **more):
    return double[lambda meta: (triton.cdiv(n, meta["B"]),)](x, out, n, B=B, **more)
"""


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    """`run(body, arguments...)` runs the kernel's script with that body; (status, stdout, stderr)."""
    monkeypatch.delenv("ASCENDTILE_DEBUG", raising=False)

    def call(body, *arguments, options=()):
        script = tmp_path / "script.py"
        script.write_text(KERNEL + body)
        capsys.readouterr()
        before = sys.argv, list(sys.path), sys.modules["__main__"]
        status = status_of([*["run", *map(str, options)], str(script), *arguments])
        assert (sys.argv, sys.path, sys.modules["__main__"]) == before
        assert "triton" not in sys.modules
        return status, *capsys.readouterr()

    return call


def test_the_table_of_launches(run):
    status, out, err = run("for _ in range(3): launch()\nlaunch(B=64, num_warps=4)\nassert (out == 2).all()")
    assert (status, err) == (0, "")
    rows = [line.split() for line in out.splitlines()]
    assert "launches of " in out
    assert any(r[:3] == ["double", "10", "3"] for r in rows)
    assert any(r[:3] == ["double", "79", "1"] for r in rows)
    assert "4 launches of 1 kernel take" in out
    assert "the launch that took longest" in out
    assert "script.py:10" in out
    assert "no effect in the model: launch keyword num_warps=4" in " ".join(out.split())
    assert all(len(line) <= 80 for line in out.splitlines() if "script.py" not in line)


def test_a_script_finds_what_python_gives_it(run):
    body = (
        "import os; print(__name__, sys.argv[1:], sys.path[0] == os.path.dirname(os.path.abspath(__file__)))"
    )
    status, out, _ = run(body, "--json", "-x", "a=1")
    assert (status, out.splitlines()[0]) == (0, "__main__ ['--json', '-x', 'a=1'] True")
    assert "no kernel was launched" in out


def test_json_is_one_object_and_what_the_script_prints_goes_elsewhere(run, tmp_path):
    record = tmp_path / "dearest.run"
    options = ("--json", "--product", "ascend310p", "--set", "buffers.ub=128KiB", "--save", record)
    status, out, err = run("print('hello'); launch(); launch(B=64)", options=options)
    data = json.loads(out)
    assert (status, err) == (0, "hello\n")
    assert (data["status"], data["launches"], data["product"]) == (0, 2, "ascend310p")
    assert data["time_us"] == pytest.approx(sum(k["time_us"] for k in data["kernels"]))
    assert data["dearest"]["time_us"] == max(k["time_us"] for k in data["kernels"])
    assert load_run(record).time_us == data["dearest"]["time_us"]


def test_a_record_of_each_row(run, tmp_path):
    status, _, _ = run("launch(); launch(B=64)", options=("--out", tmp_path / "runs"))
    assert status == 0
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == ["001-double.run", "002-double.run"]


def test_time_only_and_values_only(run):
    assert run("launch()\nassert not out.any()", options=["--no-values"])[0] == 0
    status, out, _ = run("launch()\nassert (out == 2).all()", options=["--no-time"])
    assert (status, "1 launch of 1 kernel; time was not asked for" in out) == (0, True)
    assert run("", options=["--no-time", "--no-values"])[0] == 2


@pytest.mark.parametrize(("how", "status"), [("sys.exit(7)", 7), ("sys.exit()", 0), ("sys.exit('no')", 1)])
def test_exit_status_is_the_scripts(run, how, status):
    got, out, err = run(f"launch()\n{how}")
    assert got == status
    assert ("no" in err) == (status == 1)
    assert "1 launch of 1 kernel takes" in out


def test_an_exception_of_the_script_is_shown_as_python_does(run):
    status, out, err = run("launch()\ndef broken():\n    raise KeyError('mine')\nbroken()")
    assert status == 1
    assert err.startswith("Traceback (most recent call last):")
    assert err.endswith("KeyError: 'mine'\n")
    assert "/reports/" not in err
    assert "1 launch of 1 kernel" in out


def test_an_exception_in_a_grid_function_is_the_scripts(run):
    _, _, err = run("double[lambda meta: (meta['C'],)](x, out, 5, B=16)")
    assert "KeyError: 'C'" in err
    assert "inside of ascendtile" not in err
    assert "/simulator/" not in err


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (
            "@triton.jit\ndef bad(x):\n    tl.frobnicate(x)\nbad[(1,)](x)",
            2,
            "script.py:19:5: tl has no builtin",
        ),
        ("launch(B=100_000)", 1, "ub overflow, requires"),
        ("launch(n=6000)", 1, "launched at"),
        ("launch(wrong=1)", 2, "double has no parameter 'wrong'"),
    ],
    ids=["word", "overflow", "bounds", "argument"],
)
def test_errors_of_the_simulator_name_the_launch(run, body, status, says):
    got, _, err = run(body)
    assert got == status
    assert err.startswith("error: ")
    assert says in err
    assert "launched at" in err
    assert "Traceback" not in err


def test_a_missing_module_of_triton_is_explained(run):
    _, _, err = run("from triton.experimental import gluon")
    assert "ModuleNotFoundError: triton has no 'experimental' in ascendtile" in err


def test_modules_and_files_that_are_not_there(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert status_of(["run", "none.py"]) == 2
    assert "none.py: cannot read the script: No such file" in capsys.readouterr().err
    assert status_of(["run", "-m", "none_such"]) == 2
    assert "cannot run module none_such" in capsys.readouterr().err
    (tmp_path / "here.py").write_text("import sys; print(__name__, sys.argv[1:])")
    assert status_of(["run", "-m", "here", "--x"]) == 0
    assert capsys.readouterr().out.startswith("__main__ ['--x']\n")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ("x.py --json", "x.py"),
        ("--json --product p x.py", "x.py"),
        ("--set a=1 b=2 x.py", "x.py"),
        ("--cube-math-type M -m mod", "-m"),
        ("rms_norm_grad x.py", "rms_norm_grad"),
        ("--json", None),
    ],
)
def test_which_word_is_the_script(arguments, word):
    assert first_argument(arguments.split(), [script_command]) == word
    assert is_script(word) == (word in ("x.py", "-m"))


def test_memory_does_not_grow_with_launches(run):
    """Unlike launches beyond a number are put together: what is kept is bounded, the sums stay exact."""
    from dataclasses import replace

    from ascendtile.simulator import jit, shape
    from ascendtile.simulator import language as tl

    @jit
    def fill(x, B: tl.constexpr):
        tl.store(x + tl.arange(0, B), 0.0)

    found, total = Collector(), 0.0
    one = fill.time((1,), shape(64, "float32"), B=64)
    for i in range(MOST_GROUPS + 50):
        launch = replace(one.launches[0], grid=(i + 1, 1, 1))
        found.tell(replace(one, launches=(launch,)))
        total += one.time_us
    assert len(found.groups) == MOST_GROUPS + 1
    assert found.count == MOST_GROUPS + 50
    assert found.time_us == pytest.approx(total)


def test_explain_says_how_sure_the_time_is_what_holds_it_up_and_what_to_try(run):
    status, out, err = run("launch(B=256)", options=("--explain",))
    assert (status, err) == (0, "")
    page = " ".join(out.split())
    assert "limiter Launch overhead:" in page or "limiter Handing out programs:" in page
    assert "try B 256 -> " in page or "no change of one knob is faster" in page
    data = json.loads(run("launch(B=256)", options=("--explain", "--json"))[1])["dearest"]
    assert data["interval_us"][0] <= data["time_us"] <= data["interval_us"][1]
    assert set(data["changes_us"]) == {f"B 256 -> {n}" for n in (128, 512, 1024, 2048, 4096)}
    assert json.loads(run("launch(B=256)", options=("--json",))[1])["dearest"]["changes_us"] == {}


def test_explain_without_time_is_refused(run):
    status, out, err = run("launch()", options=("--explain", "--no-time"))
    assert (status, out) == (2, "")
    assert "--explain times launches again, which --no-time leaves out" in err


def test_a_tensor_in_l2_that_no_launch_has_is_told_at_the_end(run):
    told = "no launch has a tensor argument 'foo'; they have out, x"
    status, out, err = run("launch()", options=("--l2", "foo=warm,x=cold"))
    assert (status, told in err, told in out, "'x'" in err) == (0, True, False, False)
    assert run("launch()", options=("--l2", "x=cold,*=warm"))[2] == ""


THIRD = """
@triton.jit
def third(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i) / 3)

a = np.arange(64, dtype=np.float32)
b = np.empty_like(a)
third[(1,)](a, b, B=64)
"""


def errors_of(printed):
    return json.loads(printed)["dearest"]["errors"]["out"]


def test_errors_of_a_script_are_those_against_its_exact_values_in_a_file_and_by_a_function(run, tmp_path):
    np.savez(tmp_path / "right.npz", out=np.arange(64) / 3)
    (tmp_path / "right.py").write_text("def third(x):\n    return x / 3\n")
    given = [("--errors",), ("--float64-reference", tmp_path / "right.npz")]
    given.append(("--float64-reference", f"{tmp_path / 'right.py'}:third"))
    found = []
    for options in given:
        status, out, err = run(THIRD, options=(*options, "--json"))
        assert (status, err) == (0, "")
        found.append(errors_of(out)["max_abs"])
    assert found[0] == found[1] == found[2] > 0


def test_a_reference_that_no_launch_wrote_is_refused_with_the_names_of_those_written(run, tmp_path):
    np.savez(tmp_path / "other.npz", out=np.arange(64) / 3, result=np.arange(64) / 3)
    status, out, err = run(THIRD, options=("--float64-reference", tmp_path / "other.npz"))
    assert status == 2
    assert "error against reference" in out
    assert "no launch of this process wrote 'result'; written were out" in err


def test_a_script_tells_its_errors_and_the_lines_that_make_them(run, tmp_path):
    status, out, err = run(THIRD, options=("--error-lines", "--save", tmp_path / "third.run"))
    assert (status, err) == (0, "")
    assert "error against float64" in out
    assert "rounded at" in out
    shares = load_run(tmp_path / "third.run").error_lines["out"]
    assert sum(shares.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--errors", "--no-values"), "--no-values leaves out"),
        (("--errors", "--float64-reference", "x.npz"), "give one of them"),
        (("--float64-reference", "nothing"), "neither a file nor module:function"),
        (("--float64-reference", "math:nothing"), "has no function 'nothing'"),
    ],
)
def test_wrong_asking_for_errors_is_refused(run, options, words):
    status, out, err = run(THIRD, options=options)
    assert (status, out) == (2, "")
    assert words in err
