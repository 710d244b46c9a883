"""What becomes of operands in the format in which they are multiplied, and errors by magnitude: counts of a study's rows."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from ascendtile.kernels import precision_study
from ascendtile.kernels.study.losses import losses
from ascendtile.simulator.precision.formats import BF16, FP16
from ascendtile.simulator.precision.rounding import round_to

KINDS = ("float32", "float16", "bfloat16")
numbers = hnp.arrays(np.float32, st.integers(1, 40), elements=st.floats(width=32))


@pytest.mark.parametrize("fmt", [FP16, BF16], ids=str)
@given(x=numbers)
def test_every_element_is_counted_by_what_became_of_it(fmt, x):
    seen = round_to(x, fmt)
    found = losses(x, seen, fmt)
    finite = np.isfinite(x)
    assert found.elements == x.size
    assert found.overflow == sum(np.isinf(seen[finite]))  # nothing saturates here
    assert found.underflow == sum((x[finite] != 0) & (seen[finite] == 0))
    assert found.subnormal == sum((seen != 0) & (np.abs(seen) < fmt.min_normal))
    assert found.nan == sum(np.isnan(x))


def test_what_saturates_is_too_large_as_well_as_what_becomes_infinite():
    x = np.float32([65504.0, 65519.0, 65520.0, 1e9, -1e9])
    for overflow in ("inf_nan", "saturate"):
        assert losses(x, round_to(x, FP16, overflow=overflow), FP16).overflow == 3


def test_bits_are_those_of_what_is_left():
    x = np.float32([1.0, 1e9])
    assert losses(x, np.float32([1.0, np.inf]), FP16).bits == math.inf
    assert losses(x, np.float32([0.75, np.inf]), FP16).bits == 2.0
    assert math.isnan(losses(x[1:], np.float32([np.inf]), FP16).bits)


def test_rows_tell_the_loss_of_the_format_that_is_multiplied():
    """A cast on the way to the Cube loses what storage in float32 kept."""
    a = np.float32([[1.0, 1e6], [1e-7, 1e-30]])
    study = precision_study("matmul", inputs={"a": a, "b": np.eye(2, dtype=np.float32)}, time=False)
    rows = {(r.dtype, r.cube_math_type): r.operands["a"] for r in study.rows}
    assert {d: rows[d, "KEEP_DTYPE"].fmt for d in KINDS} == dict(
        zip(KINDS, ("fp32", "fp16", "bf16"), strict=True)
    )
    kept, cast = rows["float32", "KEEP_DTYPE"], rows["float32", "USE_FP16"]
    assert (kept.lost, kept.bits) == (0, math.inf)
    assert (cast.fmt, cast.overflow, cast.underflow, cast.subnormal) == ("fp16", 1, 1, 1)
    assert cast == rows["float16", "KEEP_DTYPE"]


def test_operators_of_the_vector_unit_tell_what_storing_loses():
    study = precision_study("rms_norm_grad", "tiny", dtypes="bfloat16,float32", time=False)
    exact, rounded = (r.operands for r in study.rows)
    assert {x.bits for x in exact.values()} == {math.inf}
    assert all(x.bits < 12 for n, x in rounded.items() if x.fmt == "bf16")


@pytest.mark.parametrize("dtype", KINDS)
def test_octaves_have_every_finite_element_and_its_error(dtype):
    (row,) = precision_study(
        "matmul", sizes={"m": 8, "n": 8, "k": 8}, modes="KEEP_DTYPE", dtypes=dtype, time=False
    ).rows
    report, octaves = row.errors["out"]["exact_inputs"], row.octaves["out"]
    assert sum(o.count for o in octaves) == report.compared
    assert sum(o.count * o.mean_abs for o in octaves) == pytest.approx(report.compared * report.mean_abs)
    assert max(o.max_ulp for o in octaves) == report.max_ulp
