"""Cast instructions by product, as the documents list them."""

from __future__ import annotations

import pytest

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.precision.cast_table import cast_modes, check_cast
from ascendtile.simulator.precision.rounding import round_to
from ascendtile.simulator.products import load_product

NEW = ("ascend910b3", "ascend910c", "ascend310b")


@pytest.mark.parametrize("name", ["ascend910a", "ascend310p"])
def test_the_first_generation_casts_to_fp16_in_two_modes_and_has_no_bf16(name: str) -> None:
    product = load_product(name)
    assert cast_modes(product, "float32", "float16") == ("NONE", "ODD")
    assert cast_modes(product, "fp16", "fp32") == ("NONE",)
    assert cast_modes(product, "fp32", "bf16") == cast_modes(product, "bf16", "fp32") == ()
    with pytest.raises(UsageError, match=f"{name} casts fp32 to fp16 with NONE, ODD, not FLOOR"):
        check_cast(product, "fp32", "fp16", "FLOOR")
    with pytest.raises(UsageError, match=f"{name} has no cast from fp32 to bf16"):
        check_cast(product, "fp32", "bf16", "RINT")


@pytest.mark.parametrize("name", NEW)
def test_later_ones_have_all_modes(name: str) -> None:
    product = load_product(name)
    assert len(cast_modes(product, "fp32", "fp16")) == 7
    assert cast_modes(product, "fp32", "bf16") == ("RINT", "FLOOR", "CEIL", "ROUND", "TRUNC")
    check_cast(product, "fp32", "bf16", "TRUNC")
    with pytest.raises(UsageError, match="has no cast from fp16 to bf16; go through fp32"):
        check_cast(product, "fp16", "bf16", "RINT")


def test_every_listed_mode_is_one_that_rounding_knows() -> None:
    for name in (*NEW, "ascend910a"):
        for pair in (("fp32", "fp16"), ("fp32", "bf16")):
            for mode in cast_modes(load_product(name), *pair):
                assert float(round_to([1.0], pair[1], mode)[0]) == 1
