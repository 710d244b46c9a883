"""mmad as callers see it: shapes, accumulation, special values, INT8, the same bits everywhere, refusals."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.precision.rounding import decode, encode, round_to
from ascendtile.simulator.units import cube
from ascendtile.simulator.units._cube import PATHS
from ascendtile.simulator.units.cube import exact_product, mmad
from ascendtile.simulator.units.cube_rules import BLOCK_K, CubeRules

INF, NAN, MAX = np.float32(np.inf), np.float32(np.nan), np.finfo(np.float32).max
FORMATS = ("fp16", "bf16", "hf32", "fp32")


def tiles(*shapes: tuple[int, ...], seed: int = 0) -> list[Any]:
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


# ---- the same bits everywhere


def special_tiles(shape: tuple[int, int, int], seed: int) -> list[Any]:
    """Operands over the whole range of FP32, with zeros, infinities and NaN among them."""
    m, k, n = shape
    random = np.random.default_rng(seed)
    found = tiles((m, k), (k, n), (m, n), seed=seed)
    for x in found:
        x *= np.float32(2.0) ** random.integers(-70, 64, x.shape).astype(np.float32)
        where = random.random(x.shape) < 0.01
        x[where] = random.choice(np.array([0, -0.0, INF, -INF, NAN], np.float32), int(where.sum()))
    return found


@pytest.mark.parametrize("path", range(1, len(PATHS)), ids=PATHS[1:])
@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 16, 16), (5, 39, 17), (67, 300, 131), (3, 520, 40)])
@pytest.mark.parametrize(
    "rules",
    [
        CubeRules("fp32"),
        CubeRules("hf32", fp32_subnormals="keep"),
        CubeRules("fp16", overflow="saturate"),
        CubeRules("fp16", accumulator="fp16", overflow="saturate"),
        CubeRules("bf16", block_round="TRUNC"),
        CubeRules("fp32", block_k=7, overflow="saturate", fp32_subnormals="keep"),
    ],
    ids=lambda rules: f"{rules.operand}-{rules.accumulator}-{rules.overflow}",
)
def test_every_vector_width_gives_the_bits_of_the_scalar_definition(
    word: Any, path: int, shape: tuple[int, int, int], rules: CubeRules
) -> None:
    a, b, c = special_tiles(shape, sum(shape))
    if rules.overflow == "saturate":
        a, b, c = (round_to(x, "fp32", overflow="saturate") for x in (a, b, c))
    expected = exact_product(a, b, c.copy(), rules, path=0)
    assert np.array_equal(word(exact_product(a, b, c.copy(), rules, path=path)), word(expected))


@pytest.mark.parametrize("path", range(1, len(PATHS)), ids=PATHS[1:])
@pytest.mark.parametrize("operand", ["bf16", "fp32"])
@given(
    exponents=st.tuples(*[st.integers(-44, -30)] * 2),
    of_start=st.integers(-110, -100),
    seed=st.integers(0, 99),
)
def test_sums_near_the_subnormals_are_flushed_where_and_only_where_the_definition_does(
    word: Any, path: int, operand: str, exponents: tuple[int, int], of_start: int, seed: int
) -> None:
    """The wide loops leave the flush out where no sum can be subnormal: here that changes from tile to tile."""
    a, b, c = tiles((9, 12), (12, 33), (9, 33), seed=seed)
    a, b = (round_to(np.ldexp(x, e), operand) for x, e in zip((a, b), exponents, strict=True))
    c = np.ldexp(c, of_start + 8 * np.arange(33, dtype=np.int32) % 17)
    b[:, 20:] = np.ldexp(b[:, 20:], -42)
    for start in (c, -(a @ b), np.zeros_like(c)):
        rules = CubeRules(operand, block_k=4)
        expected = exact_product(a, b, start.copy(), rules, path=0)
        assert np.array_equal(word(exact_product(a, b, start.copy(), rules, path=path)), word(expected))


def test_the_baseline_and_the_definition_exist_everywhere() -> None:
    assert PATHS[:2] == ("scalar", "vector16")


HASHES = {
    "fp16": "a17c314633f7b36a170d509adcd2fffe5afd376087c74df36c1cf7cd1f4df8d5",
    "bf16": "933b4f9cee952a8e3b8b9dd68bf1d4e901da58cf8d3687024fa78fd95e0cd102",
    "hf32": "38a792b1642521a1e1491bff5ba58202cef1b8bc19691ed7321ceb2714e77692",
    "fp32": "d5cf80aba193350bd19c8c8b460c23a688e3693d91cd97c5bd4fcb830b7add67",
    "fp16 acc": "fef8f65ccad2b7416bee1624f6b47060d9e3f596ad7e87883778dcb6fe533b62",
}


def integer_built(shape: tuple[int, int], factor: int) -> Any:
    """Odd multiples of 2^-12 in (-16, 16), from integers alone: no random generator, no libm."""
    counted = np.arange(shape[0] * shape[1], dtype=np.int64).reshape(shape)
    return ((counted * factor % 65521 * 2 - 65520) / 4096).astype(np.float32)


def digest(operand: str) -> str:
    a, b = integer_built((130, 333), 40503), integer_built((333, 77), 30011)
    rules: dict[str, Any] = {"accumulator": "fp16", "overflow": "saturate"} if operand == "fp16 acc" else {}
    result = mmad(a, b, operand=operand.split()[0], **rules)
    return hashlib.sha256(result.astype("<f4").tobytes()).hexdigest()


@pytest.mark.parametrize("operand", [*FORMATS, "fp16 acc"])
def test_bits_are_those_on_record(operand: str) -> None:
    assert digest(operand) == HASHES[operand]


# ---- shapes


@pytest.mark.parametrize("operand", FORMATS)
def test_programs_are_independent(operand: str) -> None:
    a, b = tiles((5, 7, 19), (5, 19, 6))
    together = mmad(a, b, operand=operand)
    assert np.array_equal(
        together, np.stack([mmad(x, y, operand=operand) for x, y in zip(a, b, strict=True)])
    )


@pytest.mark.parametrize(
    ("left", "right"),
    [((5, 3, 9), (1, 9, 4)), ((1, 3, 9), (5, 9, 4)), ((3, 9), (5, 9, 4)), ((5, 3, 9), (9, 4))],
)
def test_a_leading_axis_of_one_broadcasts(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b, c = tiles(left, right, (5, 3, 4))
    full_a, full_b = np.broadcast_to(a, (5, 3, 9)), np.broadcast_to(b, (5, 9, 4))
    assert np.array_equal(mmad(a, b, c, operand="hf32"), mmad(full_a, full_b, c, operand="hf32"))


def test_several_leading_axes_broadcast_like_numpy() -> None:
    a, b = tiles((2, 1, 3, 9), (4, 9, 5))
    result = mmad(a, b, operand="fp32")
    assert result.shape == (2, 4, 3, 5)
    assert np.array_equal(result[1, 2], mmad(a[1, 0], b[2], operand="fp32"))


def test_strided_operands() -> None:
    a, b = tiles((18, 14), (6, 18))
    assert np.array_equal(
        mmad(a[::2, ::2].T, b.T[::2], operand="fp32"),
        mmad(np.ascontiguousarray(a[::2, ::2].T), np.ascontiguousarray(b.T[::2]), operand="fp32"),
    )


@pytest.mark.parametrize("shape", [(0, 4, 3), (2, 0, 3), (2, 4, 0)])
def test_empty_tiles_give_the_initial_value(shape: tuple[int, int, int]) -> None:
    a, b, c = tiles(shape[:2], shape[1:], (shape[0], shape[2]))
    for accumulate in ("exact", "blas"):
        result = mmad(a, b, operand="fp16", accumulate=accumulate)
        assert result.shape == c.shape
        assert not result.any()
    if shape[1] == 0:
        assert np.array_equal(mmad(a, b, c, operand="fp32"), c)


# ---- accumulation


@pytest.mark.parametrize("operand", FORMATS)
@pytest.mark.parametrize("blocks", [1, 3, 40])
def test_calls_in_sequence_equal_one_call_when_k_splits_at_block_boundaries(
    operand: str, blocks: int
) -> None:
    a, b = tiles((13, 700), (700, 21))
    cut = blocks * BLOCK_K[operand]
    first = mmad(a[:, :cut], b[:cut], operand=operand)
    split = mmad(a[:, cut:], b[cut:], first, operand=operand)
    assert np.array_equal(split, mmad(a, b, operand=operand))


def test_a_split_inside_a_block_rounds_once_more() -> None:
    a, b = tiles((13, 64), (64, 21))
    split = mmad(a[:, 2:], b[2:], mmad(a[:, :2], b[:2], operand="fp32"), operand="fp32")
    assert not np.array_equal(split, mmad(a, b, operand="fp32"))


def test_the_old_accumulator_is_not_changed() -> None:
    a, b, c = tiles((4, 8), (8, 4), (4, 4))
    before = c.copy()
    mmad(a, b, c, operand="fp32")
    assert np.array_equal(c, before)


# ---- operands


@pytest.mark.parametrize("mode", ["RINT", "ROUND", "RNZ"])
def test_hf32_operands_are_rounded_and_fp32_are_not(mode: str) -> None:
    words = np.array([0x3F800800, 0x3F801800, 0x3F8007FF, 0x3F800801, 0xBF800800, 0x00012345], np.uint32)
    kept = {"RINT": 0x3F800000, "ROUND": 0x3F801000, "RNZ": 0x3F800000}[mode]
    expected = [
        kept,
        0x3F801000 if mode == "RNZ" else 0x3F802000,
        0x3F800000,
        0x3F801000,
        kept | 0x80000000,
        0,
    ]
    column, unit = words.view(np.float32)[:, None], np.ones((1, 1), np.float32)
    assert mmad(column, unit, operand="hf32", hf32_round=mode).view(np.uint32)[:, 0].tolist() == expected
    assert mmad(column, unit, operand="fp32").view(np.uint32)[:5, 0].tolist() == words[:5].tolist()


def test_vendor_names_of_hf32_rounding() -> None:
    assert CubeRules("hf32", hf32_round="RNA") == CubeRules("hf32", hf32_round="ROUND")


def test_subnormal_operands() -> None:
    tiny, big = np.full((1, 1), 2.0**-130, np.float32), np.full((1, 1), 2.0**30, np.float32)
    for operand, switch in (
        ("fp32", "fp32_subnormals"),
        ("bf16", "fp32_subnormals"),
        ("hf32", "hf32_subnormals"),
    ):
        assert mmad(tiny, big, operand=operand)[0, 0] == 0
        assert mmad(tiny, big, operand=operand, **{switch: "keep"})[0, 0] == 2.0**-100
    small = np.full((1, 1), 2.0**-24, np.float32)
    assert mmad(small, small, operand="fp16")[0, 0] == 2.0**-48
    assert mmad(small, small, operand="fp16", fp16_subnormals="flush")[0, 0] == 0


def test_stored_halves_are_accepted() -> None:
    a, b = tiles((5, 20), (20, 6))
    for name in ("fp16", "bf16"):
        stored = encode(a, name), encode(b, name)
        assert np.array_equal(mmad(*stored, operand=name), mmad(*(decode(x) for x in stored), operand=name))


# ---- special values


@pytest.mark.parametrize("accumulate", ["exact", "blas"])
@pytest.mark.parametrize(
    ("values", "others", "ieee", "saturated"),
    [
        ([INF, 1], [2, 3], INF, MAX),
        ([-INF, 1], [2, 3], -INF, -MAX),
        ([INF, 1], [0, 3], NAN, 3),
        ([INF, INF], [1, -1], NAN, 0),
        ([NAN, 1], [5, 3], NAN, 3),
        ([MAX, 1], [2, 3], INF, MAX),
    ],
)
def test_special_values(
    values: list[float], others: list[float], ieee: float, saturated: float, accumulate: str
) -> None:
    a, b = np.array([values], np.float32), np.array(others, np.float32)[:, None]
    result = mmad(a, b, operand="fp32", accumulate=accumulate)
    assert np.array_equal(result[0], np.array([ieee], np.float32), equal_nan=True)
    assert mmad(a, b, operand="fp32", overflow="saturate", accumulate=accumulate)[0, 0] == np.float32(
        saturated
    )


def test_special_operands_of_the_halves_saturate_at_their_own_maximum() -> None:
    a, b = np.array([[INF]], np.float32), np.ones((1, 1), np.float32)
    assert mmad(a, b, operand="fp16", overflow="saturate")[0, 0] == 65504
    assert mmad(a, b, operand="bf16", overflow="saturate")[0, 0] == np.float32(2.0**128 - 2.0**120)
    assert mmad(a, b, operand="hf32", overflow="saturate").view(np.uint32)[0, 0] == 0x7F7FF000


def test_an_accumulator_saturates_and_comes_back() -> None:
    a, b = np.array([[MAX] * 4 + [-MAX] * 4], np.float32), np.ones((8, 1), np.float32)
    assert mmad(a, b, operand="fp32", overflow="saturate")[0, 0] == -MAX
    assert np.isnan(
        mmad(np.array([[INF, *[0] * 3, -INF]], np.float32), np.ones((5, 1), np.float32), operand="fp32")
    )
    halves = np.array([[60000.0] * 16 + [-60000.0] * 16], np.float32)
    ones = np.ones((32, 1), np.float32)
    assert mmad(halves, ones, operand="fp16", accumulator="fp16", overflow="saturate")[0, 0] == -65504
    assert mmad(halves, ones, operand="fp16", overflow="saturate")[0, 0] == 0


def test_initial_values_obey_the_accumulator() -> None:
    zero = np.zeros((1, 1), np.float32)
    for start, rules, expected in (
        (INF, {"overflow": "saturate"}, MAX),
        (NAN, {"overflow": "saturate"}, 0),
        (np.float32(2.0**-130), {}, 0),
        (np.float32(2.0**-130), {"fp32_subnormals": "keep"}, 2.0**-130),
        (np.float32(2049), {"accumulator": "fp16"}, 2048),
    ):
        assert mmad(zero, zero, np.full((1, 1), start), operand="fp16", **rules)[0, 0] == np.float32(expected)


def test_signed_zeros_follow_ieee(word: Any) -> None:
    a, b = np.array([[-0.0, -0.0]], np.float32), np.ones((2, 1), np.float32)
    minus = np.array([[-0.0]], np.float32)
    assert word(mmad(a, b, minus, operand="fp16"))[0, 0] == 0x80000000
    assert word(mmad(a, b, operand="fp16"))[0, 0] == 0


# ---- other orders and types


@pytest.mark.parametrize("operand", FORMATS)
def test_blas_differs_only_in_the_order_of_summation(operand: str) -> None:
    a, b, c = tiles((3, 40, 200), (3, 200, 30), (3, 40, 30))
    result = mmad(a, b, c, operand=operand, accumulate="blas")
    assert np.allclose(result, mmad(a, b, c, operand=operand), rtol=0, atol=2e-4)
    x, y = (round_to(v, operand) for v in (a, b))
    assert np.array_equal(result, np.matmul(x, y) + c)


@pytest.mark.parametrize("length", [1, 31, 1024, 1025, 5000])
def test_int8_is_exact(length: int) -> None:
    random = np.random.default_rng(length)
    a, b = (random.integers(-128, 128, s).astype(np.int8) for s in ((2, 5, length), (1, length, 7)))
    result = mmad(a, b, operand="int8")
    assert result.dtype == np.int32
    assert np.array_equal(result, a.astype(np.int64) @ b.astype(np.int64))


def test_int8_extremes_and_wrap() -> None:
    a, b = np.full((1, 2048), -128, np.int8), np.full((2048, 1), -128, np.int8)
    assert mmad(a, b, operand="int8")[0, 0] == 2048 * 2**14
    top = np.full((1, 1), 2**31 - 1, np.int32)
    assert mmad(a, b, top, operand="int8")[0, 0] == -(2**31) + 2048 * 2**14 - 1
    assert mmad(a, b, bias=np.array([5], np.int32), operand="int8")[0, 0] == 2048 * 2**14 + 5


# ---- refusals


@pytest.mark.parametrize(
    ("shapes", "rules", "text"),
    [
        (((2, 3), (4, 5)), {}, r"a is \(2, 3\), b is \(4, 5\); the rule is"),
        (((3,), (3, 5)), {}, r"a is \(3,\)"),
        (((2, 2, 3), (4, 3, 5)), {}, r"leading axes of a \(2,\) and b \(4,\) do not broadcast"),
        (
            ((2, 3), (3, 5)),
            {"operand": "fp64"},
            "operands of fp64: it reads floats up to fp32 and integers up to 8 bits",
        ),
        (((2, 3), (3, 5)), {"operand": "int8"}, "a is float32; int8 operands are int8 arrays"),
        (((2, 3), (3, 5)), {"block_k": 0}, "block_k is 0, at least 1"),
        (
            ((2, 3), (3, 5)),
            {"operand": "int8", "accumulator": "fp16"},
            "int8 operands do not accumulate in fp16, but in int32",
        ),
        (((2, 3), (3, 5)), {"accumulator": "int32"}, "fp16 operands do not accumulate in int32"),
        (((2, 3), (3, 5)), {"blockk": 4}, "no switch blockk; there are operand, block_k"),
        (((2, 3), (3, 5)), {"block_round": "UP"}, "block_round 'UP': known are RINT, ROUND, RNZ, TRUNC"),
        (
            ((2, 3), (3, 5)),
            {"bias": np.zeros(4, np.float32)},
            r"bias is float32 \(4,\), but accumulators are .* \(2, 5\)",
        ),
        (((2, 3), (3, 5)), {"acc": np.zeros((1, 5), np.float32)}, r"acc is float32 \(1, 5\)"),
        (((2, 3), (3, 5)), {"acc": np.zeros((2, 5))}, "acc is float64"),
        (((2, 3), (3, 5)), {"acc": np.zeros((2, 5)), "bias": np.zeros(5)}, "both acc and bias given"),
    ],
)
def test_refusals_name_the_rule_and_the_numbers(shapes: Any, rules: dict[str, Any], text: str) -> None:
    a, b = tiles(*shapes)
    with pytest.raises(UsageError, match=text):
        mmad(a, b, **rules)


def test_integers_are_not_taken_for_floats() -> None:
    with pytest.raises(UsageError, match="operands are floats, not int32"):
        mmad(np.ones((1, 1), np.int32), np.ones((1, 1), np.int32), operand="fp32")


@pytest.mark.parametrize("shape", [(1, 67, 40, 33), (5, 9, 40, 33)])
@pytest.mark.parametrize("shared", [False, True])
def test_threads_give_the_bits_of_one(shape: tuple[int, ...], shared: bool, monkeypatch: Any) -> None:
    p, m, k, n = shape
    rng = np.random.default_rng(7)
    a = rng.standard_normal((p, m, k)).astype(np.float16).astype(np.float32)
    b = rng.standard_normal((1 if shared else p, k, n)).astype(np.float16).astype(np.float32)
    c = rng.standard_normal((p, m, n)).astype(np.float32)
    want = mmad(a, b, c), mmad(a, b)
    monkeypatch.setattr(cube, "PRODUCTS_OF_THREAD", 1)
    monkeypatch.setattr(cube.os, "cpu_count", lambda: 3)
    for x, y in zip(want, (mmad(a, b, c), mmad(a, b)), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("subnormals", ["flush", "keep"])
def test_a_blas_sum_flushes_the_old_accumulators_and_the_new_ones(subnormals: str) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(s).astype(np.float16).astype(np.float32) for s in ((2, 40, 33), (2, 33, 31)))
    c = (rng.standard_normal((2, 40, 31)) * 2.0 ** rng.integers(-140, 3, (2, 40, 31))).astype(np.float32)
    a[:, :5] = 0  # rows whose sums are the old accumulators alone
    found = mmad(
        a,
        np.swapaxes(np.swapaxes(b, -1, -2).copy(), -1, -2),
        c,
        accumulate="blas",
        fp32_subnormals=subnormals,
    )

    def held(x: np.ndarray) -> np.ndarray:
        return (
            np.where(np.abs(x) < 2.0**-126, np.copysign(np.float32(0), x), x) if subnormals == "flush" else x
        )

    np.testing.assert_array_equal(found, held(np.matmul(a, b) + held(c)))
    assert (found != mmad(a, b, c * 0, accumulate="blas")).any()
