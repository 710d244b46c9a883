"""What an answer must not pass over: underflow, results near 1e-7, zeros, NaN in the input, figures at the limit."""

from __future__ import annotations

import numpy as np
import pytest

from ascendtile.kernels import precision_study
from ascendtile.kernels.study.results import Answer, ModeRow
from ascendtile.reports.facts.study.words import kept_text
from ascendtile.simulator.precision.metrics import compare
from ascendtile.simulator.precision.need import Kept, Need

ONES = np.ones((16, 16), np.float32)


@pytest.mark.parametrize(
    ("a", "told"),
    [
        (ONES * 1e-11, ["underflow: 256 of 256 elements of out became zero", "MARE and MERE, which divide"]),
        (ONES * 0, ["out is all zeros, which every mode has exactly"]),
        (np.where(ONES.cumsum(0) == 3, np.nan, ONES), ["16 of 256 elements of out are NaN or infinite"]),
        (ONES, []),
    ],
)
def test_an_answer_says_what_its_figures_hide(a, told):
    study = precision_study(
        "matmul",
        inputs={"a": a.astype(np.float32), "b": ONES},
        dtypes="float16",
        modes="KEEP_DTYPE",
        need={"rule": "single-benchmark", "fmt": "fp16"},
    )
    words = Answer((study,)).words
    assert "(|result| + 1e-7)" in words
    assert all(x in words for x in told)
    assert study.records()[0]["underflow_exact"] == (256 if "underflow" in "".join(told) else 0)
    assert told or words.endswith(")")


@pytest.mark.parametrize(("factor", "text"), [(1.0001, "no 1.01x"), (1.04, "no 1.04x"), (1.06, "no 1.1x")])
def test_an_error_that_is_slightly_too_large_is_not_told_as_just_right(factor, text):
    row = ModeRow("KEEP_DTYPE", "float16", "fp16", {"out": "fp16"}, 0, kept={"out": Kept(False, factor, "")})
    assert kept_text(row, "out") == text


def test_bits_that_are_too_few_are_not_rounded_to_the_bits_that_are_needed():
    g = np.ones(8)
    a = g * (1 + 2.0**-11.9999)
    kept = Need(bits=12).judge(a, g, compare(a, g, "fp32"))
    assert not kept.passed
    assert kept.words == "11.9999 bits"


@pytest.mark.parametrize(("op", "rounding"), [("matmul", "RNA"), ("convolution", "RNE")])
def test_the_rounding_of_hf32_is_that_of_the_kernel(op, rounding):
    study = precision_study(op, "tiny", dtypes="float32", modes="USE_HF32", time=False)
    assert study.numerics["hf32_round"].startswith(f"{rounding} (")
