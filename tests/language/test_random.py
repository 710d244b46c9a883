"""Philox bit for bit: the published vectors of Random123, and Triton's way from a seed and an offset to numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError

from .values import output

# Random123 (D. E. Shaw Research), kat_vectors: philox4x32 and philox4x64 with 10 rounds: counter, key, result
KNOWN_32 = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]
KNOWN_64 = [
    (
        "0000000000000000 0000000000000000 0000000000000000 0000000000000000",
        "0000000000000000 0000000000000000",
        "16554d9eca36314c db20fe9d672d0fdc d7e772cee186176b 7e68b68aec7ba23b",
    ),
    (
        "ffffffffffffffff ffffffffffffffff ffffffffffffffff ffffffffffffffff",
        "ffffffffffffffff ffffffffffffffff",
        "87b092c3013fe90b 438c3c67be8d0224 9cc7d7c69cd777b6 a09caebf594f0ba0",
    ),
    (
        "243f6a8885a308d3 13198a2e03707344 a4093822299f31d0 082efa98ec4e6c89",
        "452821e638d01377 be5466cf34e90c6c",
        "a528f45403e61d95 38c72dbd566e9788 a5a1610e72fd18b5 57bd43b5e52b7fe6",
    ),
]


def words(text: str, kind: Any) -> np.ndarray:
    return np.array([int(w, 16) for w in text.split()], kind)


@sim.jit
def known(out, counter, key, B: tl.constexpr):
    i = tl.arange(0, B)
    one = i < 1
    c = (
        tl.load(counter + i * 0),
        tl.load(counter + i * 0 + 1),
        tl.load(counter + i * 0 + 2),
        tl.load(counter + i * 0 + 3),
    )
    r = tl.philox_impl(c[0], c[1], c[2], c[3], tl.load(key), tl.load(key + 1))
    for k in tl.static_range(4):
        tl.store(out + k + i * 0, r[k], mask=one)


@pytest.mark.parametrize(("counter", "key", "result"), [*KNOWN_32, *KNOWN_64])
def test_published_vectors(counter: str, key: str, result: str) -> None:
    kind = np.uint32 if (counter, key, result) in KNOWN_32 else np.uint64
    got = output(known, 4, words(counter, kind), words(key, kind), dtype=kind, B=2)
    assert [f"{int(w):0{kind().itemsize * 2}x}" for w in got] == result.split()


def philox(seed: int, counter: list[int]) -> list[int]:
    """Philox 4x32-10 from its definition, on Python integers."""
    c, k = list(counter), [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def uniform(word: int) -> np.float32:
    signed = word - (1 << 32) if word >> 31 else word
    return np.float32(-signed - 1 if signed < 0 else signed) * np.float32(4.6566127342e-10)


@sim.jit
def numbers(out, ints, seed, first, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    at = first + i
    tl.static_assert(tl.randint(seed, at).dtype == tl.uint32 and tl.rand(seed, at).dtype == tl.float32)
    tl.store(ints + i, tl.randint(seed, at))
    N: tl.constexpr = 2 * B
    tl.store(out + i, tl.rand(seed, at))
    four = tl.rand4x(seed, at)
    tl.store(out + N + i, four[3])
    tl.store(out + 2 * N + i, tl.randn(seed, at))
    tl.store(out + 3 * N + i, tl.randn4x(seed, at)[3])
    words = tl.philox(seed, at.to(tl.uint32), 1, 2, 3)
    tl.store(out + 4 * N + i, tl.uint_to_uniform_float(words[2]))
    tl.store(out + 5 * N + i, tl.rand(seed, first) + 0 * i)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("seed", [0, 42, 2**31 + 5, 2**40 + 99])
@pytest.mark.parametrize("first", [0, 7, 2**33 + 1])
def test_seed_and_offset_to_numbers(seed: int, first: int) -> None:
    n = 2 * 20
    ints = np.zeros(n, np.uint32)
    got = output(numbers, 6 * n, ints, seed, first, programs=2, B=20).reshape(6, n)
    offsets = [first + i for i in range(n)]
    all_words = [philox(seed, [o & 0xFFFFFFFF, o >> 32, 0, 0]) for o in offsets]
    assert ints.tolist() == [w[0] for w in all_words]
    u = np.array([[uniform(x) for x in w] for w in all_words], np.float32)
    np.testing.assert_array_equal(got[0], u[:, 0])
    np.testing.assert_array_equal(got[1], u[:, 3])
    double = u.astype(np.float64)
    radius = np.sqrt(-2 * np.log(np.maximum(1e-7, double)))
    np.testing.assert_allclose(got[2], radius[:, 0] * np.cos(2 * np.pi * double[:, 1]), rtol=1e-4, atol=2e-6)
    np.testing.assert_allclose(got[3], radius[:, 2] * np.sin(2 * np.pi * double[:, 3]), rtol=1e-4, atol=2e-6)
    third = [uniform(philox(seed, [o & 0xFFFFFFFF, 1, 2, 3])[2]) for o in offsets]
    np.testing.assert_array_equal(got[4], np.array(third))
    assert (got[5] == u[0, 0]).all()


@sim.jit
def wrong(out, WHAT: tl.constexpr):
    if WHAT == "seed":
        tl.store(out, tl.rand(1.5, 0))
    elif WHAT == "offset":
        tl.store(out, tl.rand(1, 0.5))
    elif WHAT == "width":
        tl.store(out, tl.philox(1, tl.arange(0, 2).to(tl.int8), 0, 0, 0)[0])
    else:
        tl.store(out, tl.uint_to_uniform_float(0.5))


@pytest.mark.parametrize("what", ["seed", "offset", "width", "float"])
def test_what_is_refused(what: str) -> None:
    with pytest.raises(CompileError, match=r"integers|32 or 64 bits"):
        output(wrong, 1, WHAT=what)
