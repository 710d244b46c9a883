"""The command that a page gives to make its run again: it runs, and makes the same record."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from ascendtile.kernels import run_op
from ascendtile.reports.facts.repeat_command import repeat_command
from ascendtile.reports.html.run_summary import title
from ascendtile.simulator import load_run

SIZES = ("--size", "m=30", "n=26", "k=52")


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "asked",
    [
        ("matmul", *SIZES, "--dtype", "float16", "--seed", "3"),
        ("rms_norm", "--case", "tiny", "--distribution", "heavy", "--numerics", "overflow_mode=saturate"),
        ("rms_norm", "--case", "tiny", "--numerics", "cube_block_k=2", "fp32_subnormals=keep", "--no-time"),
        ("matmul", "--case", "tiny", "--no-values", "--cube-math-type", "USE_HF32", "--dtype", "float32"),
        ("rms_norm", "--case", "tiny", "--set", "numerics.overflow_mode=saturate", "--tiling", "rows=1"),
        ("convolution_backward", "--case", "tiny", "--option", "output_mask=0,1,1", "--no-time"),
        ("matmul", "--case", "tiny", "--option", "out_dtype=float32", "--no-time"),
    ],
)
def test_the_command_makes_the_same_run(ascendtile, tmp_path, asked):
    assert ascendtile("run", *asked, "--save", tmp_path / "a.run").status == 0
    a = load_run(tmp_path / "a.run")
    program, *words = shlex.split(repeat_command(a))
    assert program == "ascendtile"
    answer = ascendtile(*words, "--save", tmp_path / "b.run")
    assert answer.status == 0, (words, answer.err)
    b = load_run(tmp_path / "b.run")
    for name in ("op", "case", "dtype", "cube_math_type", "tiling", "options", "inputs", "errors", "time_us"):
        assert repr(getattr(a, name)) == repr(getattr(b, name)), (name, words)
    assert len(a.launches) == len(b.launches)
    assert a.product == b.product


def test_a_usual_run_needs_few_words():
    run = run_op("rms_norm", case="tiny", dtype="float16").run
    words = shlex.split(repeat_command(replace(run, tiling={})))
    assert words[:5] == ["ascendtile", "run", "rms_norm", "--case", "tiny"]
    assert words[5:] == ["--dtype", "float16", "--product", "ascend910b3"]


def test_a_record_of_an_unknown_operator_has_a_command():
    run = run_op("rms_norm", case="tiny", time=False).run
    assert repeat_command(replace(run, op="no_such_op")).startswith("ascendtile run no_such_op --case tiny")
    assert repeat_command(replace(run, op=None)) is None


@pytest.mark.drawn(1)
@pytest.mark.parametrize("given", [(), ("--option", "causal=1"), ("--option", "causal=0")])
def test_pages_name_the_options_in_force_that_are_not_the_usual_ones(ascendtile, tmp_path, given):
    """Whoever set them: the case has causal=1, the operator 0."""
    asked = ("flash_attention", "--case", "tiny", "--no-values", *given)
    page = ascendtile("run", *asked, "--save", tmp_path / "a.run").out
    run = load_run(tmp_path / "a.run")
    told = "options causal=1" in page
    assert told == ("causal=1" in title(run)) == (run.options["causal"] == 1)


def test_the_list_of_cases_names_the_options_that_they_set(ascendtile):
    assert "causal=1" in ascendtile("ops", "flash_attention").out.split("sizes (--size")[0]
