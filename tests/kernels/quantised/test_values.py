"""Values of products of quantised numbers: exact where all is whole numbers, else rounded where the hardware rounds."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.kernels import grouped_matmul, quant_matmul
from ascendtile.kernels.quantised.quantise import pack_int4, quantised
from ascendtile.simulator.units.fixpipe import read_scale

SPLIT, COUPLED = "ascend910b3", "ascend310p"
BF16 = np.dtype(ml_dtypes.bfloat16)
VALUES = {"time": False, "errors": False}
TILE = {"block_m": 16, "block_n": 32, "block_k": 32}
seeds = st.integers(0, 2**32 - 1)


def codes(draw, *shape, most=127):
    return draw.integers(-most - 1, most + 1, shape, dtype=np.int8)


def whole(x, weight):
    return x.astype(np.int64) @ weight.astype(np.int64)


def as_fp16(x):
    return np.clip(x, -65504, 65504).astype(np.float16)


# -- INT8 by the fixpipe -----------------------------------------------------------------------------------------------


@given(seeds, st.integers(1, 60), st.integers(1, 150), st.integers(1, 70), st.sampled_from([SPLIT, COUPLED]))
def test_the_fixpipe_multiplies_exact_sums_by_eleven_bits_of_the_scale_and_rounds_once(
    seed, m, k, n, product
):
    draw = np.random.default_rng(seed)
    x, weight, bias = codes(draw, m, k), codes(draw, k, n), draw.integers(-(2**20), 2**20, n).astype(np.int32)
    scale = np.exp2(draw.uniform(-14, 2, n)).astype(np.float32)
    exact = (whole(x, weight) + bias) * read_scale(scale).astype(np.float64)
    result = quant_matmul(x, weight, scale, bias=bias, product=product, tiling=TILE, **VALUES)
    assert result.tiling["scaling"] == "fixpipe"
    assert np.array_equal(result.outputs["out"], as_fp16(exact))
    small = quant_matmul(
        x, weight, scale, bias=bias, out_dtype="int8", product=product, tiling=TILE, **VALUES
    ).outputs["out"]
    assert np.array_equal(small, np.clip(np.rint(exact), -128, 127).astype(np.int8))


@given(seeds, st.sampled_from(["fused", "apart"]), st.booleans())
def test_the_vector_cores_scale_in_fp32_with_all_bits_in_the_order_that_is_told(seed, scaling, half):
    draw = np.random.default_rng(seed)
    m, k, n = 19, 96, 45
    x, weight = codes(draw, m, k), codes(draw, k, n)
    scale, token = (np.exp2(draw.uniform(-9, -6, s)).astype(np.float32) for s in (n, m))
    bias = draw.standard_normal(n).astype(np.float32)
    stored = np.dtype(np.float16) if half else BF16
    if not half:
        scale = scale.astype(BF16)
    sums = whole(x, weight).astype(np.float32)
    expected = (sums * scale.astype(np.float32) * token[:, None] + bias).astype(stored)
    result = quant_matmul(x, weight, scale, token, None, bias, tiling={**TILE, "scaling": scaling}, **VALUES)
    assert result.outputs["out"].dtype == stored
    assert np.array_equal(result.outputs["out"], expected)


@given(seeds, st.sampled_from([1, 2, 3]))
def test_parts_of_a_sum_of_whole_numbers_give_the_same_bits_as_all_of_it(seed, parts):
    draw = np.random.default_rng(seed)
    x, weight, token = (
        codes(draw, 9, 300),
        codes(draw, 300, 40),
        np.exp2(draw.uniform(-3, 3, 9)).astype(np.float32),
    )
    scale = np.full(1, 2.0**-12, np.float32)
    made = [
        quant_matmul(x, weight, scale, token, tiling={**TILE, "split_k": s, "scaling": "apart"}, **VALUES)
        for s in (1, parts)
    ]
    assert np.array_equal(made[0].outputs["out"], made[1].outputs["out"])


@given(seeds, st.sampled_from([32, 64]), st.sampled_from([1, 2]))
def test_groups_are_scaled_one_by_one_and_added_in_fp32_in_their_order(seed, group, parts):
    draw = np.random.default_rng(seed)
    m, n, groups = 17, 33, 4
    k = group * groups
    x, weight = codes(draw, m, k), codes(draw, k, n)
    scale = np.exp2(draw.uniform(-12, -6, (groups, n))).astype(np.float32)
    tiling = {**TILE, "split_k": parts, "scaling": "fused"}
    total = [np.zeros((m, n), np.float32) for _ in range(parts)]
    for g in range(groups):
        own = slice(g * group, (g + 1) * group)
        part = total[g * parts // groups]
        part += whole(x[:, own], weight[own]).astype(np.float32) * scale[g]
    expected = as_fp16(sum(total[1:], total[0]))
    assert np.array_equal(quant_matmul(x, weight, scale, tiling=tiling, **VALUES).outputs["out"], expected)


# -- weights of 8 and 4 bits -------------------------------------------------------------------------------------------


def dequantised(weight, scale, offset, stored):
    """FLOAT16 in its own arithmetic; BFLOAT16 in FP32, rounded at the end."""
    kind = stored if stored == np.float16 else np.dtype(np.float32)
    real, by = weight.astype(kind), scale.astype(kind)
    if offset is not None:
        real = (real + offset.astype(kind)).astype(kind)
    return (real * by).astype(kind).astype(stored)


FORMS = [(4, 32, True, False), (8, 0, False, True), (4, 0, True, True), (8, 32, True, False)]
WHO = [{"scaling": "fused"}, {"scaling": "apart"}, {"scaling": "fused", "split_k": 2}]


@pytest.mark.parametrize("stored", [np.dtype(np.float16), BF16], ids=str)
@given(seed=seeds, form=st.sampled_from(FORMS), who=st.sampled_from(WHO))
def test_weights_become_floating_point_before_the_product_whoever_makes_them(stored, seed, form, who):
    """Each sum is one number times one weight, so that the order of additions cannot show."""
    draw = np.random.default_rng(seed)
    bits, group, zero, flip = form
    m, k, n = 8, 64, 34
    weight = codes(draw, k, n, most=7 if bits == 4 else 127)
    shape = (k // group, n) if group else (n,)
    scale = np.exp2(draw.uniform(-6, 0, shape)).astype(stored)
    offset = draw.integers(-8, 8, shape).astype(stored) if zero else None
    x = np.zeros((m, k), stored)
    at = draw.integers(0, k, m)
    x[np.arange(m), at] = draw.standard_normal(m).astype(stored)
    wide, by = (np.repeat(v, group, axis=0) if group and v is not None else v for v in (offset, scale))
    real = dequantised(weight, by, wide, stored).astype(np.float64)
    expected = (x.astype(np.float64) @ real).astype(np.float32).astype(stored)
    lying = np.ascontiguousarray(weight.T) if flip else weight
    given_weight = pack_int4(lying) if bits == 4 else lying
    tiling = {"split_k": 1, **TILE, **who}
    result = quant_matmul(
        x, given_weight, scale, offset=offset, transpose_weight=flip, tiling=tiling, **VALUES
    )
    assert np.array_equal(result.outputs["out"], expected)


def test_a_bias_of_weights_only_starts_the_sums():
    draw = np.random.default_rng(0)
    x = draw.standard_normal((5, 64)).astype(np.float16)
    weight, scale = quantised(draw.standard_normal((64, 32)), 8, 0)
    bias = draw.standard_normal(32).astype(np.float16)
    result = quant_matmul(x, weight, scale.astype(np.float16), bias=bias)
    assert result.errors["out"].effective_bits > 9
    plain = quant_matmul(x, weight, scale.astype(np.float16)).outputs["out"].astype(np.float32)
    assert np.allclose(result.outputs["out"], plain + bias, rtol=2**-9, atol=2**-9)


# -- several experts ---------------------------------------------------------------------------------------------------


@given(seeds, st.lists(st.integers(0, 40), min_size=1, max_size=5).filter(sum), st.booleans(), st.booleans())
def test_each_expert_multiplies_its_own_rows_as_a_product_of_its_own_would(seed, counts, flip, whole_numbers):
    draw = np.random.default_rng(seed)
    m, k, n = sum(counts), 64, 40
    if whole_numbers:
        x, weight = codes(draw, m, k), codes(draw, len(counts), k, n)
        scale = np.exp2(draw.uniform(-12, -6, (len(counts), n))).astype(np.float32)
        beside = {"token_scale": np.exp2(draw.uniform(-2, 2, m)).astype(np.float32)}
    else:
        x = draw.standard_normal((m, k)).astype(np.float16)
        weight = codes(draw, len(counts), k, n, most=7)
        scale, beside = np.exp2(draw.uniform(-6, 0, (len(counts), 2, n))).astype(np.float16), {}
    lying = np.ascontiguousarray(weight.swapaxes(1, 2)) if flip else weight
    lying = lying if whole_numbers else pack_int4(lying)
    how = {"transpose_weight": flip, "tiling": {**TILE, "scaling": "fused"}, **VALUES}
    found = grouped_matmul(
        x, lying, scale, group_list=counts, group_list_type="count", **beside, **how
    ).outputs["out"]
    ends = np.cumsum(counts)
    again = grouped_matmul(x, lying, scale, group_list=list(ends), **beside, **how).outputs["out"]
    assert np.array_equal(found, again)
    for expert, (count, end) in enumerate(zip(counts, ends, strict=True)):
        if count:
            rows = slice(end - count, end)
            own = {name: v[rows] for name, v in beside.items()}
            alone = quant_matmul(x[rows], lying[expert], scale[expert], **own, **how).outputs["out"]
            assert np.array_equal(found[rows], alone)


def test_unquantised_experts_are_products_with_one_rounding_of_the_result():
    draw = np.random.default_rng(1)
    x = draw.standard_normal((20, 48)).astype(BF16)
    weight, bias = (draw.standard_normal(s).astype(np.float32) for s in ((3, 48, 32), (3, 32)))
    result = grouped_matmul(x, weight.astype(BF16), None, None, None, bias, group_list=[4, 4, 20])
    assert result.errors["out"].max_ulp < 0.51
    assert "1 of 3 experts have no rows" in result.notes
