"""Seeded random inputs: the same numbers on every machine, in whatever element type they are stored.

Each tensor is drawn in chunks, each from a generator of its own (seed, tensor name, chunk number), on all processors.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.interpreter.tensors import Shape
from ...simulator.precision.rounding import encode
from .messages import near
from .parallel import in_chunks

CHUNK = 1 << 18
DISTRIBUTIONS = ("normal", "heavy", "lognormal", "uniform", "cancel", "outliers")


class Draw:
    """Random tensors of one run. distribution: what `signal` draws from, one of DISTRIBUTIONS."""

    def __init__(self, seed: int = 0, distribution: str = "normal") -> None:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise UsageError(f"seed must be an integer from 0, got {seed!r}")
        if distribution not in DISTRIBUTIONS:
            raise UsageError(f"unknown distribution {distribution!r}{near(distribution, DISTRIBUTIONS)}")
        self.seed = int(seed)
        self.distribution = distribution

    def signal(self, name: str, like: Shape, scale: float = 1.0, center: float = 0.0) -> np.ndarray:
        """`center` + `scale` * noise.

        normal: standard normal. heavy: Student's t with 4 degrees of freedom. lognormal: of either sign, the logarithm
        of the size with a deviation of 2. uniform: from 0 to 1. cancel: neighbours in pairs whose sum is 2^-8 of them.
        outliers: normal, one in 1000 of them 1000 times larger, as the vendor's precision standard has them (2.1,
        section 4.5); operators whose sums are over channels make channels large instead.
        """
        noise = _NOISE[self.distribution]
        return self._fill(name, like, lambda g, n: _shifted(noise(g, n), scale, center))

    def normal(self, name: str, like: Shape, scale: float = 1.0, center: float = 0.0) -> np.ndarray:
        """As `signal`, normal whatever the distribution of the run is."""
        return self._fill(name, like, lambda g, n: _shifted(_normal(g, n), scale, center))

    def labels(self, name: str, like: Shape) -> np.ndarray:
        """Soft labels in [0, 1]: a quarter are exactly 0, a quarter exactly 1, the rest uniform in between."""
        return self._fill(name, like, lambda g, n: np.clip(2 * g.random(n, np.float32) - 0.5, 0, 1))

    def _fill(
        self, name: str, like: Shape, make: Callable[[np.random.Generator, int], np.ndarray]
    ) -> np.ndarray:
        out = np.empty(like.shape, like.dtype.storage)
        flat = out.reshape(-1)

        def one(start: int, stop: int) -> None:
            entropy = [self.seed, zlib.crc32(name.encode()), start // CHUNK]
            generator = np.random.Generator(np.random.SFC64(np.random.SeedSequence(entropy)))
            flat[start:stop] = encode(make(generator, stop - start), like.dtype.name)

        in_chunks(flat.size, CHUNK, one)
        return out


def _normal(g: np.random.Generator, n: int) -> np.ndarray:
    return g.standard_normal(n, np.float32)


def _heavy(g: np.random.Generator, n: int) -> np.ndarray:
    """Student's t with 4 degrees of freedom: a normal over the root of chi-squared / 4, the mean of two exponentials."""
    spread = g.standard_exponential(n, np.float32) + g.standard_exponential(n, np.float32)
    noise: np.ndarray = g.standard_normal(n, np.float32) / np.sqrt(spread * np.float32(0.5))
    return noise


def _lognormal(g: np.random.Generator, n: int) -> np.ndarray:
    sizes = np.exp(2 * g.standard_normal(n, np.float32))
    return np.where(g.random(n, np.float32) < 0.5, -sizes, sizes)


def _uniform(g: np.random.Generator, n: int) -> np.ndarray:
    return g.random(n, np.float32)


def _cancel(g: np.random.Generator, n: int) -> np.ndarray:
    noise = g.standard_normal(n, np.float32)
    pairs = n // 2 * 2
    noise[1:pairs:2] = noise[1:pairs:2] * np.float32(2.0**-8) - noise[:pairs:2]
    return noise


def _outliers(g: np.random.Generator, n: int) -> np.ndarray:
    noise = g.standard_normal(n, np.float32)
    return np.where(g.random(n, np.float32) < 1e-3, noise * np.float32(1000), noise)


_NOISE: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": _normal,
    "heavy": _heavy,
    "lognormal": _lognormal,
    "uniform": _uniform,
    "cancel": _cancel,
    "outliers": _outliers,
}


def _shifted(x: np.ndarray, scale: float, center: float) -> np.ndarray:
    if scale != 1.0:
        x *= np.float32(scale)
    if center != 0.0:
        x += np.float32(center)
    return x
