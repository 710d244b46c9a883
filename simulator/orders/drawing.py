"""Inputs that tell orders of operations apart: seeded numbers of several kinds, from ordinary to the ends of a type."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..precision.dtypes import DType, from_numpy
from ..units.vector import encode

Numbers = np.ndarray


def _normal(g: np.random.Generator, n: int, t: DType) -> Numbers:
    return g.standard_normal(n)


def _wide(g: np.random.Generator, n: int, t: DType) -> Numbers:
    """Sizes over half of the exponents of the type."""
    low, high = _exponents(t)
    return g.choice((-1.0, 1.0), n) * np.exp2(g.uniform(low / 2, high / 2, n))


def _cancel(g: np.random.Generator, n: int, t: DType) -> Numbers:
    """Large numbers of both signs that mostly cancel, and small ones between them."""
    out = g.standard_normal(n)
    large = g.permutation(n)[: n // 4 * 2]
    size = np.exp2(min(12, _exponents(t)[1] - 2))
    out[large[::2]], out[large[1::2]] = size, -size
    return out


def _near(g: np.random.Generator, n: int, t: DType) -> Numbers:
    """Around 1, of one sign: ties and near ties of sums are frequent."""
    return 1 + g.integers(0, 8, n) * 2.0**-t.fp_mantissa_width


def _large(g: np.random.Generator, n: int, t: DType) -> Numbers:
    """Up to the largest of the type, so that sums overflow in one order and not in another."""
    return g.choice((-1.0, 1.0), n) * np.exp2(g.uniform(_exponents(t)[1] - 3, _exponents(t)[1] - 0.01, n))


def _tiny(g: np.random.Generator, n: int, t: DType) -> Numbers:
    """Around the smallest normal number."""
    low = _exponents(t)[0]
    return g.choice((-1.0, 1.0), n) * np.exp2(g.uniform(low - 4, low + 4, n))


def _zeros(g: np.random.Generator, n: int, t: DType) -> Numbers:
    """Zeros of both signs, and few other numbers."""
    return g.choice((0.0, -0.0, 0.0, -0.0, 1.0, -1.0), n)


def _minus_zeros(g: np.random.Generator, n: int, t: DType) -> Numbers:
    return np.full(n, -0.0)


def _positive(g: np.random.Generator, n: int, t: DType) -> Numbers:
    return np.exp(g.standard_normal(n))


def _not_finite(g: np.random.Generator, n: int, t: DType) -> Numbers:
    """Ordinary numbers, and among them infinities and NaN."""
    out = g.standard_normal(n)
    out[g.random(n) < 0.1] = g.choice((np.inf, -np.inf, np.nan))
    return out


KINDS: tuple[Callable[[np.random.Generator, int, DType], Numbers], ...] = (
    *(_normal, _wide, _cancel, _near, _positive, _large, _tiny, _zeros, _minus_zeros),
)


def draw(inputs: Mapping[str, Numbers], fixed: frozenset[str], turn: int, finite: bool) -> dict[str, Numbers]:
    """Other elements for the inputs that are not fixed, the same for the same turn: each turn is of one kind.

    Integers stay within what the input holds, and in the turns of wide and large numbers within their type.
    finite: whether there are neither infinities nor NaN.
    """
    kinds = KINDS if finite else (*KINDS, _not_finite)
    out = {}
    for place, (name, x) in enumerate(inputs.items()):
        g = np.random.Generator(np.random.PCG64([turn, place]))
        out[name] = x if name in fixed or not x.size else _like(x, g, kinds[turn % len(kinds)])
    return out


def _like(x: Numbers, g: np.random.Generator, kind: Callable[..., Numbers]) -> Numbers:
    t = from_numpy(x.dtype)
    assert t is not None
    if t.is_floating():
        with np.errstate(all="ignore"):
            return encode(kind(g, x.size, t).astype(t.host_dtype), t).reshape(x.shape)
    if t.is_bool():
        return g.random(x.shape) < 0.5
    ends = np.iinfo(x.dtype)
    if kind is _large:
        return g.choice(np.array([ends.min, ends.min + 1, 0, 1, ends.max - 1, ends.max], x.dtype), x.shape)
    low, high = (ends.min, ends.max) if kind is _wide else (x.min(), x.max())
    return g.integers(low, high, x.shape, x.dtype, endpoint=True)


def _exponents(t: DType) -> tuple[int, int]:
    """Of the smallest normal number, and the power of two above the largest."""
    return {"fp16": (-14, 16), "bf16": (-126, 128), "fp32": (-126, 128)}.get(t.name, (-1022, 1024))
