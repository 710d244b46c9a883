"""The Python face of rounding: shapes, memory, source types, laws, and what it says to wrong usage."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.precision.rounding import MODES, decode, encode, flush_subnormals, round_to

GRIDS = ("fp16", "bf16", "hf32", "tf32", "fp32")
FLOATS = st.floats(width=32, allow_nan=False)


# ---- laws


@given(x=FLOATS, fmt=st.sampled_from(GRIDS), mode=st.sampled_from(MODES))
def test_rounding_twice_is_rounding_once(x: float, fmt: str, mode: str) -> None:
    once = round_to(x, fmt, mode)
    assert np.array_equal(round_to(once, fmt, mode), once)


@given(x=FLOATS, y=FLOATS, fmt=st.sampled_from(GRIDS), mode=st.sampled_from(MODES))
def test_rounding_keeps_the_order(x: float, y: float, fmt: str, mode: str) -> None:
    low, high = round_to(sorted((x, y)), fmt, mode)
    assert low <= high


@given(x=FLOATS, fmt=st.sampled_from(GRIDS), mode=st.sampled_from(MODES))
def test_floor_and_ceil_mirror_each_other_and_the_others_themselves(x: float, fmt: str, mode: str) -> None:
    mirror = {"FLOOR": "CEIL", "CEIL": "FLOOR"}.get(mode, mode)
    left, right = round_to(np.float32(-x), fmt, mode), -round_to(np.float32(x), fmt, mirror)
    assert left.view(np.uint32) == right.view(np.uint32)


@given(x=FLOATS, fmt=st.sampled_from(GRIDS))
def test_floor_and_ceil_enclose(x: float, fmt: str) -> None:
    low, high = round_to(np.float32(x), fmt, "FLOOR"), round_to(np.float32(x), fmt, "CEIL")
    assert low <= x <= high
    assert round_to(np.float32(x), fmt) in (low, high)


@given(x=st.floats(allow_nan=False), fmt=st.sampled_from(GRIDS), mode=st.sampled_from(MODES))
def test_float64_is_rounded_once(
    x: float, fmt: str, mode: str, any_grids: dict[str, Any], by_fractions: Any
) -> None:
    got = round_to(np.float64(x), fmt, mode)
    assert float(got) == by_fractions(x, any_grids[fmt], mode)


@given(
    code=st.integers(0, 2**15 - 2**10),
    nudge=st.sampled_from([-1, 0, 1]),
    scale=st.integers(2, 40),
    mode=st.sampled_from(MODES),
)
def test_float64_next_to_a_half_way_point(
    code: int, nudge: int, scale: int, mode: str, any_grids: dict[str, Any], by_fractions: Any
) -> None:
    """Where a second rounding would show: half-way points of FP16 with a term too small for float32."""
    low, high = any_grids["fp16"].values()[code : code + 2] if code < 2**15 - 2**10 else (65504.0, 65536.0)
    x = (low + high) / 2 * (1 + nudge * 2.0**-scale)
    for fmt in ("fp16", "fp32"):
        assert float(round_to(x, fmt, mode)) == by_fractions(x, any_grids[fmt], mode)


# ---- source types


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.int8, np.uint16, np.int32, np.bool_])
def test_narrow_types_are_exact_operands(dtype: Any) -> None:
    values = np.arange(2).astype(dtype)
    assert np.array_equal(round_to(values, "fp32"), [0, 1])


def test_fp16_to_bf16_is_one_rounding() -> None:
    x = np.float16(1 + 2.0**-7 + 2.0**-8 + 2.0**-10)
    assert round_to(x, "bf16") == np.float32(1 + 2.0**-6)


@given(
    value=st.integers(-(2**63), 2**64 - 1), fmt=st.sampled_from(["fp32", "bf16"]), mode=st.sampled_from(MODES)
)
def test_long_integers_are_rounded_once(value: int, fmt: str, mode: str, any_grids: dict[str, Any]) -> None:
    from_integer = round_to(np.array(value, np.int64 if value < 2**63 else np.uint64), fmt, mode)
    bits = abs(value).bit_length() - 1 - any_grids[fmt].mantissa
    ulp = 2 ** max(bits, 0)
    assert abs(Fraction(float(from_integer)) - value) <= (
        Fraction(ulp, 2) if mode in ("RINT", "ROUND", "RNZ") else ulp
    )
    assert Fraction(float(from_integer)) % ulp == 0


def test_long_integers_just_above_a_tie_do_not_fall_on_it() -> None:
    tie = 2**60 + 2**36
    assert float(round_to(np.array(tie), "fp32")) == 2**60
    assert float(round_to(np.array(tie + 1), "fp32")) == 2**60 + 2**37
    assert float(round_to(np.array(-tie - 1), "fp32")) == -(2**60) - 2**37


# ---- memory


def test_out_may_be_the_operand() -> None:
    x = np.full((3, 5), 1.0001, np.float32)
    assert round_to(x, "bf16", out=x) is x
    assert np.array_equal(x, np.ones((3, 5)))


@pytest.mark.parametrize("view", ["[::2]", "T", "[1:]"])
def test_out_may_be_any_view(view: str) -> None:
    store = np.zeros((6, 6), np.float32)
    out = {"[::2]": store[::2, ::2], "T": store[:3, :3].T, "[1:]": store.reshape(-1)[1:10].reshape(3, 3)}[
        view
    ]
    x = np.arange(9, dtype=np.float32).reshape(3, 3) * np.float32(1.001)
    assert round_to(x, "bf16", out=out) is out
    assert np.array_equal(out, round_to(x, "bf16"))


def test_overlapping_out_is_safe() -> None:
    store = np.linspace(1, 2, 9000, dtype=np.float32)
    expected = round_to(store[:-1], "bf16")
    round_to(store[:-1], "bf16", out=store[1:])
    assert np.array_equal(store[1:], expected)


@pytest.mark.parametrize("shape", [(), (0,), (7,), (2, 0, 3), (2, 3, 4)])
def test_the_shape_stays(shape: tuple[int, ...]) -> None:
    x = np.ones(shape, np.float32)
    assert round_to(x, "fp16").shape == shape
    assert round_to(x.astype(np.float64), "fp16").shape == shape
    assert encode(x, "bf16").shape == shape


def test_read_only_strided_and_unaligned_operands() -> None:
    raw = np.frombuffer(b"\0" + np.full(8, 1.0001, np.float32).tobytes(), np.float32, offset=1)
    assert not raw.flags.aligned
    assert np.array_equal(round_to(raw[::2], "bf16"), np.ones(4))
    assert np.array_equal(round_to(raw.astype(">f4"), "bf16"), np.ones(8))


def test_the_operand_is_not_changed() -> None:
    x = np.full(4, 1.0001, np.float32)
    round_to(x, "bf16")
    assert (x != 1).all()


# ---- special values


def test_saturation_has_no_infinity_and_no_nan() -> None:
    x = np.array([1e9, -1e9, np.inf, -np.inf, np.nan, 65519.996, -0.0], np.float32)
    expected = [65504, -65504, 65504, -65504, 0, 65504, -0.0]
    got = round_to(x, "fp16", overflow="saturate")
    assert np.array_equal(got, expected)
    assert np.array_equal(np.signbit(got), [0, 1, 0, 1, 0, 0, 1])


def test_flushing_keeps_the_sign_and_the_smallest_normal() -> None:
    x = np.array([1e-40, -1e-40, 2.0**-126, -(2.0**-149), np.inf, 0.0], np.float32)
    got = flush_subnormals(x)
    assert got.view(np.uint32).tolist() == [0, 0x80000000, 0x00800000, 0x80000000, 0x7F800000, 0]
    assert math.isnan(flush_subnormals(np.array(np.nan, np.float32)))


def test_fp16_flushing_looks_at_the_operand() -> None:
    """Just under 2^-14 nearest rounding would give 2^-14; flushed operands do not get there."""
    x = np.nextafter(np.float32(2.0**-14), np.float32(0))
    assert round_to(x, "fp16") == np.float32(2.0**-14)
    assert round_to(x, "fp16", subnormals="flush") == 0


def test_subnormal_numbers_are_alive(words: NDArray[np.float32]) -> None:
    tiny = np.array([1, 0x8000, 0x10000], np.uint32).view(np.float32)
    assert np.array_equal(round_to(tiny, "fp32"), tiny)
    assert decode(encode(tiny, "bf16")).view(np.uint32).tolist() == [0, 0, 0x10000]


# ---- wrong usage


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: round_to([1.0], "fp8"), r"unknown number format 'fp8': known are fp16, bf16, fp32, hf32, "),
        (lambda: round_to([1.0], "fp64"), r"cannot round to fp64: results are held in float32$"),
        (lambda: round_to([1.0], "int8"), r"cannot round to int8: .*; to_integer makes integers"),
        (
            lambda: round_to([1.0], "fp16", "UP"),
            r"rounding mode 'UP': known are RINT, FLOOR, CEIL, ROUND, TRUNC, ODD, RNZ, STOCHASTIC$",
        ),
        (
            lambda: round_to([1.0], "fp16", overflow="clip"),
            r"overflow 'clip': known are inf_nan, saturate, clamp$",
        ),
        (lambda: round_to([1.0], "fp16", subnormals="no"), r"subnormals 'no': known are keep, flush"),
        (
            lambda: round_to([1j], "fp16"),
            r"cannot round complex128: give float16, bfloat16, float32, float64",
        ),
        (lambda: round_to(["a"], "fp16"), r"cannot round <U1: give"),
        (
            lambda: round_to([1.0, 2.0], "fp16", out=np.zeros(3, np.float32)),
            r"out is float32 \(3,\): it must be writeable float32 \(2,\)",
        ),
        (
            lambda: round_to([1.0], "fp16", out=np.frombuffer(bytes(4), np.float32)),
            r"out is float32 \(1,\), read-only: it must be writeable",
        ),
        (lambda: round_to([1.0], "fp16", out=np.zeros(1)), r"out is float64 \(1,\): it must be"),
        (lambda: round_to([1.0], "fp16", out=[1.0]), r"out is \[1.0\]: it must be"),  # type: ignore[arg-type]
        (lambda: round_to([1.0], "fp16", 3), r"rounding mode '3': known are RINT"),  # type: ignore[arg-type]
    ],
    ids=range(13),
)
def test_error_texts(call: Callable[[], object], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        call()


@pytest.mark.parametrize(
    ("alias", "mode"), [("NONE", "RINT"), ("RNE", "RINT"), ("RNA", "ROUND"), ("CAST_ODD", "ODD")]
)
def test_mode_names(alias: str, mode: str, words: NDArray[np.float32], same_bits: Any) -> None:
    assert same_bits(round_to(words, "hf32", alias), round_to(words, "hf32", mode)).all()
