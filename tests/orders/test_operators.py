"""Operators that come with the package: what is the same and what is not, and what would make it so."""

from __future__ import annotations

import pytest

from ascendtile.kernels import same_bits
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.orders.varying import ANY_ORDER
from ascendtile.simulator.orders.verdict import DIFFERS

SMALL = {"rows": 4, "cols": 16}


def test_rows_of_a_norm_do_not_know_each_other():
    verdict = same_bits("rms_norm", SMALL, ("batch", "cores", "order"), batch=(1, 4))
    assert verdict.same
    assert not verdict.zero_signs
    assert verdict.laws == [ANY_ORDER]
    assert verdict.outputs == ["y", "rstd"]


def test_a_sum_over_rows_is_no_matter_of_the_batch():
    verdict = same_bits("rms_norm_grad", SMALL, ("batch",), batch=(2, 4))
    assert verdict.same
    assert "batch: not compared, as they have no part for each sample: dgamma" in verdict.notes


@pytest.mark.exhaustive
def test_a_sum_over_cores_goes_by_their_number():
    verdict = same_bits("rms_norm_grad", SMALL, ("cores",))
    assert verdict.kind == DIFFERS
    assert verdict.counterexample.output == "dgamma"
    assert verdict.advice == ["give cores for all runs: --tiling cores=VALUE"]


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("combine", "same"), [("atomic", False), ("two_phase", True)])
def test_atomics_come_in_any_order_and_a_second_launch_does_not(combine, same):
    sizes = {"rows": 4, "cols": 16}
    vary = ("batch", "order") if same else ("order",)
    verdict = same_bits("rms_norm_grad", sizes, vary, tiling={"combine": combine, "rows": 1}, seeds=1)
    assert verdict.same == same
    if not same:
        assert verdict.advice[0].startswith("take combine=two_phase or cube: atomic adds")


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("op", "sizes", "tilings", "same"),
    [
        ("matmul", {"m": 16, "n": 16, "k": 64}, {"block_k": [16, 32]}, True),
        ("matmul", {"m": 16, "n": 16, "k": 64}, {"split_k": [2]}, False),
        ("batch_norm_reduce_backward", {"n": 4, "c": 3, "space": (4,)}, {"combine": ["atomic", "two_phase"]}, True),
        ("batch_norm_reduce_backward", {"n": 4, "c": 3, "space": (4,)}, {"sums": ["kahan", "tile"]}, False),
    ],
)  # fmt: skip
def test_a_tiling_cuts_sums_or_it_does_not(op, sizes, tilings, same):
    verdict = same_bits(op, sizes, ("tiling",), tilings=tilings)
    assert verdict.same == same
    assert verdict.unknowns == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tilings": {"blok": [1]}}, "no tiling parameter 'blok'"),
        ({"tilings": {"combine": ["never"]}}, "combine=never cannot be compared"),
        ({"tilings": {"rows": [1]}, "vary": ("order",)}, "tilings is given, but tiling is not varied"),
        ({"tiling": {"rows": 0}}, "rows"),
        ({"vary": ("order",), "tiling": {"combine": "two_phase"}}, "there is one configuration to compare"),
        ({"case": "huge"}, "no case 'huge'"),
        (
            {"products": ["ascend910a"], "vary": ("product",), "dtype": "bfloat16"},
            "ascend910a cannot be compared",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(options, message):
    with pytest.raises(UsageError, match=message):
        same_bits("rms_norm_grad", **{"case": "tiny", **options})
