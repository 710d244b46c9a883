"""Stochastic rounding: its law, its random bits, and that they follow from seed and index alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.precision._rounding import random_words
from ascendtile.simulator.precision.formats import get_format
from ascendtile.simulator.precision.rounding import encode, round_to

# One of each loop: narrow, tapered, by doubles, with FP32's exponents.
FORMATS = ("e4m3", "hif8", "e8m3:bias=130", "bf16", "fp32", "q1.6")
WORDS = st.integers(0, 2**32 - 1)


def philox(seed: int, counter: int) -> int:
    """Word 0 of Philox 4x32-10 on (counter, 0, 0), straight from the paper."""
    c = [counter & 0xFFFFFFFF, counter >> 32, 0, 0]
    k = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c[0]


def words(seed: int, first: int, n: int, widest: bool = True) -> NDArray[np.uint32]:
    out = np.zeros(n, np.uint32)
    random_words(out, seed, first, widest)
    return out


# ---- random bits


def test_the_known_answer() -> None:
    """Random123 1.14, kat_vectors: philox4x32 10 on zeros."""
    assert int(words(0, 0, 1)[0]) == philox(0, 0) == 0x6627E8D5


@given(seed=st.integers(0, 2**64 - 1), first=st.integers(0, 2**64 - 1), n=st.integers(1, 21))
def test_words_are_philox_of_seed_and_index_by_every_loop(seed: int, first: int, n: int) -> None:
    expected = [philox(seed, (first + i) % 2**64) for i in range(n)]
    assert words(seed, first, n).tolist() == words(seed, first, n, widest=False).tolist() == expected


@pytest.mark.parametrize("first", [2**32 - 29, 5 * 2**32 - 8, 2**64 - 13])
def test_words_go_on_where_the_lower_half_of_the_index_is_full(first: int) -> None:
    expected = [philox(2**63 + 9, (first + i) % 2**64) for i in range(40)]
    assert words(2**63 + 9, first, 40).tolist() == expected
    assert words(2**63 + 9, first, 40, widest=False).tolist() == expected


@sim.jit
def _randint(out, SEED: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.randint(SEED, i))


def test_words_are_those_of_tl_randint() -> None:
    out = np.zeros(64, np.int32)
    _randint[(1,)](out, 1234, B=64)
    assert np.array_equal(out.view(np.uint32), words(1234, 0, 64))


@pytest.mark.parametrize("other", ["next index", "next seed", "far seed", "bits of a word"])
def test_bits_pass_chi_square(other: str) -> None:
    """Two bytes of each pair, neighbours in index, in seed, or within a word, as 65536 cells of 2^20 draws."""
    n = 1 << 20
    x = words(7, 0, n + 1)
    y = {
        "next index": lambda: x[1:],
        "next seed": lambda: words(8, 0, n),
        "far seed": lambda: words(7 + 2**40, 0, n),
        "bits of a word": lambda: x[:n] << np.uint32(8),
    }[other]()
    cells = (x[:n] >> 24 << 8) | (y >> 24)
    chi = float(np.sum((np.bincount(cells, minlength=1 << 16) - n / 65536.0) ** 2) / (n / 65536.0))
    assert abs(chi - 65535) < 5 * math.sqrt(2 * 65535)


def test_every_bit_is_one_half_of_the_time() -> None:
    n = 1 << 18
    ones = np.unpackbits(words(3, 0, n).view(np.uint8)).reshape(n, 32).sum(0)
    assert (abs(ones - n / 2) < 5 * math.sqrt(n) / 2).all()


# ---- the law


def carried(x: float, word: int, name: str) -> float:
    """Toward zero, and a step away from it if the first 31 dropped bits and 31 random ones carry."""
    fmt = get_format(name)
    low, ulp = float(round_to(np.float64(x), name, "TRUNC")), float(fmt.ulp(x))
    rest = (Fraction(abs(x)) - Fraction(abs(low))) / Fraction(ulp)
    up = math.floor(rest * 2**31) + (word >> 1) >= 2**31
    return math.copysign(abs(low) + ulp * up, x)


@given(
    x=st.floats(-1.5, 1.5, width=32),
    name=st.sampled_from(FORMATS),
    some=st.lists(WORDS, min_size=5, max_size=5),
)
def test_a_carry_of_dropped_and_random_bits_rounds_away(x: float, name: str, some: list[int]) -> None:
    at = np.full(5, x)
    random = np.array(some, np.uint32)
    expected = [carried(x, word, name) for word in some]
    for dtype in (np.float32, np.float64):
        assert round_to(at.astype(dtype), name, "STOCHASTIC", random=random).tolist() == expected


@given(x=st.floats(-300, 300), name=st.sampled_from(["e4m3", "hif8", "bf16"]), word=WORDS)
def test_float64_keeps_31_dropped_bits(x: float, name: str, word: int) -> None:
    got = round_to(np.float64(x), name, "STOCHASTIC", random=np.array(word, np.uint32))
    assert float(got) == carried(x, word, name)


@pytest.mark.parametrize("name", FORMATS)
def test_the_mean_is_the_value(name: str) -> None:
    """Within five standard deviations of 200 000 draws; below the smallest number, too."""
    n, fmt = 200_000, get_format(name)
    for x in (0.3, -0.7123, 1.0, fmt.min_subnormal * 0.37):
        x = float(np.float32(x))
        got = round_to(np.full(n, x, np.float32), name, "STOCHASTIC", seed=11).astype(np.float64)
        ulp = float(fmt.ulp(x))
        assert abs(got.mean() - x) <= 5 * ulp / 2 / math.sqrt(n)
        assert set(np.unique(got)) <= {float(round_to(x, name, mode)) for mode in ("FLOOR", "CEIL")}


@pytest.mark.parametrize("name", FORMATS)
def test_values_of_the_format_stay(name: str) -> None:
    x = round_to(np.random.default_rng(1).standard_normal(500), name)
    assert np.array_equal(round_to(x, name, "STOCHASTIC", seed=2), x)


@pytest.mark.parametrize("name", FORMATS)
def test_bits_follow_from_seed_and_index_alone(name: str) -> None:
    """Any length, shape, memory layout and source type; another seed gives others."""
    x = np.random.default_rng(2).standard_normal((50, 101)).astype(np.float32)
    whole = round_to(x, name, "STOCHASTIC", seed=5)
    random = words(5, 0, x.size).reshape(x.shape)
    assert np.array_equal(round_to(x, name, "STOCHASTIC", random=random), whole)
    assert np.array_equal(round_to(x[:7], name, "STOCHASTIC", seed=5), whole[:7])
    assert np.array_equal(round_to(np.asfortranarray(x), name, "STOCHASTIC", seed=5), whole)
    assert np.array_equal(round_to(x.astype(np.float64), name, "STOCHASTIC", seed=5), whole)
    assert np.array_equal(round_to(x, name, "STOCHASTIC", seed=5, out=x.copy()), whole)
    if name != "fp32":
        assert not np.array_equal(round_to(x, name, "STOCHASTIC", seed=6), whole)


@pytest.mark.parametrize("name", FORMATS)
def test_random_words_may_lie_anywhere(name: str) -> None:
    """At an odd address, or every other one; a loop that reads words where they lie is for the sanitizers to find."""
    x = np.random.default_rng(4).standard_normal(77).astype(np.float32)
    random = words(8, 0, x.size)
    odd = np.zeros(random.nbytes + 1, np.uint8)[1:].view(np.uint32)
    odd[:] = random
    for given_words in (odd, np.repeat(random, 2)[::2]):
        for dtype in (np.float32, np.float64):
            got = round_to(x.astype(dtype), name, "STOCHASTIC", random=given_words)
            assert np.array_equal(got, round_to(x, name, "STOCHASTIC", random=random))


def test_ends_are_those_of_nearest() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 1e9, 464.0, 0.0, -0.0], np.float32)
    for seed in range(20):
        got = round_to(x, "e4m3", "STOCHASTIC", "clamp", seed=seed)
        assert got[[0, 1, 3, 4]].tolist() == [448, -448, 448, 448]
        assert np.isnan(got[2])
        assert np.signbit(got[5:]).tolist() == [False, True]
    kept = [float(round_to(x[4:5], "e4m3", "STOCHASTIC", seed=s)[0]) for s in range(200)]
    assert 60 < sum(v == 448 for v in kept) < 140  # 464 is half-way to what is too large
    assert all(v == 448 or math.isnan(v) for v in kept)


def test_storage_takes_the_same_bits() -> None:
    x = np.random.default_rng(3).standard_normal(300).astype(np.float32)
    for name in ("bf16", "hif8", "e2m1"):
        stored = encode(x, name, "STOCHASTIC", seed=9)
        assert np.array_equal(sim.decode(stored), round_to(x, name, "STOCHASTIC", seed=9))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: round_to([1.0], "e4m3", "STOCHASTIC"), r"STOCHASTIC takes one of the two"),
        (lambda: round_to([1.0], "e4m3", seed=1), r"only STOCHASTIC takes them"),
        (
            lambda: round_to([1.0], "e4m3", seed=1, random=np.zeros(1, np.uint32)),
            r"only STOCHASTIC takes them",
        ),
        (lambda: round_to([1.0], "e4m3", "STOCHASTIC", seed=1.5), r"seed 1.5: it is a whole number"),
        (lambda: round_to([1.0], "e4m3", "STOCHASTIC", seed=-1), r"seed -1: it is a whole number from 0"),
        (
            lambda: round_to([1.0], "e4m3", "STOCHASTIC", seed=2**64),
            r"seed 18446744073709551616: it is a whole number",
        ),
        (
            lambda: round_to([1.0], "e4m3", "STOCHASTIC", random=np.zeros(2, np.uint32)),
            r"random is uint32 \(2,\): it must be uint32 \(1,\)",
        ),
        (
            lambda: round_to([1.0], "e4m3", "STOCHASTIC", random=np.zeros(1, np.int32)),
            r"random is int32 \(1,\): it must be uint32",
        ),
        (lambda: sim.get_block_format("mxfp4").quantise([1.0], mode="STOCHASTIC"), r"STOCHASTIC takes one"),
        (
            lambda: round_to([1.0], "e4m3", "STOCHASTIC", random=[1]),  # type: ignore[arg-type]
            r"random is \[1\]: it must be uint32",
        ),
    ],
    ids=range(10),
)
def test_error_texts(call: Callable[[], object], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        call()
