"""Triton rows: any sizes are predicted, what makes no sense is refused in words, known laws of launches hold."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendtile.kernels.validation import predict, read_tables
from ascendtile.simulator.errors import UsageError

ROWS = {r.id: r for r in read_tables() if r.group == "Triton kernels"}
SUM, SLOTS, DIV = ROWS["mhc-h_in-2048-5120-128"], ROWS["fgv816-8-8192-128"], ROWS["akg-div_005-40"]


@settings(max_examples=8)
@given(st.integers(1, 300), st.integers(1, 700), st.sampled_from(["16x64", "32x128", "8x256"]))
def test_sizes_of_any_kind_are_predicted(m, d, block):
    assert predict(replace(SUM, shapes=f"{m}x{d}", tiling=f"block={block}")).value > 0
    assert predict(replace(DIV, shapes=f"{m}x{d}", tiling="programs=3 block=4x64")).value > 0
    assert predict(replace(SLOTS, shapes=f"{1 + m % 7}x{d}", tiling="page=16")).value > 0


def test_thousands_of_programs_take_little_more_than_their_work():
    """mhc-h_in: twice the programs of half the size cost what they lose in their own, not a launch each."""
    one, two = (predict(replace(SUM, tiling=f"block={n}x128 l2=loop")).value for n in (32, 16))
    assert one < two < 1.6 * one


@pytest.mark.parametrize(
    ("row", "changed", "words"),
    [
        (SUM, {"shapes": "2048"}, "shapes must be rows x columns, got '2048'"),
        (SUM, {"dtypes": "bf16"}, "dtypes must be those of 2 inputs, got 'bf16'"),
        (SUM, {"tiling": "block=0x128"}, "tiling block=0x128 must be at least 1"),
        (SUM, {"tiling": "cores=4"}, "tiling needs block= with 2 numbers joined by x"),
        (SLOTS, {"tiling": "page=0"}, "tiling page=0: numbers must be from 1"),
        (SLOTS, {"tiling": "page=16 block=0"}, "tiling block=0 must be at least 1"),
        (ROWS["fa-1024-128-causal-BM=128_BN=64"], {"shapes": "8x1000x64"}, "must divide the length 1000"),
    ],
)
def test_a_row_that_makes_no_sense_is_refused_in_words(row, changed, words):
    with pytest.raises(UsageError, match=words):
        predict(replace(row, **changed))
