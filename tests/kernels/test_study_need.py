"""Which mode is enough: needs, answers, one tiling for all rows, seeds, sweeps over values of one's own, tables."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels import get_operator, operators, precision_study, precision_sweep, run_op
from ascendtile.kernels.study.results import Answer, ModeRow, Study
from ascendtile.simulator.precision.acceptance import TORCH, verdicts
from ascendtile.simulator.precision.metrics import compare
from ascendtile.simulator.precision.need import Kept, Need, times_tolerance
from ascendtile.tiling import best_tilings

LONG = {"m": 64, "n": 64, "k": 8192}
SMALL = {"m": 32, "n": 32, "k": 64}
numbers = st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=20)


# -- a need ----------------------------------------------------------------------------------------------------------


@given(numbers, st.floats(0, 0.5), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_a_tolerance_passes_exactly_what_numpy_finds_close(golden, rtol, atol, seed):
    g = np.array(golden)
    a = g + np.random.default_rng(seed).normal(size=g.size)
    within = bool((np.abs(a - g) <= atol + rtol * np.abs(g)).all())
    assert (times_tolerance(a, g, rtol, atol) <= 1) == within
    assert Need(rtol=rtol, atol=atol).judge(a, g, compare(a, g, "fp32")).passed == within


@given(numbers, st.floats(1, 30), st.integers(0, 2**32 - 1))
def test_bits_pass_from_as_many_as_there_are(golden, bits, seed):
    g = np.array(golden) + 200
    a = g * (1 + 1e-4 * np.random.default_rng(seed).normal(size=g.size))
    report = compare(a, g, "fp32")
    kept = Need(bits=bits).judge(a, g, report)
    assert kept.passed == (report.effective_bits >= bits) == (kept.factor <= 1)


@pytest.mark.parametrize("fmt", ["fp16", "bf16", "fp32"])
@pytest.mark.parametrize("rule", ["torch", "single-benchmark", "mixed-tolerance"])
def test_a_rule_says_of_a_result_of_its_own_type_what_the_verdict_says(rule, fmt):
    g = np.random.default_rng(0).standard_normal(500) + 3
    for error in (1e-7, 3e-4, 3e-3, 0.2):
        a = (g * (1 + error)).astype(np.float32)
        verdict = next(v for v in verdicts(a, g, fmt) if v.rule == rule)
        kept = Need(rule=rule, fmt=fmt).judge(a, g, compare(a, g, fmt))
        assert kept.passed == verdict.passed
        assert kept.passed == (kept.factor <= 1)


@pytest.mark.parametrize("need", [Need(bits=1), Need(rtol=1.0), Need(rule="torch")])
def test_nothing_keeps_a_nan_that_should_be_a_number(need):
    g = np.ones(4)
    a = np.array([1, 1, 1, np.nan])
    kept = need.judge(a, g, compare(a, g, "fp32"))
    assert not kept.passed
    assert math.isinf(kept.factor)
    assert kept.words == "NaN or infinity in 1 elements"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "a need is bits, or rtol and atol, or a rule; give one of them"),
        ({"bits": 12, "rtol": 1e-3}, "give one of them"),
        ({"bits": 0}, "bits is a number above 0 up to 64, got 0"),
        ({"bits": "many"}, "bits is a number, got 'many'"),
        ({"rtol": -1.0}, "rtol is a number from 0, got -1.0"),
        ({"atol": math.inf}, "atol is a number from 0, got inf"),
        ({"rule": "numpy"}, "unknown rule 'numpy'; known are torch, single-benchmark, mixed-tolerance"),
        ({"rule": "torch", "fmt": "fp8"}, "no thresholds for 'fp8'; known are fp16, bf16, fp32"),
        ({"bit": 12}, "a need has no 'bit'; did you mean bits"),
        (12, "need must be a mapping of name to value, got 12"),
    ],
)
def test_a_need_that_makes_no_sense_is_refused(given, text):
    with pytest.raises(sim.UsageError) as error:
        precision_study("matmul", sizes=SMALL, need=given)
    assert text in str(error.value)


# -- answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_the_cheapest_is_the_fastest_of_those_that_pass():
    study = precision_study("matmul", sizes={"m": 512, "n": 512, "k": 512}, sample=64, need={"bits": 12})
    passing = [r for r in study.rows if r.bits("out") >= 12]
    assert {r.name for r in study.rows if r.passed} == {r.name for r in passing}
    assert study.cheapest is not None
    assert study.cheapest.compute_dtype == "hf32"
    assert study.cheapest.time_us == min(r.time_us for r in passing)
    assert "ALLOW_FP32_DOWN_PRECISION or USE_HF32 with float32" in Answer((study,)).words


def test_the_nearest_is_named_where_none_passes():
    study = precision_study("matmul", sizes=SMALL, dtypes="float16,bfloat16", need={"bits": 20})
    assert study.cheapest is None
    assert study.nearest is not None
    assert study.nearest.bits("out") == max(r.bits("out") for r in study.rows)
    assert Answer((study,)).words.startswith("no mode keeps 20 bits; nearest is USE_FP32_ADD with float16")


@pytest.mark.parametrize(
    ("dtypes", "fmt"), [("all", "fp32"), ("float16,bfloat16", "fp16"), ("bfloat16", "bf16")]
)
def test_a_rule_takes_the_thresholds_of_the_finest_type_for_every_row(dtypes, fmt):
    study = precision_study("matmul", sizes=SMALL, dtypes=dtypes, need={"rule": "torch"})
    assert study.need == Need(rule="torch", fmt=fmt)
    for row in study.rows:
        judged = next(v for v in row.verdicts["out"]["exact_inputs"] if v.rule == "torch")
        if judged.fmt == fmt:
            assert row.passed == judged.passed
    assert study.need.tolerance == TORCH[fmt]


def _row(mode: str, time_us: float, factor: float) -> ModeRow:
    kept = {"out": Kept(factor <= 1, factor, "")}
    return ModeRow(mode, "float32", "fp32", {}, 0, time_us, kept=kept)


rows = st.lists(st.tuples(st.floats(1, 9), st.floats(0, 3)), min_size=3, max_size=3)


@given(st.lists(rows, min_size=1, max_size=4))
def test_over_a_sweep_the_cheapest_passes_everywhere_and_the_nearest_misses_by_least(points):
    need = Need(bits=12)
    studies = [
        Study("op", "p", None, tuple(_row(f"m{k}", *x) for k, x in enumerate(p)), {}, None, need=need)
        for p in points
    ]
    worst = [max(p[k][1] for p in points) for k in range(3)]
    total = [sum(p[k][0] for p in points) for k in range(3)]
    passing = [k for k in range(3) if worst[k] <= 1]
    cheapest, nearest = Answer(studies).cheapest, Answer(studies).nearest
    assert (cheapest is None) == (not passing)
    if cheapest is not None:
        assert total[int(cheapest.cube_math_type[1:])] == min(total[k] for k in passing)
    assert nearest is not None
    assert nearest.factor == min(worst)


def test_a_study_that_was_asked_nothing_has_no_answer():
    study = precision_study("matmul", sizes=SMALL, dtypes="float32", modes="KEEP_DTYPE")
    with pytest.raises(sim.UsageError, match="the study was not asked for a need"):
        assert study.cheapest
    with pytest.raises(sim.UsageError, match="the cheapest mode that keeps a need is told by its time"):
        precision_study("matmul", sizes=SMALL, need={"bits": 12}, time=False)


# -- tilings ---------------------------------------------------------------------------------------------------------


@pytest.mark.drawn(1)
@pytest.mark.parametrize("sizes", [LONG, {"m": 100, "n": 300, "k": 500}])
def test_all_rows_have_one_tiling_or_a_note_that_names_the_difference(sizes):
    study = precision_study("matmul", sizes=sizes, sample=16)
    other = {r.name for r in study.rows if r.tiling != study.tiling}
    assert not other
    assert not [n for n in study.notes if n.startswith("another tiling")]
    times = {r.cube_math_type: r.time_us for r in study.rows if r.dtype == "float32"}
    assert times["USE_FP32_ADD"] == times["KEEP_DTYPE"]  # it computes the same; no other cut makes it faster


def test_a_mode_that_adds_parts_keeps_its_parts_and_the_note_says_so():
    study = precision_study(
        "matmul",
        sizes={"m": 1024, "n": 1024, "k": 4096},
        dtypes="float32",
        modes="KEEP_DTYPE,USE_FP32_ADD",
        sample=8,
    )
    assert "another tiling, split_k=2: USE_FP32_ADD with float32" in study.notes


@pytest.mark.drawn(4)
@pytest.mark.parametrize("op", operators())
def test_the_first_row_takes_the_time_of_the_operators_own_choice(op):
    found = get_operator(op)
    case = "tiny" if "tiny" in found.cases else next(iter(found.cases))
    study = precision_study(
        op, case, dtypes=found.dtypes[0], modes="KEEP_DTYPE", sample=8 if found.cut else None
    )
    run = run_op(op, case, found.dtypes[0], values=False)
    assert study.rows[0].time_us == run.time_us


@pytest.mark.exhaustive
def test_each_row_may_have_its_own_best_tiling():
    space = {"block_m": (16, 32, 64), "block_n": 64, "block_k": (64, 128), "buffers": 2}
    ask = {"sizes": {"m": 64, "n": 64, "k": 256}, "modes": "KEEP_DTYPE,USE_FP16"}
    same = precision_study("matmul", **ask)
    best = precision_study("matmul", **ask, tiling=best_tilings("matmul", space=space))
    assert best.tiling is None
    for one, own in zip(same.rows, best.rows, strict=True):
        assert own.time_us <= one.time_us
        assert own.tiling["block_m"] in space["block_m"]


# -- seeds, sweeps, tables -------------------------------------------------------------------------------------------


def test_of_several_seeds_the_first_has_the_errors_and_the_worst_is_judged():
    ask = {"sizes": SMALL, "dtypes": "float32", "need": {"bits": 12}}
    every = [precision_study("matmul", **ask, seed=s) for s in (3, 4, 5)]
    study = precision_study("matmul", **ask, seed=3, seeds=3)
    assert study.seeds == 3
    for k, row in enumerate(study.rows):
        assert row.errors == every[0].rows[k].errors
        assert row.seed_bits["out"] == tuple(s.rows[k].bits("out") for s in every)
        assert row.factor == max(s.rows[k].factor for s in every)
    with pytest.raises(sim.UsageError, match="several seeds draw several sets of numbers, inputs are of one"):
        precision_study("matmul", inputs={"a": 1, "b": 1}, seeds=2)
    with pytest.raises(sim.UsageError, match="1 to 100, got 0"):
        precision_study("matmul", sizes=SMALL, seeds=0)


def test_a_sweep_goes_over_values_of_ones_own_and_over_any_size():
    ask = {"case": SMALL, "dtypes": "float32", "modes": "KEEP_DTYPE"}
    assert [s.value for s in precision_sweep("matmul", "k", values=[32, 8192], **ask)] == [32, 8192]
    found = precision_sweep("matmul", "m", values=[16, 48], **ask)
    assert [s.rows[0].errors["out"]["exact_inputs"].shape for s in found] == [(16, 32), (48, 32)]
    with pytest.raises(sim.UsageError, match="a sweep over m needs its values: m=64,128"):
        precision_sweep("matmul", "m", **ask)
    with pytest.raises(sim.UsageError, match="a sweep has at most 200 points, got 300"):
        precision_sweep("matmul", "k", values=range(1, 301), **ask)


def test_records_have_a_line_for_each_row_and_output():
    study = precision_study("rms_norm_grad", "tiny", need={"bits": 8}, seeds=2)
    records = study.records()
    assert len(records) == sum(len(r.errors) or 1 for r in study.rows)
    first = records[0]
    row = study.rows[0]
    assert first["effective_bits_exact"] == row.bits(first["output"])
    assert first["passed"] == row.kept[first["output"]].passed
    assert first["least_bits"] <= first["effective_bits_exact"] <= first["most_bits"]
    assert {f"tiling_{n}" for n in row.tiling} <= set(first)


@pytest.mark.extra("pandas")
def test_studies_runs_and_explorations_are_data_frames():
    from ascendtile.tiling import explore

    study = precision_study("matmul", sizes=SMALL)
    frame = study.to_dataframe()
    assert list(frame["time_us"]) == [r.time_us for r in study.rows]
    run = run_op("matmul", LONG, "float32", values=False).run
    assert run.to_dataframe()["time_us"].sum() == pytest.approx(run.time_us)
    found = explore("layer_norm", case="tiny", space={"buffers": (1, 2)})
    assert found.to_dataframe()["time_us"].min() == found.best.time_us


def test_a_row_without_a_need_says_that_it_did_not_pass():
    row = _row("m", 1.0, 0.5)
    assert row.passed
    assert not replace(row, kept={}).passed
