"""Micro-benchmarks: what they are made of is the engine and the product's figures; how near they come to the boards."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.kernels.validation import predict, read_table, validate
from ascendtile.kernels.validation import table as tables
from ascendtile.kernels.validation.microbench import cube_core, cycles_each, vector_core
from ascendtile.simulator.errors import UsageError

NAME = "ascend910b1"
ROWS = {r.id: r for r in read_table(tables.__file__.replace("table.py", "micro.csv"))}


@pytest.fixture(scope="module")
def found():
    return validate(list(ROWS.values()))


@pytest.mark.exhaustive
def test_errors_are_as_small_as_the_project_asks(found):
    groups = {g.name: g.summary for g in found.groups}
    for name in ("all of micro", "all of micro: fitted", "all of micro: not fitted"):
        assert groups[name].rows > 250
        assert groups[name].median_abs_error <= 0.10
        assert groups[name].p90_abs_error <= 0.25
        assert groups[name].median_abs_error < groups[name].roofline_median_abs_error / 10
    for name in ("mmad", "vector instructions", "transfers"):
        assert groups[name].median_abs_error <= 0.10
        assert groups[name].spearman >= 0.95


def test_every_row_is_predicted_or_excluded_with_a_reason(found):
    assert not found.failed
    assert all(r.judged or r.row.excluded for r in found.results)
    reasons = {r.row.excluded for r in found.excluded}
    assert len(reasons) == 6
    assert len(found.excluded) < len(found.results) / 4


def test_half_of_what_is_judged_is_held_out(found):
    judged = [r.row for r in found.results if r.judged]
    for group in {r.group for r in judged}:
        held = [r for r in judged if r.group == group and not r.fitted]
        assert len(held) >= 0.4 * len([r for r in judged if r.group == group])


@given(st.floats(1, 500), st.floats(0, 300))
def test_back_to_back_takes_the_pipe_and_one_after_the_other_waits(occupancy, latency):
    core = vector_core(NAME)
    record = {"occupancy": occupancy, "latency": latency}
    assert cycles_each(core, core.vector, False, **record) == pytest.approx(occupancy)
    assert cycles_each(core, core.vector, True, **record) == pytest.approx(occupancy + latency)


@given(st.integers(1, 1 << 20))
def test_a_transfer_streams_at_the_rate_of_its_port(size):
    core = cube_core(NAME)
    rate = core.machine.channels[core.cube_write[0]].port_bytes_per_cycle
    record = {"channel": core.cube_write[0], "amount": size, "occupancy": 10.0, "latency": 50.0}
    streamed = max(10.0, size / rate)
    assert cycles_each(core, core.fixp, False, **record) == pytest.approx(streamed)
    assert cycles_each(core, core.fixp, True, **record) == pytest.approx(streamed + 50)


@pytest.mark.parametrize(
    ("row", "changed", "words"),
    [
        ("vadd_fp32_fp32_fp32-r8", {"shapes": "8"}, "shapes '8' must say repeat=<a number above 0>"),
        ("vadd_fp32_fp32_fp32-r8", {"shapes": "repeat=0"}, "must say repeat=<a number above 0>"),
        ("vadd_fp32_fp32_fp32-r8", {"dtypes": "fp7"}, "dtype 'fp7' is not one of fp16"),
        ("vadd_fp32_fp32_fp32-r8", {"dtypes": ""}, "dtypes '' must name 1 or more types"),
        ("vadd_fp32_fp32_fp32-r8", {"tiling": "at night"}, "does not start with one of back to back"),
        ("vadd_fp32_fp32_fp32-r8", {"unit": "us"}, "unit us is not one of cycles"),
        ("mmad-910b1-32x16x16", {"shapes": "m=16 n=16"}, "must say k="),
        ("mmad-910b1-32x16x16", {"dtypes": "fp64 fp64"}, "the Cube of ascend910b1 takes no fp64 operands"),
        ("gm_to_ub-910b1-1KB", {"unit": "TFLOP/s"}, "unit TFLOP/s is not one of"),
    ],
)
def test_a_row_that_makes_no_sense_says_why(row, changed, words):
    with pytest.raises(UsageError) as error:
        predict(replace(ROWS[row], **changed))
    assert words in str(error.value)


def test_units_say_the_same():
    row = ROWS["gm_to_ub-910b1-64KB"]
    rate = predict(row).value
    cycles = predict(replace(row, unit="cycles/1024")).value / 1024
    assert rate == pytest.approx(65536 / cycles * 1.8e9 / 2**30)
    mmad = ROWS["mmad-910b1-32x16x64"]
    assert predict(mmad).value == pytest.approx(
        2 * 32 * 16 * 64 / predict(replace(mmad, unit="cycles")).value
    )


def test_a_conflict_of_banks_costs_what_the_vendor_measured():
    free, met = (predict(ROWS[f"bank_conflict_ub-s{k}"]).value for k in (1, 2))
    assert (free, met) == (86, 150)
