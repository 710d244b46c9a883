"""Precision studies with splits of FP32 operands beside the vendor's modes: rows, both references, the front, a need."""

from __future__ import annotations

import numpy as np
import pytest

from ascendtile.kernels import get_operator
from ascendtile.kernels.study.results import EXACT, ROUNDED, Answer, unbeaten
from ascendtile.kernels.study.rows import rows_wanted
from ascendtile.kernels.study.study import precision_study
from ascendtile.reports.facts.study.json_form import read_study, study_json
from ascendtile.reports.facts.study.points import front, study_points
from ascendtile.simulator.device import CUBE_MATH_TYPES
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.precision.splits import SPLITS
from ascendtile.simulator.precision.splits.slices import slice_sums

SIZES = {"m": 16, "n": 16, "k": 64}
MODES = ("KEEP_DTYPE", "USE_HF32", "FP16X2", "FP16X3", "BF16X3", "BF16X6", "INT8X2")


@pytest.fixture(scope="module")
def study():
    return precision_study("matmul", sizes=SIZES, dtypes="float32", modes=MODES)


def test_all_is_the_vendors_modes_and_splits_are_ours():
    def modes(given):
        return [mode for mode, _ in rows_wanted(get_operator("matmul"), given, "float32", {})]

    assert modes("all") == list(CUBE_MATH_TYPES)
    assert modes("splits") == list(SPLITS)
    assert modes("splits,all") == [*CUBE_MATH_TYPES, *SPLITS]
    assert modes(["fp16x3", "KEEP_DTYPE", "3"]) == ["FP16X3", "KEEP_DTYPE", "USE_HF32"]
    with pytest.raises(
        UsageError, match=r"unknown cube_math_type 'fp17x3'.*did you mean FP16X3|known are.*splits"
    ):
        precision_study("matmul", sizes=SIZES, modes="fp17x3")


def test_what_is_multiplied_is_the_sum_of_slices(study):
    """Against it an error is of additions only: as small as that of FP32, with any slices that have no bits beyond FP32."""
    rows = {r.cube_math_type: r for r in study.rows}
    native = rows["KEEP_DTYPE"].bits("out", ROUNDED)
    for mode in ("FP16X2", "BF16X6"):  # every product of the slices that there are
        assert rows[mode].bits("out", ROUNDED) > native - 0.3, mode
    for mode, split in ((n, SPLITS[n]) for n in MODES[2:]):
        assert rows[mode].compute_dtype == mode.lower()
        assert rows[mode].bits("out", EXACT) < rows[mode].bits("out", ROUNDED) + 0.2, mode
        assert rows[mode].bits("out", EXACT) > split.bits - 4.0 if split.bits < 22 else 20


def test_rounded_inputs_have_the_scales_of_rows_and_columns():
    g = np.random.default_rng(0)
    a = np.float32(g.standard_normal((32, 64)) * np.exp2(np.linspace(-40, 40, 32))[:, None])
    b = np.float32(g.standard_normal((64, 16)))
    (row,) = precision_study(
        "matmul", inputs={"a": a, "b": b}, dtypes="float32", modes="FP16X2", time=False
    ).rows
    split = SPLITS["FP16X2"]
    golden = slice_sums(a, split, 0, 1) @ slice_sums(b, split, 1, 0)
    exact = np.float64(a) @ np.float64(b)
    assert row.bits("out", EXACT) == pytest.approx(
        -np.log2(np.abs(golden - exact).mean() / np.abs(exact).mean()), abs=0.3
    )


def test_the_front_is_what_nothing_beats(study):
    best = study.front("out")
    times, bits = ([f(r) for r in best] for f in (lambda r: r.time_us, lambda r: r.bits("out")))
    assert times == sorted(set(times))
    assert bits == sorted(set(bits))
    for row in study.rows:
        assert any(r.time_us <= row.time_us and r.bits("out") >= row.bits("out") for r in best)
    assert [p.row.name for p in front(study_points(study.rows, "out"))] == [r.name for r in best]
    told = study_json(study)["front"]["out"]
    assert [(x["cube_math_type"], x["dtype"]) for x in told] == [(r.cube_math_type, r.dtype) for r in best]
    assert unbeaten([(1, 5), (1, 6), (2, 6), (3, 7)], lambda x: x) == [(1, 6), (3, 7)]


def test_a_need_is_answered_by_a_split_where_the_cube_has_no_fp32():
    """On the 910A no mode of the vendor's keeps 20 bits; three products of FP16 slices do."""
    asked = {"sizes": SIZES, "dtypes": "float32", "product": "ascend910a", "need": {"bits": 20}}
    assert precision_study("matmul", **asked).cheapest is None
    found = precision_study("matmul", **asked, modes="USE_FP16,FP16X2,FP16X3")
    assert found.cheapest.cube_math_type == "FP16X3"
    assert "FP16X3 with float32" in Answer((found,)).words


def test_rows_of_other_types_and_slices_that_the_cube_lacks_are_refused_together():
    found = precision_study("matmul", sizes=SIZES, product="ascend910a", modes="splits", time=False)
    told = {(r.dtype, r.reason) for r in found.rows if r.status}
    assert {r.cube_math_type for r in found.rows if not r.status} == {
        "FP16X2",
        "FP16X3",
        "INT8X2",
        "INT8X3",
        "INT8X4",
    }
    assert len([t for t in told if t[0] == "float16"]) == 1
    assert any("slices are bf16" in reason for _, reason in told)


def test_studies_of_splits_are_read_again(study):
    again = read_study(study_json(study))
    assert [r.compute_dtype for r in again.first.rows] == [r.compute_dtype for r in study.rows]
