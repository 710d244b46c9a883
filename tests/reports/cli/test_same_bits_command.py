"""`ascendtile same-bits`: verdicts, exit status, one JSON object, and what is refused."""

from __future__ import annotations

import json

import pytest

SCRIPT = """
import sys
import numpy as np
import triton
import triton.language as tl

@triton.jit
def row_sum(x, out, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    total = 0.0
    for k in range(0, n, BLOCK):
        total += tl.sum(tl.load(x + r * n + k + tl.arange(0, BLOCK)))
    tl.store(out + r, total)

@triton.jit
def doubled(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i))

n = int(sys.argv[1]) if len(sys.argv) > 1 else 128
x = np.random.default_rng(0).standard_normal((2, n), np.float32)
out = np.zeros(2, np.float32)
print("before")
row_sum[(2,)](x, out, n, BLOCK=64)
print("sum", out.sum() != 0)
doubled[(2 * n // 32,)](x, np.zeros_like(x), n, BLOCK=32)
if n == 64:
    raise SystemExit(3)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def test_each_kernel_has_a_verdict_and_one_that_differs_makes_the_status(ascendtile, script):
    answer = ascendtile("same-bits", script, "--vary", "batch,tiling")
    assert answer.status == 1
    assert "row_sum: out[" in answer.out
    assert "doubled: same bits in all" in answer.out
    assert "sum True" in answer.out  # the script goes on as it would


TIES = """
import numpy as np
import triton
import triton.language as tl

@triton.jit
def same_place(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + tl.program_id(0) * BLOCK + i))

@triton.jit
def last_of_blocks(x, out, n, BLOCK: tl.constexpr):
    best, at = -1e38, 0
    for k in range(0, n, BLOCK):
        v = tl.load(x + k + tl.arange(0, BLOCK))
        at = tl.where(tl.max(v) >= best, tl.argmax(v, 0) + k, at)
        best = tl.maximum(tl.max(v), best)
    tl.store(out, at)

x = np.random.default_rng(0).standard_normal(32, np.float32)
same_place[(2,)](x, np.zeros(16, np.float32), BLOCK=16)
last_of_blocks[(1,)](x, np.zeros(1, np.int32), 32, BLOCK=32)
"""


def test_a_kernel_that_cannot_be_compared_leaves_the_verdicts_of_others(ascendtile, tmp_path):
    path = tmp_path / "ties.py"
    path.write_text(TIES)
    answer = ascendtile("same-bits", path, "--vary", "tiling,order", "--tilings", "BLOCK=16")
    assert answer.status == 1
    assert "same_place is not compared: " in answer.err
    assert "programs meet in memory without atomics" in answer.err.replace("\n", " ")
    assert "last_of_blocks: out[0] differs between as launched and BLOCK=16" in answer.out
    assert "for inputs that are all 0" in answer.out  # a tie is enough, and is shown with both values
    assert "(0x00000010)" in answer.out
    alone = ascendtile("same-bits", f"{path}:same_place", "--vary", "order")
    assert alone.status == 2
    asked = ("--vary", "tiling", "--tilings", "BLOCK=16", "--json")
    data = json.loads(ascendtile("same-bits", path, *asked).out)
    assert [v["subject"] for v in data["verdicts"]] == ["last_of_blocks"]
    assert list(data["not_compared"]) == ["same_place"]


def test_one_kernel_is_chosen_by_name(ascendtile, script):
    answer = ascendtile("same-bits", f"{script}:row_sum", "--vary", "batch,order")
    assert (answer.status, answer.err) == (0, "")
    assert "row_sum: same bits in all 2 configurations, proven for all finite inputs" in answer.out
    assert "doubled" not in answer.out


def test_json_is_one_object_with_both_orders_and_the_inputs(ascendtile, script):
    answer = ascendtile("same-bits", f"{script}:row_sum", "--tilings", "BLOCK=128,32", "--json", "--", "128")
    data = json.loads(answer.out)
    assert (answer.status, data["same"]) == (1, False)
    (verdict,) = data["verdicts"]
    assert verdict["verdict"] == "differs"
    assert verdict["configurations"][0] == "as launched"
    found = verdict["counterexample"]
    assert found["inputs"]
    assert len({order["bits"] for order in found["orders"]}) == 2
    assert all(order["of_inputs"] for order in found["orders"])
    assert "before" in answer.err


@pytest.mark.exhaustive
def test_an_operator_says_what_would_make_it_the_same(ascendtile):
    answer = ascendtile(
        "same-bits", "RmsNormGrad", "--size", "rows=4", "cols=16", "--vary", "cores", "--tries", "20"
    )
    assert answer.status == 1
    assert "advice  give cores for all runs: --tiling cores=VALUE" in answer.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fly"], "fly"),
        (["nothing.py"], "nothing.py: no such file"),
        (["rms_norm", "--vary", "colour"], "cannot vary 'colour'"),
        (["rms_norm", "--batch", "0"], "'0' is no number from 1 on; write 1,4,16"),
        (["rms_norm", "--tilings", "rows"], "'rows' is not NAME=VALUE"),
        (["rms_norm", "--tilings", "rows=1,"], "rows lacks a value; write rows=64,128"),
        (["rms_norm", "--given", "x"], "--given is for scripts"),
        (["rms_norm", "--case", "tiny", "--size", "rows=4"], "--case and --size each say what to compare"),
        (["rms_norm", "--tries", "0"], "'--tries'"),
        (["rms_norm", "--seconds", "nan"], "seconds above 0, got nan"),
        (["rms_norm", "--products", "ascend910b1"], "products is given, but product is not varied"),
        (["rms_norm", "--", "7"], "an operator takes no arguments; use --option"),
        (["rms_norm", "--vary", "order"], "there is one configuration to compare"),
        (["{script}", "--case", "tiny"], "--case is for operators"),
        (["{script}", "--tilings", "BLOCK=x"], "a compile-time size is a number such as 64, got 'x'"),
    ],
)
def test_what_cannot_be_compared_is_wrong_usage(refused, script, arguments, message):
    assert message in refused("same-bits", *(x.format(script=script) for x in arguments))


@pytest.mark.parametrize(
    ("kernel", "options", "message"),
    [
        ("", ["--tilings", "WIDTH=64"], "no compile-time size 'WIDTH'; it has BLOCK"),
        (":absent", [], "launched no kernel 'absent'"),
    ],
)
def test_what_a_launch_does_not_have_is_wrong_usage(ascendtile, script, kernel, options, message):
    answer = ascendtile("same-bits", f"{script}{kernel}", *options)
    assert answer.status == 2
    assert message in answer.err


def test_a_script_that_fails_is_told_and_keeps_the_verdicts(ascendtile, script):
    """Its kernels were looked at before it failed."""
    answer = ascendtile("same-bits", f"{script}:row_sum", "--vary", "batch", "--", "64")
    assert answer.status == 1
    assert "same bits in all" in answer.out
    assert "the script ended with status 3" in answer.err
