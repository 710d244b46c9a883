"""Random numbers by Philox 4x32-10, bit for bit those of Triton: a seed and an offset give the same words everywhere.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011): ten rounds of
two wide products on four words of counter and two of key. 64-bit counters take Philox 4x64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..ir.building.promotion import KernelError, Operand, describe
from ..ir.building.registry import Builder, builtin
from ..ir.program import Value
from ..precision import dtypes as ty

__all__ = [
    "pair_uniform_to_normal", "philox", "philox_impl", "rand", "rand4x", "randint", "randint4x", "randn",
    "randn4x", "uint_to_uniform_float",
]  # fmt: skip

N_ROUNDS_DEFAULT = 10
TWO_PI = 6.283185307179586
LEAST_UNIFORM = 1.0e-7  # Triton's bound on what goes into the logarithm
Four = tuple[Value, Value, Value, Value]


class _Constants(NamedTuple):
    """Increments of the two key words, multipliers of the two products."""

    key_a: int
    key_b: int
    round_a: int
    round_b: int


PHILOX = {
    "uint32": _Constants(0x9E3779B9, 0xBB67AE85, 0xD2511F53, 0xCD9E8D57),
    "uint64": _Constants(0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B, 0xD2E7470EE14C6C93, 0xCA5A826395121157),
}
# Float scale that takes the largest integer to the largest number below 1 (Triton's figures).
SCALES = {32: 4.6566127342e-10, 64: 1.0842020432385337e-19}


def _value(x: Operand) -> Value:
    assert isinstance(x, Value)
    return x


def _op(b: Builder, name: str, x: Operand, y: Operand) -> Value:
    return _value(b.binary(name, x, y))


def _rounds(b: Builder, words: Four, keys: tuple[Value, Value], n_rounds: int) -> Four:
    c0, c1, c2, c3 = words
    k0, k1 = keys
    constants = PHILOX[c0.dtype.name]
    for _ in range(n_rounds):
        high_b, low_b = _wide_product(b, c2, constants.round_b)
        high_a, low_a = _wide_product(b, c0, constants.round_a)
        c0 = _op(b, "xor", _op(b, "xor", high_b, c1), k0)
        c2 = _op(b, "xor", _op(b, "xor", high_a, c3), k1)
        c1, c3 = low_b, low_a
        k0, k1 = _op(b, "add", k0, constants.key_a), _op(b, "add", k1, constants.key_b)
    return c0, c1, c2, c3


def _wide_product(b: Builder, x: Value, factor: int) -> tuple[Value, Value]:
    return _op(b, "umulhi", x, factor), _op(b, "mul", x, factor)


@builtin
def philox_impl(
    b: Builder,
    c0: Value,
    c1: Value,
    c2: Value,
    c3: Value,
    k0: Value,
    k1: Value,
    n_rounds: int = N_ROUNDS_DEFAULT,
) -> Four:
    """`n_rounds` rounds on the counter (c0, c1, c2, c3) with the key (k0, k1); all uint32, or all uint64."""
    for v in (c0, c1, c2, c3, k0, k1):
        if not isinstance(v, Value) or v.dtype.name not in PHILOX or v.dtype != c0.dtype:
            raise KernelError(f"philox_impl takes uint32 or uint64 values, all alike, got {describe(v)}")
    return _rounds(b, (c0, c1, c2, c3), (k0, k1), n_rounds)


def _philox(b: Builder, seed: Operand, counter: tuple[Operand, ...], n_rounds: int) -> Four:
    key = b.to_value(seed)
    words = [b.to_value(c) for c in counter]
    for v in (key, *words):
        if v.is_pointer or not v.dtype.is_int():
            raise KernelError(f"philox takes integers, got {describe(v)}")
    key = b.cast(key, ty.uint64)
    bits = words[0].dtype.bits  # type: ignore[union-attr]
    if bits not in (32, 64):
        raise KernelError(f"philox takes counters of 32 or 64 bits, got {describe(words[0])}")
    unsigned = ty.integer(bits, signed=False)
    low, high = (key, b.const(0, unsigned))
    if bits == 32:
        low, high = b.cast(key, unsigned), b.cast(_op(b, "shr", key, 32), unsigned)
    c0, c1, c2, c3 = (b.cast(w, unsigned) for w in words)
    return _rounds(b, (c0, c1, c2, c3), (low, high), n_rounds)


@builtin
def philox(
    b: Builder,
    seed: Operand,
    c0: Operand,
    c1: Operand,
    c2: Operand,
    c3: Operand,
    n_rounds: int = N_ROUNDS_DEFAULT,
) -> Four:
    """Four tiles of random words for an integer seed and counter words of 32 or 64 bits (which choose the width)."""
    return _philox(b, seed, (c0, c1, c2, c3), n_rounds)


def _words(b: Builder, seed: Operand, offset: Operand, n_rounds: int) -> Four:
    """The offset is the first word of the counter, its upper half the second where it has 64 bits."""
    at = b.to_value(offset)
    if at.is_pointer or not at.dtype.is_int():
        raise KernelError(f"the offset of a random number must be made of integers, got {describe(at)}")
    low = b.cast(at, ty.uint32)
    zero = b.full(low.shape, 0, ty.uint32) if low.shape else b.const(0, ty.uint32)
    wide = at.dtype.bits > 32  # type: ignore[union-attr]
    high = b.cast(_op(b, "shr", at, 32), ty.uint32) if wide else zero
    return _philox(b, seed, (low, high, zero, zero), n_rounds)


@builtin
def uint_to_uniform_float(b: Builder, x: Operand) -> Value:
    """Random words of 32 or 64 bits as float32 in [0, 1)."""
    v = b.to_value(x)
    if v.is_pointer or v.dtype.name not in ("int32", "uint32", "int64", "uint64"):
        raise KernelError(f"uint_to_uniform_float takes integers of 32 or 64 bits, got {describe(v)}")
    bits = v.dtype.bits  # type: ignore[union-attr]
    signed = b.cast(v, ty.integer(bits, signed=True))
    negative = _value(b.compare("lt", signed, 0))
    flipped = _op(b, "sub", b.unary("neg", signed), 1)
    return _op(b, "mul", b.select(negative, flipped, signed), SCALES[bits])


@builtin
def pair_uniform_to_normal(b: Builder, u1: Operand, u2: Operand) -> tuple[Value, Value]:
    """Two tiles of normal numbers from two of uniform ones (Box and Muller: a radius from one, an angle from the other)."""
    u1, u2 = b.to_value(b.binary("max", LEAST_UNIFORM, u1)), b.to_value(u2)
    angle = _op(b, "mul", TWO_PI, u2)
    radius = b.unary("sqrt", _op(b, "mul", -2.0, b.unary("log", u1)))
    return _op(b, "mul", radius, b.unary("cos", angle)), _op(b, "mul", radius, b.unary("sin", angle))


_uniform: Callable[[Builder, Operand], Value] = uint_to_uniform_float.build
_normal_pair: Callable[[Builder, Operand, Operand], tuple[Value, Value]] = pair_uniform_to_normal.build


@builtin
def randint4x(b: Builder, seed: Operand, offset: Operand, n_rounds: int = N_ROUNDS_DEFAULT) -> Four:
    """Four tiles of random uint32 words with the shape of `offset`; an integer seed, integer offsets."""
    return _words(b, seed, offset, n_rounds)


@builtin
def randint(b: Builder, seed: Operand, offset: Operand, n_rounds: int = N_ROUNDS_DEFAULT) -> Value:
    """One tile of random uint32 words: the first of `randint4x`."""
    return _words(b, seed, offset, n_rounds)[0]


@builtin
def rand(b: Builder, seed: Operand, offset: Operand, n_rounds: int = N_ROUNDS_DEFAULT) -> Value:
    """float32 uniform in [0, 1), with the shape of `offset`."""
    return _uniform(b, _words(b, seed, offset, n_rounds)[0])


@builtin
def rand4x(
    b: Builder, seed: Operand, offsets: Operand, n_rounds: int = N_ROUNDS_DEFAULT
) -> tuple[Value, ...]:
    """Four tiles as `rand`."""
    return tuple(_uniform(b, x) for x in _words(b, seed, offsets, n_rounds))


@builtin
def randn(b: Builder, seed: Operand, offset: Operand, n_rounds: int = N_ROUNDS_DEFAULT) -> Value:
    """float32 normal with mean 0 and deviation 1, with the shape of `offset`."""
    first, second, _, _ = _words(b, seed, offset, n_rounds)
    return _normal_pair(b, _uniform(b, first), _uniform(b, second))[0]


@builtin
def randn4x(
    b: Builder, seed: Operand, offset: Operand, n_rounds: int = N_ROUNDS_DEFAULT
) -> tuple[Value, ...]:
    """Four tiles as `randn`."""
    u1, u2, u3, u4 = (_uniform(b, x) for x in _words(b, seed, offset, n_rounds))
    return (*_normal_pair(b, u1, u2), *_normal_pair(b, u3, u4))
