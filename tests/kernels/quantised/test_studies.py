"""What studies say of products of quantised numbers: which type the Cube multiplies, and that no mode changes it."""

from __future__ import annotations

import pytest

from ascendtile.kernels import precision_study, run_op

SIZES = {"m": 16, "n": 32, "k": 64}
IDLE = "cube_math_type USE_HF32 has no effect: {} multiplies its inputs in their own types"


@pytest.mark.parametrize(
    ("name", "bits", "multiplied"),
    [
        ("quant_matmul", {"x_bits": 8, "w_bits": 8}, {"int8"}),
        ("quant_matmul", {"x_bits": 16, "w_bits": 4}, {"fp16", "bf16"}),
        ("grouped_matmul", {"experts": 2}, {"fp16", "bf16"}),
    ],
)
def test_a_row_names_the_type_that_the_cube_multiplies(name, bits, multiplied):
    study = precision_study(name, sizes={**SIZES, **bits}, modes="USE_HF32", time=False)
    assert {r.compute_dtype for r in study.rows} == multiplied
    assert IDLE.format(name) in study.notes


@pytest.mark.parametrize("name", ["quant_matmul", "grouped_matmul"])
def test_a_run_says_that_its_mode_has_no_effect(name):
    run = run_op(name, "tiny", cube_math_type="USE_HF32", values=False).run
    assert IDLE.format(name) in run.notes
    assert not [n for n in run_op(name, "tiny", values=False).run.notes if "no effect" in n]
