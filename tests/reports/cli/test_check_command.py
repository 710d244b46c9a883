"""Faults and exit status: `ascendtile check script.py`, `ascendtile run --strict`, and the options of checks."""

from __future__ import annotations

import json

import pytest

from ascendtile.simulator import Device, current_device
from ascendtile.simulator.checks.asked import checks_of
from ascendtile.simulator.device_checks import MASKED, OUT_OF_BOUNDS

SCRIPT = """
import sys
import numpy as np
import triton
import triton.language as tl

@triton.jit
def meet(out, step, B: tl.constexpr):
    p = tl.program_id(0)
    tl.store(out + p * step + tl.arange(0, B), p * 1.0)

out = np.zeros(64, np.float32)
for step in map(int, sys.argv[1:]):
    meet[(4,)](out, step, B=16)
if len(sys.argv) > 5:
    sys.exit(7)
"""
LINE = SCRIPT[: SCRIPT.index("tl.store")].count("\n") + 1


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def test_check_lists_each_fault_once_for_a_row_and_its_status_says_so(ascendtile, script):
    answer = ascendtile("check", script, 8, 16, 8, 8)
    words = " ".join(answer.out.split())
    assert (answer.status, answer.err) == (1, "")
    assert words.count("programs 0 and 1 both store to element 8 of 'out'") == 1
    assert f"script.py:{LINE}:" in "".join(answer.out.split())  # wherever a long path breaks
    assert "faults of meet grid 4, 4 launches" in words
    assert "(in 3 of the launches)" in words
    assert words.endswith("1 fault in 4 launches of 1 kernel")


def test_check_of_a_right_script_says_that_there_are_no_faults(ascendtile, script):
    answer = ascendtile("check", script, 16)
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.splitlines()[-1] == "no faults in 1 launch of 1 kernel"
    assert ascendtile("check", script).out.splitlines()[-1] == "no kernel was launched"


@pytest.mark.parametrize(
    ("command", "arguments", "status"),
    [
        (("check",), (8,), 1),
        (("check",), (16,), 0),
        (("check",), (8, 8, 8, 8, 8), 7),
        (("run",), (8,), 0),
        (("run", "--strict"), (8,), 1),
        (("run", "--strict"), (16,), 0),
        (("run", "--strict", "--no-time"), (8,), 1),
    ],
)
def test_faults_count_where_that_is_asked_for_and_a_status_of_the_script_comes_first(
    ascendtile, script, command, arguments, status
):
    answer = ascendtile(*command, "--json", script, *arguments)
    data = json.loads(answer.out)
    assert (answer.status, data["status"]) == (status, status)
    wrong = [
        f for f in data["faults"] if f["kind"] == "fault" and f["line"] == LINE and f["programs"] == [0, 1]
    ]
    assert bool(wrong) == (8 in arguments)
    assert all(f["kernel"] == "meet" and f["grid"] == [4, 1, 1] for f in wrong if "--no-time" not in command)


def test_a_strict_run_of_an_operator_counts_its_faults(ascendtile, tmp_path):
    import numpy as np

    inputs = {n: np.full((2, 64), np.inf, np.float16) for n in ("dy", "x")}
    np.savez(tmp_path / "x.npz", **inputs, rstd=np.ones((2, 1), np.float32), gamma=np.ones(64, np.float16))
    given = ("run", "rms_norm_grad", "--product", "ascend310p", "--input", tmp_path / "x.npz", "--no-time")
    plain, strict = ascendtile(*given, "--json"), ascendtile(*given, "--strict", "--json")
    assert (plain.status, strict.status) == (0, 1)
    assert [m["kind"] for m in json.loads(strict.out)["warnings"]] == ["fault"]
    assert ascendtile("run", "rms_norm", "--case", "tiny", "--strict", "--check", "--no-time").status == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--check", "--no-values"), "--check is about values, which --no-values leaves out"),
        (("--masked", "poison", "--no-values"), "--masked poison is about values"),
        (("--masked", "NaN"), "'NaN' is not one of"),
        (("--out-of-bounds", "no"), "'no' is not one of"),
    ],
)
def test_what_contradicts_itself_is_wrong_usage(refused, script, options, words):
    assert words in refused("run", *options, script)
    assert words in refused("run", "rms_norm", *options)


def test_check_of_what_is_not_there_is_wrong_usage(refused, tmp_path):
    assert "cannot read the script" in refused("check", tmp_path / "nowhere.py")
    assert "Missing argument" in refused("check")
    assert "`ascendtile run rms_norm --check --strict` checks it" in refused("check", "RmsNorm")


def test_the_options_reach_the_device_that_a_script_runs_on(ascendtile, tmp_path):
    path = tmp_path / "script.py"
    path.write_text(
        "import ascendtile.simulator as sim\nd = sim.current_device()\nprint(d.check, d.masked, d.out_of_bounds)"
    )
    for masked in MASKED:
        for outside in OUT_OF_BOUNDS:
            answer = ascendtile("run", "--check", "--masked", masked, "--out-of-bounds", outside, path)
            assert answer.out.splitlines()[0] == f"True {masked} {outside}"
    assert ascendtile("run", path).out.splitlines()[0] == "False zero error"
    assert ascendtile("check", path).out.splitlines()[0] == "True zero error"


def test_a_check_poisons_masked_lanes_too():
    product = current_device().product
    asked = {
        "check": (True, True, False),
        "masked": (False, True, False),
        "out_of_bounds": (False, False, True),
    }
    for (name, value), made in zip(
        {"check": True, "masked": "poison", "out_of_bounds": "warn"}.items(), asked.values(), strict=True
    ):
        assert checks_of(Device(product, **{name: value}))[:3] == made
    assert checks_of(Device(product))[:3] == (False, False, False)


LACKING = """
import ml_dtypes
import numpy as np
import triton
import triton.language as tl

@triton.jit
def widen(out, x, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i).to(tl.float32))

widen[(1,)](np.zeros(16, np.float32), np.zeros(16, ml_dtypes.float8_e4m3fn), B=16)
"""


def test_what_the_product_lacks_is_a_what_if_and_no_fault(ascendtile, tmp_path):
    path = tmp_path / "lacking.py"
    path.write_text(LACKING)
    answer = ascendtile("check", path)
    assert answer.status == 1  # it would not run on the product either
    assert "what-ifs of widen grid 1, 1 launch" in answer.out
    assert answer.out.splitlines()[-1] == "no faults and 1 what-if in 1 launch of 1 kernel"
    (told,) = json.loads(ascendtile("check", "--json", path).out)["faults"]
    assert (told["kind"], told["text"][:9]) == ("fault", "what-if: ")
