"""Units on number formats that no product here has: steps of the Cube, accumulators, casts of everything to everything."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.precision import dtypes as ty
from ascendtile.simulator.precision.formats import Format, get_format
from ascendtile.simulator.precision.rounding import round_to
from ascendtile.simulator.units import vector
from ascendtile.simulator.units.cube import mmad
from ascendtile.simulator.units.cube_rules import CubeRules
from ascendtile.simulator.units.vector import Numerics

NARROW = ("e4m3", "e5m2", "hif8", "e2m1", "e3m2", "e6m9", "e8m2")


@pytest.mark.parametrize(
    ("operand", "other", "step"),
    [("fp16", None, 16), ("e4m3", None, 32), ("e3m2", None, 32), ("e2m1", None, 64), ("e6m9", None, 16),
     ("e8m12", None, 8), ("int4", None, 64), ("e4m3", "fp16", 16), ("e2m1", "e4m3", 32)],
)  # fmt: skip
def test_a_step_is_32_bytes_of_k_of_the_wider_operand(operand: str, other: str | None, step: int) -> None:
    assert CubeRules(operand=operand, other=other).products_per_step == step
    assert CubeRules(operand=operand, other=other, block_k=5).products_per_step == 5


@given(
    st.sampled_from(NARROW), st.sampled_from((*NARROW, "fp16")), st.sampled_from(["fp32", "fp16", "e5m7", "e8m3", "tf32"]),
    st.sampled_from(["RINT", "TRUNC", "ODD"]), st.integers(1, 70), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_each_step_is_one_rounding_of_exact_products_and_the_accumulator(
    left: str, right: str, acc: str, mode: str, k: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, k), (k, 2)))
    start = round_to(rng.standard_normal((2, 2)).astype(np.float32), acc, mode)
    rules = CubeRules(operand=left, other=right, accumulator=acc, block_round=mode)
    got = mmad(a, b, start, rules=rules)
    x, y = round_to(a, left), round_to(b, right)
    for i, j in np.ndindex(2, 2):
        total = Fraction(float(start[i, j]))
        for at in range(0, k, rules.products_per_step):
            terms = zip(
                x[i, at : at + rules.products_per_step], y[at : at + rules.products_per_step, j], strict=True
            )
            total += sum(Fraction(float(p)) * Fraction(float(q)) for p, q in terms)
            total = Fraction(float(round_to(np.float64(total), acc, mode)))
        assert float(got[i, j]) == float(total)


def test_int4_products_wrap_in_int32_as_those_of_int8() -> None:
    a, b = np.full((1, 3), -8, np.int8), np.full((3, 1), 7, np.int8)
    start = np.full((1, 1), 2**31 - 1, np.int32)
    assert mmad(a, b, operand="int4").tolist() == [[-168]]
    np.testing.assert_array_equal(mmad(a, b, start, operand="int4"), mmad(a, b, start, operand="int8"))


def test_a_saturating_cube_stops_at_the_ends_of_its_accumulator() -> None:
    a = np.full((1, 64), 400, np.float32)
    got = mmad(a, a.T, operand="e4m3", accumulator="fp16", overflow="saturate")
    assert got.tolist() == [[65504]]
    assert mmad(a, a.T, operand="e4m3", accumulator="fp16").tolist() == [[np.inf]]


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ({"operand": "fp64"}, "operands of fp64: it reads floats up to fp32 and integers up to 8 bits"),
        ({"operand": "int16"}, "operands of int16: it reads floats"),
        ({"operand": "e4m3", "other": "int8"}, "operands of e4m3 and int8: both are integers, or none"),
        (
            {"operand": "e4m3", "accumulator": "int32"},
            "e4m3 operands do not accumulate in int32, but in fp32 or another",
        ),
        ({"operand": "int4", "accumulator": "fp32"}, "int4 operands do not accumulate in fp32, but in int32"),
        ({"operand": "fp8e4"}, "unknown number format 'fp8e4'"),
    ],
)
def test_rules_that_cannot_be_are_refused(rules: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        CubeRules(**rules)


TYPES = (*NARROW, "fp16", "bf16", "fp32", "int8", "int32", "int64", "uint8", "int4", "uint4", "int1")


@given(
    st.sampled_from(TYPES),
    st.sampled_from(NARROW),
    st.sampled_from(["inf_nan", "saturate"]),
    st.integers(0, 2**32 - 1),
)
def test_a_cast_of_anything_is_rounded_once(source: str, target: str, overflow: str, seed: int) -> None:
    s, t = ty.element_type(source), ty.element_type(target)
    x = values(s, np.random.default_rng(seed))
    got = vector.cast(x, s, t, Numerics(overflow=overflow))
    assert got.dtype == np.float32
    right = round_to(x.astype(np.float64), target, overflow=None if overflow == "inf_nan" else overflow)
    np.testing.assert_array_equal(got, right)


def values(t: ty.DType, rng: np.random.Generator) -> np.ndarray:
    """Drawn elements of a type in its host dtype, its ends among them."""
    if t.is_bool():
        return rng.integers(0, 2, 16).astype(bool)
    if t.is_int():
        low, high = ty.limits(t)
        return np.append(rng.integers(low, high, 14, endpoint=True), [low, high]).astype(t.host_dtype)
    x = np.append(rng.standard_normal(14) * 2.0 ** rng.integers(-9, 9, 14), [t.format.max, t.format.min])
    return round_to(x, t.format, overflow="saturate")


@given(st.sampled_from(NARROW), st.integers(0, 2**32 - 1))
def test_what_leaves_a_format_keeps_its_value(source: str, seed: int) -> None:
    t = ty.element_type(source)
    x = values(t, np.random.default_rng(seed))
    np.testing.assert_array_equal(vector.cast(x, t, ty.float32), x)
    np.testing.assert_array_equal(vector.cast(x, t, ty.float16), round_to(x, "fp16"))
    whole = vector.cast(x, t, ty.int32)
    np.testing.assert_array_equal(whole, np.clip(np.trunc(x.astype(float)), -(2**31), 2**31 - 1))
    np.testing.assert_array_equal(vector.cast(x, t, ty.int1), x != 0)


@given(st.integers(-(2**31), 2**31 - 1))
def test_low_bits_and_limits_of_four_bits(x: int) -> None:
    given = np.array([x], np.int32)
    for t in (ty.element_type("int4"), ty.element_type("uint4")):
        low, high = ty.limits(t)
        assert vector.cast(given, ty.int32, t).tolist() == [ty.wrapped(x, t)]
        assert vector.cast(given, ty.int32, t, overflow="saturate").tolist() == [min(max(x, low), high)]
        single = np.array([x], np.float32)
        assert vector.cast(single, ty.float32, t).tolist() == [min(max(int(single[0]), low), high)]


def test_bits_of_memory_are_read_as_another_type_of_the_width() -> None:
    codes = np.arange(256).astype(np.uint8)
    e4m3, hif8 = ty.float8e4nv, ty.element_type("hif8")
    as_e4m3 = vector.bitcast(codes, ty.uint8, e4m3)
    np.testing.assert_array_equal(as_e4m3, get_format("e4m3").values.astype(np.float32))
    finite = ~np.isnan(as_e4m3)
    np.testing.assert_array_equal(vector.bitcast(as_e4m3, e4m3, ty.uint8)[finite], codes[finite])
    same = vector.bitcast(as_e4m3, e4m3, hif8)[finite]
    np.testing.assert_array_equal(same, get_format("hif8").values.astype(np.float32)[finite])


def test_a_format_that_has_no_name_in_the_catalogue_serves_as_well() -> None:
    mine = Format(4, 2, bias=9, name="of_units")
    a = np.linspace(-1, 1, 32, dtype=np.float32).reshape(1, 32)
    x = round_to(a, mine).astype(float)
    assert (
        mmad(a, a.T, operand=mine, accumulator=Format(8, 9)).tolist()
        == round_to(x @ x.T, Format(8, 9)).tolist()
    )
