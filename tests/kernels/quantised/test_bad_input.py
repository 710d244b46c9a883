"""What products of quantised numbers refuse, with what is wrong, the rule and both numbers."""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import grouped_matmul, quant_matmul, run_op
from ascendtile.kernels.quantised.quantise import pack_int4, quantised
from ascendtile.simulator.errors import RefusedError, UsageError

ROUGH = {"values": False, "time": True}


def shape(dims, kind):
    return sim.shape(dims, kind)


def inputs(**other):
    found = {"x": shape((8, 64), "int8"), "weight": shape((64, 32), "int8"), "scale": shape((32,), "float32")}
    return {**found, **other}


def weights(kind="uint8", x="float16", scale=(32,), dims=(64, 16)):
    return {"x": shape((8, 64), x), "weight": shape(dims, kind), "scale": shape(scale, x)}


SHAPES = [
    (
        inputs(scale=shape((31,), "float32")),
        r"scale has shape \(31,\); it must be \(1\), \(32\) or \(groups, 32\)",
    ),
    (
        inputs(scale=shape((3, 32), "float32")),
        "scale has 3 groups, which do not divide the 64 terms of a sum",
    ),
    (inputs(scale=shape((4, 32), "float32")), "groups of 16 terms; they must be of 32 or a multiple"),
    (inputs(weight=shape((63, 32), "int8")), "sums of 64 terms need a weight of 64 rows.*this one has 63"),
    (inputs(x=shape((8,), "int8")), r"x has shape \(8,\); it must have 2 axes"),
    (inputs(x=shape((0, 64), "int8")), "every axis needs at least one element"),
    (inputs(token_scale=shape((7,), "float32")), r"token_scale has shape \(7,\); it must be \(8,\)"),
    (inputs(bias=shape((8,), "int32")), r"bias has shape \(8,\); it must be \(32,\)"),
    (
        inputs(offset=shape((32,), "float16")),
        "offset is of weights that are multiplied in floating point; x is int8",
    ),
    (weights(scale=(31,)), "two int4 a byte, so it has 32 columns, an even number"),
    ({**weights(), "offset": shape((1,), "float16")}, "they must be of one shape"),
    (
        {**weights(), "token_scale": shape((8,), "float32")},
        "token_scale is of rows of an int8 x; x is float16",
    ),
    (
        {
            "x": shape((1, 2**17), "int8"),
            "weight": shape((2**17, 32), "int8"),
            "scale": shape((1,), "float32"),
        },
        "sums of 131072 products of int8 may not fit an int32; 131071 terms at most do",
    ),
]


@pytest.mark.parametrize(("given", "message"), SHAPES)
def test_shapes_that_do_not_belong_together(given, message):
    with pytest.raises(UsageError, match=message):
        run_op("quant_matmul", inputs=given, product="ascend910b3", **ROUGH)


TYPES = [
    (inputs(weight=shape((64, 32), "uint8")), "x is int8, weight is uint8; the pairs are"),
    (
        inputs(scale=shape((32,), "float16")),
        "scale is float16; with x of type int8 it must be float32 or bfloat16",
    ),
    ({**weights(), "scale": shape((32,), "bfloat16")}, "with x of type float16 it must be float16"),
    (inputs(scale=shape((2, 32), "float32"), bias=shape((32,), "int32")), "sums are scaled group by group"),
]


@pytest.mark.parametrize(("given", "message"), TYPES)
def test_types_that_the_vendor_refuses_have_its_status(given, message):
    with pytest.raises(RefusedError, match=message) as error:
        run_op("quant_matmul", inputs=given, product="ascend910b3", **ROUGH)
    assert error.value.status == 161002


@pytest.mark.parametrize(
    ("product", "given", "message"),
    [
        ("ascend910a", inputs(), "quant_matmul is not available on ascend910a"),
        ("ascend310p", weights(), "weight is int4; on ascend310p weights are int8"),
        (
            "ascend310p",
            weights("int8", "bfloat16", dims=(64, 32)),
            "x is bfloat16, which ascend310p does not store",
        ),
    ],
)
def test_products_refuse_what_they_lack(product, given, message):
    with pytest.raises(RefusedError, match=message):
        run_op("quant_matmul", inputs=given, product=product, **ROUGH)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0, 0.0])
@pytest.mark.parametrize("name", ["scale", "token_scale"])
def test_scales_are_finite_and_above_zero(name, bad):
    given = {"scale": np.ones(32, np.float32), "token_scale": np.ones(8, np.float32)}
    given[name][5] = bad
    x, weight = np.ones((8, 64), np.int8), np.ones((64, 32), np.int8)
    with pytest.raises(UsageError, match=rf"{name}\[5\] is .*; it must be finite and above 0"):
        quant_matmul(x, weight, **given)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            {"m": 4, "n": 33, "k": 64, "x_bits": 16, "w_bits": 4},
            "w_bits=4 needs x_bits=16 and an even n.* n=33",
        ),
        ({"m": 4, "n": 32, "k": 63, "x_bits": 16, "w_bits": 4, "transposed": 1}, "an even k.* k=63"),
        ({"m": 4, "n": 32, "k": 64, "w_bits": 4}, "w_bits=4 needs x_bits=16"),
        ({"m": 4, "n": 32, "k": 64, "w_bits": 5}, "size 'w_bits' is 5; it must be 4 or 8"),
        ({"m": 4, "n": 32, "k": 64, "group": 48}, "groups of 48 do not divide the 64 terms"),
        ({"m": (4, 4), "n": 32, "k": 64}, "size 'm' must be one number"),
    ],
)
def test_sizes_that_cannot_be(sizes, message):
    with pytest.raises(UsageError, match=message):
        run_op("quant_matmul", sizes, **ROUGH)


@pytest.mark.parametrize(
    ("tiling", "how", "message"),
    [
        (
            {"scaling": "fixpipe"},
            {"token_scale": shape((8,), "float32")},
            "scaling=fixpipe is not possible for W8A8",
        ),
        ({"split_k": 2, "scaling": "fixpipe"}, {}, "split_k=2 needs scaling=apart"),
        ({"block_n": 48}, {}, "must be a multiple of 32, got 48"),
    ],
)
def test_tilings_that_cannot_be(tiling, how, message):
    with pytest.raises(UsageError, match=message):
        run_op("quant_matmul", inputs=inputs(**how), tiling=tiling, product="ascend910b3", **ROUGH)


@pytest.mark.parametrize(
    ("groups", "kind", "message"),
    [
        ([2, 1, 8], "cumsum", "group_list descends from 2 to 1 at entry 1"),
        ([2, 4, 7], "cumsum", "group_list ends at 7, x has 8 rows"),
        ([2, 2, 2], "count", "group_list adds up to 6, x has 8 rows"),
        ([4, 4], "count", "group_list has 2 entries, weight has 3 experts"),
        ([4, -1, 5], "count", "must be at least 0, got -1"),
        ([1.5, 4, 8], "cumsum", "must be a list of integers"),
        ("2,4,8", "cumsum", "must be a list of integers"),
        ([2, 4, 8], "sum", "must be one of cumsum or count, got 'sum'"),
    ],
)
def test_lists_of_groups_that_do_not_add_up(groups, kind, message):
    x, weight = shape((8, 64), "float16"), shape((3, 64, 32), "float16")
    with pytest.raises(UsageError, match=message):
        grouped_matmul(x, weight, group_list=groups, group_list_type=kind, product="ascend910b3", **ROUGH)


def test_scales_of_what_is_not_quantised_are_refused_and_those_of_experts_have_their_axis():
    x = shape((8, 64), "float16")
    with pytest.raises(UsageError, match="scale is given, but x and weight are not quantised"):
        grouped_matmul(x, shape((2, 64, 32), "float16"), shape((2, 32), "float16"), **ROUGH)
    with pytest.raises(UsageError, match="scale is missing; a weight of type int8 needs it"):
        grouped_matmul(x, shape((2, 64, 32), "int8"), **ROUGH)
    with pytest.raises(UsageError, match=r"scale has shape \(32,\); it must be \(2, 1\), \(2, 32\)"):
        grouped_matmul(x, shape((2, 64, 32), "int8"), shape((32,), "float16"), **ROUGH)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: quantised([1.0, np.nan], 8), "NaN or infinities"),
        (lambda: quantised([1.0], 5), "bits is 5; it must be 4 or 8"),
        (lambda: quantised(np.ones((6, 2)), 8, 2), r"axis is 2; values of shape \(6, 2\) have axes 0 to 1"),
        (lambda: quantised(np.ones((6, 2)), 8, 0, 4), "groups of 4 do not divide the 6 values"),
        (lambda: pack_int4(np.ones((2, 3), np.int8)), "int4 is stored in pairs"),
        (lambda: pack_int4(np.full((2, 2), 8)), "an int4 holds -8 to 7"),
    ],
)
def test_what_cannot_be_quantised_or_packed(call, message):
    with pytest.raises(UsageError, match=message):
        call()
