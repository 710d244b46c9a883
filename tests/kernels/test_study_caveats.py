"""What an answer must not pass over: underflow, results near 1e-7, zeros, NaN in the input."""

from __future__ import annotations

import numpy as np
import pytest

from ascendtile.kernels import precision_study
from ascendtile.kernels.study.results import Answer

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
