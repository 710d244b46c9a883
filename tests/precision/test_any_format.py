"""Formats of the catalogue and drawn ones: values of codes and roundings against gfloat, ml_dtypes and rational numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import gfloat
import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.precision.formats import FORMATS, Format, get_format
from ascendtile.simulator.precision.rounding import MODES, OVERFLOWS, decode, encode, round_to, to_integer

from .oracle import rounded, same_values

SHORT = [f for f in FORMATS.values() if f.is_float and f.bits <= 8]
OF_LIBRARY = [f for f in SHORT if f.dtype.kind in "Vf" and f.dtype.names is None]
# Every BF16 and every FP16 number, as float32.
BF16_WORDS = (np.arange(2**16, dtype=np.uint32) << 16).view(np.float32)
FP16_WORDS = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)


def gfloat_format(fmt: Format) -> gfloat.FormatInfo:
    return gfloat.FormatInfo(
        fmt.name,
        fmt.bits,
        fmt.mantissa + 1,
        bias=fmt.bias,
        is_signed=fmt.signed,
        domain=gfloat.Domain.Extended if fmt.infinities else gfloat.Domain.Finite,
        has_nz=fmt.nan != "zero" and fmt.signed,
        num_high_nans=fmt.specials - fmt.infinities,
        has_subnormals=fmt.subnormals,
        is_twos_complement=False,
    )


# ---- codes


@pytest.mark.parametrize("fmt", [f for f in SHORT if not f.taper], ids=str)
def test_every_code_has_the_value_that_gfloat_gives(fmt: Format) -> None:
    expected = [gfloat.decode_float(gfloat_format(fmt), code).fval for code in range(1 << fmt.bits)]
    if not fmt.zero:
        expected[0] = fmt.min_subnormal  # gfloat's description takes a format without a sign to have a zero
    assert np.array_equal(fmt.values, expected, equal_nan=True)


@pytest.mark.parametrize("fmt", OF_LIBRARY, ids=str)
def test_every_code_has_the_value_of_the_type_of_ml_dtypes(fmt: Format) -> None:
    codes = np.arange(1 << fmt.bits, dtype=np.uint8)
    assert np.array_equal(fmt.values, codes.view(fmt.dtype).astype(np.float64), equal_nan=True)
    assert np.array_equal(decode(codes.view(fmt.dtype)), fmt.values.astype(np.float32), equal_nan=True)
    assert np.array_equal(decode(codes, fmt), fmt.values.astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("fmt", OF_LIBRARY, ids=str)
def test_figures_agree_with_ml_dtypes(fmt: Format) -> None:
    info = ml_dtypes.finfo(fmt.dtype)
    assert (fmt.max, fmt.min_normal, fmt.mantissa) == (
        float(info.max),
        float(info.smallest_normal),
        info.nmant,
    )
    if fmt.subnormals:
        assert fmt.min_subnormal == float(info.smallest_subnormal)


@pytest.mark.parametrize("fmt", SHORT, ids=str)
def test_every_code_comes_back(fmt: Format) -> None:
    values = fmt.values.astype(np.float32)
    codes = encode(values, fmt).view(np.uint8)
    numbers = ~np.isnan(values)
    assert np.array_equal(codes[numbers], np.arange(1 << fmt.bits)[numbers])
    assert np.array_equal(decode(encode(values, fmt)), values, equal_nan=True)


@pytest.mark.parametrize("text", ["e0m9:bias=4", "e0m15:bias=15", "e0m9:bias=4,signed=no", "e0m7:bias=149"])
def test_every_code_of_fixed_point_comes_back(text: str) -> None:
    """In two's complement, of one byte and of two."""
    fmt = get_format(text)
    codes = np.arange(1 << fmt.bits).astype(f"u{fmt.dtype.itemsize}")
    numbers = codes.astype(np.int64) - ((codes >> fmt.mantissa).astype(np.int64) << fmt.bits) * fmt.signed
    assert np.array_equal(decode(codes, fmt), numbers * 2.0**-fmt.bias)
    assert np.array_equal(encode(numbers * 2.0**-fmt.bias, fmt).view(codes.dtype), codes)


def test_hif8_has_the_values_of_the_paper() -> None:
    """arXiv 2409.16626, section 2: the binades of each dot value, the smallest and largest numbers, special codes."""
    hif8 = get_format("hif8")
    magnitudes = np.sort(hif8.values[: 1 << 7])
    assert (hif8.max, hif8.min_normal, hif8.min_subnormal) == (2.0**15, 2.0**-15, 2.0**-22)
    assert magnitudes[1:8].tolist() == [2.0**e for e in range(-22, -15)]
    counts = {e: int(np.sum((magnitudes >= 2.0**e) & (magnitudes < 2.0 ** (e + 1)))) for e in range(-15, 15)}
    assert counts == {e: 8 if abs(e) <= 3 else 4 if abs(e) <= 7 else 2 for e in range(-15, 15)}
    assert (hif8.values[0x6F], hif8.values[0xEF], hif8.values[0]) == (np.inf, -np.inf, 0)
    assert np.isnan(hif8.values[0x80])
    assert hif8.values[[0x08, 0x10, 0x18, 0x6E, 0x07]].tolist() == [1, 2, 0.5, 2.0**15, 2.0**-16]


@pytest.mark.extra("en_dtypes")
def test_hif8_is_that_of_en_dtypes_for_every_code_and_every_16_bit_number() -> None:
    import en_dtypes

    codes = np.arange(256, dtype=np.uint8)
    expected = codes.view(en_dtypes.hifloat8).astype(np.float32)
    assert np.array_equal(decode(codes, "hif8"), expected, equal_nan=True)
    for words in (BF16_WORDS, FP16_WORDS):
        with np.errstate(invalid="ignore"):
            codes = words.astype(en_dtypes.hifloat8).view(np.uint8)
        assert np.array_equal(encode(words, "hif8").view(np.uint8), codes)


# ---- nearest, as the library


@pytest.mark.parametrize("fmt", OF_LIBRARY, ids=str)
@pytest.mark.parametrize("words", [BF16_WORDS, FP16_WORDS], ids=["bf16", "fp16"])
def test_every_16_bit_number_has_the_code_that_ml_dtypes_gives(
    fmt: Format, words: NDArray[np.float32]
) -> None:
    numbers = words[~(np.isnan(words) & np.signbit(words))]
    if not fmt.zero:  # ml_dtypes rounds 2^-127 * (1 + 1/64) up, half a unit early
        numbers = numbers[~((numbers > 2.0**-127) & (numbers < 1.5 * 2.0**-127))]
    with np.errstate(all="ignore"):
        expected = numbers.astype(fmt.dtype)
    assert np.array_equal(encode(numbers, fmt).view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize("mode", [*MODES, "STOCHASTIC"])
@pytest.mark.parametrize("name", ["e8m0", "e8m0:saturates=yes"])
def test_float32_words_become_the_powers_of_two_that_doubles_become(name: str, mode: str) -> None:
    """E8M0 has a loop of its own for float32: every binade, subnormals, ties and their neighbours, both signs, NaN."""
    words = BF16_WORDS.view(np.uint32)
    rng = np.random.default_rng(0)
    x = np.concatenate([words, words + 1, words - 1, words | rng.integers(0, 2**16, words.size, np.uint32)])
    x, random = x.view(np.float32), rng.integers(0, 2**32, x.size, np.uint32)
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
    more = {"random": random} if mode == "STOCHASTIC" else {}
    for overflow in OVERFLOWS:
        for subnormals in ("keep", "flush"):
            narrow, doubles = (round_to(v, name, mode, overflow, subnormals, **more) for v in (x, wide))
            np.testing.assert_array_equal(narrow.view(np.uint32), doubles.view(np.uint32))


@pytest.mark.long
@pytest.mark.parametrize("name", ["e4m3", "e5m2", "e4m3fnuz", "e2m1"])
def test_every_float32_has_the_code_that_ml_dtypes_gives(name: str) -> None:
    fmt = get_format(name)
    for first in range(0, 2**32, 2**24):
        words = np.arange(first, first + 2**24, dtype=np.uint64).astype(np.uint32).view(np.float32)
        words = words[~np.isnan(words)]
        with np.errstate(all="ignore"):
            expected = words.astype(fmt.dtype)
        assert np.array_equal(encode(words, fmt).view(np.uint8), expected.view(np.uint8)), hex(first)


@pytest.mark.long
@pytest.mark.extra("en_dtypes")
def test_every_float32_has_the_hif8_code_of_en_dtypes() -> None:
    import en_dtypes

    for first in range(0, 2**32, 2**24):
        words = np.arange(first, first + 2**24, dtype=np.uint64).astype(np.uint32).view(np.float32)
        words = words[~np.isnan(words)]
        expected = words.astype(en_dtypes.hifloat8).view(np.uint8)
        assert np.array_equal(encode(words, "hif8").view(np.uint8), expected), hex(first)


# ---- every mode


GFLOAT_MODES = {
    "RINT": gfloat.RoundMode.TiesToEven,
    "ROUND": gfloat.RoundMode.TiesToAway,
    "TRUNC": gfloat.RoundMode.TowardZero,
    "FLOOR": gfloat.RoundMode.TowardNegative,
    "CEIL": gfloat.RoundMode.TowardPositive,
}


@pytest.mark.drawn(6)
@pytest.mark.parametrize("fmt", [f for f in SHORT if not f.taper and f.zero], ids=str)
@pytest.mark.parametrize("mode", GFLOAT_MODES)
@pytest.mark.parametrize("words", [BF16_WORDS, FP16_WORDS], ids=["bf16", "fp16"])
def test_every_16_bit_number_is_rounded_as_gfloat_does(
    fmt: Format, mode: str, words: NDArray[np.float32]
) -> None:
    x = words[np.isfinite(words)]
    saturate = fmt.nan == "none"
    with np.errstate(all="ignore"):
        expected = gfloat.round_ndarray(
            gfloat_format(fmt), x.astype(np.float64), GFLOAT_MODES[mode], sat=saturate
        )
    assert same_values(round_to(x, fmt, mode, "clamp" if saturate else "inf_nan"), expected).all()


@lru_cache
def corners(fmt: Format) -> NDArray[np.float32]:
    """Every number of a format, the points half-way, and their float32 neighbours on either side, in both signs."""
    values = np.unique(np.abs(fmt.values[np.isfinite(fmt.values)]))
    top = values[-1] + float(fmt.ulp(values[-1])) * np.array([0.5, 1, 2])
    with np.errstate(over="ignore"):
        points = np.concatenate([values, (values[:-1] + values[1:]) / 2, top, [np.inf]]).astype(np.float32)
    near = [points, np.nextafter(points, np.float32(np.inf)), np.nextafter(points, np.float32(0))]
    whole = np.concatenate([*near, np.random.default_rng(5).standard_normal(50).astype(np.float32)])
    return np.concatenate([whole, -whole])


OWN = (
    "hif8",
    "e2m1",
    "q1.6",
    "e8m0",
    "e4m3:subnormals=no",
    "e3m1:nan=zero",
    "e4m0:nan=none",
    "e5m2:nan=one,infinities=no",
)


@pytest.mark.drawn(12)
@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("overflow", OVERFLOWS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_every_gap_of_a_format_in_rational_numbers(name: str, mode: str, overflow: str, dtype: Any) -> None:
    fmt = get_format(name)
    x = corners(fmt)
    if not fmt.signed:
        x = x[x > 0]
    if not fmt.zero:
        x = x[x >= fmt.min_normal]
    got = round_to(x.astype(dtype), fmt, mode, overflow)
    expected = np.array([rounded(float(v), fmt, mode, overflow) for v in x])
    assert same_values(got, expected).all()


NAN_KINDS = st.sampled_from(["ieee", "one", "zero", "none"])


@st.composite
def formats(draw: Any) -> Format:
    exponent, mantissa = draw(st.integers(1, 8)), draw(st.integers(0, 6))
    kind, infinities, subnormals = draw(NAN_KINDS), draw(st.booleans()), draw(st.booleans())
    bias = draw(st.integers(-10, 140))
    try:
        return Format(exponent, mantissa, bias, nan=kind, infinities=infinities, subnormals=subnormals)
    except UsageError:
        assume(False)
        raise


@given(
    fmt=formats(),
    mode=st.sampled_from(MODES),
    overflow=st.sampled_from(OVERFLOWS),
    words=st.lists(st.integers(0, 2**32 - 1), min_size=4, max_size=4),
    near=st.lists(st.integers(0, 2**15 - 1), min_size=8, max_size=8),
)
def test_drawn_formats_in_rational_numbers(
    fmt: Format, mode: str, overflow: str, words: list[int], near: list[int]
) -> None:
    """Any float32, and what lies in the gaps of the format, where words seldom fall."""
    some = corners(fmt)
    x = np.concatenate([np.array(words, np.uint32).view(np.float32), some[np.array(near) % len(some)]])
    with np.errstate(invalid="ignore"):
        expected = np.array([rounded(float(v), fmt, mode, overflow) for v in x])
        for dtype in (np.float32, np.float64):
            assert same_values(round_to(x.astype(dtype), fmt, mode, overflow), expected).all()


@given(fmt=formats())
def test_drawn_formats_hold_what_their_text_and_their_storage_say(fmt: Format) -> None:
    again = get_format(fmt.text)
    assert np.array_equal(again.values, fmt.values, equal_nan=True)
    stored = encode(fmt.values, fmt)
    assert get_format(stored.dtype).text == fmt.text
    assert np.array_equal(decode(stored), fmt.values.astype(np.float32), equal_nan=True)
    if fmt.subnormals:
        expected = [gfloat.decode_float(gfloat_format(fmt), code).fval for code in range(0, 1 << fmt.bits, 7)]
        assert np.array_equal(fmt.values[::7], expected, equal_nan=True)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"exponent": "4"}, "format e4m3: exponent is '4'; it takes a whole number"),
        ({"mantissa": 3.0}, r"mantissa is 3\.0; it takes a whole number"),
        ({"bias": True}, "bias is True; it takes a whole number"),
        ({"bias": 1.5}, r"bias is 1\.5; it takes a whole number"),
        ({"bias": 10**9}, "bias is 1000000000; float32, which values are held in, has biases near 127"),
        ({"bias": -(10**9)}, "bias is -1000000000; float32"),
        ({"infinities": "no"}, r"infinities is 'no'; say yes or no \(in Python True or False\)"),
        ({"nan": None}, "nan is None; it takes text"),
        ({"taper": (("1", 0),)}, "a format with rows of taper needs a name"),
        ({"taper": ([1, 2],), "name": "x9"}, r"row \[1, 2\] of taper: rows are \(prefix, exponent bits\)"),
    ],
    ids=str,
)
def test_fields_of_a_wrong_kind_are_refused_in_python_as_in_a_file(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        Format(**{"exponent": 4, "mantissa": 3, **fields})
    assert Format(np.int64(4), np.int64(3)) == Format(4, 3)


def test_a_name_is_that_of_one_format() -> None:
    own = Format(3, 3, 4, name="own33")
    stored = encode([1.3, -0.2], own)
    assert get_format(stored.dtype) is own  # what was stored by it is read by it
    assert decode(stored).tolist() == round_to([1.3, -0.2], own).tolist()
    for other in (Format(3, 2, name="own33"), Format(5, 9, name="fp16")):
        with pytest.raises(
            UsageError, match=r"two formats of the name '(own33|fp16)', e[35]m\d+.* and e[35]m"
        ):
            encode([1.0], other)


def test_upper_case_is_the_same_name() -> None:
    assert get_format("E4M3") is get_format("e4m3")
    assert get_format("E4M3:bias=9") == get_format("e4m3:bias=9")
    assert get_format("E3M3") == get_format("e3m3")


@pytest.mark.parametrize("name", ["int4", "uint4", "e0m5", "e0m2:signed=no"])
def test_integers_of_less_than_a_byte_saturate_and_wrap(name: str) -> None:
    fmt = get_format(name)
    x = np.arange(-100, 100) + 0.0
    assert np.array_equal(to_integer(x, fmt).astype(np.int64), np.clip(x, fmt.min, fmt.max))
    size = 1 << fmt.bits
    wrapped = (x - int(fmt.min)) % size + int(fmt.min)
    assert np.array_equal(to_integer(x, fmt, overflow="wrap").astype(np.int64), wrapped)
    assert round_to(np.array([1, 2]).astype(fmt.dtype), "fp32").tolist() == [1, 2]


@given(
    x=st.floats(width=32, allow_nan=False), y=st.floats(width=32, allow_nan=False), fmt=formats(),
    mode=st.sampled_from(MODES),
)  # fmt: skip
def test_rounding_to_any_format_keeps_order_and_is_idempotent(
    x: float, y: float, fmt: Format, mode: str
) -> None:
    low, high = round_to(sorted((x, y)), fmt, mode, "clamp")
    assert low <= high
    once = round_to([x], fmt, mode, "clamp")
    assert np.array_equal(round_to(once, fmt, mode, "clamp"), once)


# ---- what formats without a sign or a zero do


def test_what_a_format_cannot_hold_is_nan_or_its_least_value() -> None:
    x = [-1.0, 0.0, -0.0, 2.0**-149, 3.0]
    assert same_values(round_to(x, "e8m0"), np.array([np.nan, np.nan, np.nan, 2.0**-127, 4.0])).all()
    unsigned = "e4m3:signed=no,nan=none,infinities=no"
    assert round_to([-1.0, -0.0, 0.3], unsigned).tolist() == [0, 0, 0.3125]
    assert not np.signbit(round_to([-1.0, -0.0], unsigned)).any()


def test_formats_without_minus_zero_have_plus_zero() -> None:
    for fmt in ("hif8", "e4m3fnuz", "q1.6"):
        assert not np.signbit(round_to([-0.0, -1e-30], fmt)).any()
    assert np.signbit(round_to([-0.0, -1e-30], "e4m3")).all()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: get_format("e0m0"), r"0 exponent and 0 mantissa bits: there must be at least one bit"),
        (lambda: Format(0, 0), r"format e0m0: 0 exponent and 0 mantissa bits"),
        (lambda: Format(-1, 3), r"-1 exponent and 3 mantissa bits"),
        (lambda: get_format("e9m3"), r"values are held in float32, which has 8 and 23"),
        (
            lambda: Format(4, 3, 200),
            r"bias 200 its numbers go from 2\^-202 to 2\^-186; .* from 2\^-149 to 2\^127",
        ),
        (lambda: get_format("e4m3:bais=3"), r"no field 'bais'; there are exponent, mantissa, bias"),
        (lambda: get_format("e4m3:bias=x"), r"bias is 'x'; it takes a whole number"),
        (lambda: get_format("e4m3:bias=99999"), r"bias is 99999; float32"),
        (lambda: get_format("e4m3:nan=two"), r"nan is 'two': known are ieee, one, zero, none"),
        (lambda: get_format("e4m3:subnormals=2"), r"subnormals is '2'; say yes or no"),
        (lambda: get_format("e5m2:bias=3,bias=4"), r"bias said twice"),
        (lambda: get_format("hif8:bias=3"), r"hif8 is tapered; write its rows in a file"),
        (lambda: get_format("e3m0"), r"nan=ieee needs a mantissa bit"),
        (lambda: get_format("e4m3:zero=no"), r"zero=no leaves no place for subnormal numbers"),
        (lambda: get_format("e4m3:rounding=UP"), r"rounding 'UP': known are RINT"),
        (lambda: get_format("e1m0:nan=one"), r"all 2 codes are zero, infinity or NaN"),
        (lambda: Format(3, 2, signed=False, nan="zero"), r"nan=zero takes the code of minus zero"),
        (lambda: encode([1], "int4"), r"encode: int4 is not a floating-point storage format"),
        (lambda: Format(4, 3, rounding="UP"), r"rounding 'UP': known are RINT, FLOOR"),
        (lambda: to_integer([1.0], "q1.6"), r"to_integer: q1.6 is not an integer format"),
        (lambda: Format(0, 64), r"0 exponent and 64 mantissa bits"),
        (lambda: FORMATS["fp32"].values, r"a table of all values is made up to 16 bits; it has 32"),
        (
            lambda: Format(4, 3, dtype=np.dtype(object)),
            r"dtype is dtype\('O'\); its codes take one of 8 bits",
        ),
        (lambda: Format(4, 3, dtype=np.dtype("V0")), r"its codes take one of 8 bits or more"),
    ],
    ids=range(24),
)
def test_formats_that_cannot_be_are_refused(call: Callable[[], object], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        call()
