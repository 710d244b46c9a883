"""What the Cube is asked about its steps: T1 to T6 of the numerics specification, with experiments for each question.

A chain of two products: the first one puts a whole number into the accumulator, power of two by power of two, which no
order, rounding or alignment can change; the second one asks. Operands are numbers of at most 8 bits, or 11 where the format
has them.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .experiment import BoardTensor, Experiment, empty, operand

FORMATS = ("fp16", "bf16", "hf32", "fp32")
STORED = {"hf32": "fp32"}  # what memory holds of a format, where that is another one
ROWS, COLUMNS, DEPTH = 32, 16, 512  # of the questions for steps: a pair (0, q) of products for each element
MOST_STEP = DEPTH - 1  # more products in a step are told apart from these, not from each other
TERMS = 32  # products of a question for sums
FP32_DIGITS, FP16_DIGITS = 24, 11  # significand bits of an accumulator


def chain(name: str, fmt: str, a: np.ndarray, b: np.ndarray) -> Experiment:
    """a: (P, steps, M, K), b: (P, steps, K, N), values that the format holds; P programs."""
    stored = STORED.get(fmt, fmt)
    return chain_of(name, fmt, operand(a, stored), operand(b, stored))


def chain_of(name: str, fmt: str, a: BoardTensor, b: BoardTensor) -> Experiment:
    programs, steps, m, k = a.words.shape
    n = b.words.shape[-1]
    precision = "hf32" if fmt == "hf32" else "ieee"
    constants = {"STEPS": steps, "M": m, "N": n, "K": k, "PRECISION": precision}
    out = {"out": empty((programs, m, n), "fp32")}
    return Experiment(name, "dot_chain", {"a": a, "b": b}, out, constants, (programs,), fmt)


def start(numbers: np.ndarray, scale: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Operands whose product is number * 2^scale in every column of a row; whole numbers of at most 24 bits, (rows,)."""
    a, b = np.zeros((len(numbers), depth)), np.zeros((depth, COLUMNS))
    for place in range(FP32_DIGITS):
        low = place // 2
        b[place] = 2.0**low
        a[:, place] = np.sign(numbers) * (np.abs(numbers) >> place & 1) * 2.0 ** (place - low + scale)
    return a, b


def steps_of(fmt: str, backward: bool, digits: int = FP32_DIGITS) -> Experiment:
    """Which products are added before the accumulator is rounded.

    The accumulator starts at 2^digits - 1. Product 0 is 2 and product q is -2^(digits - 1), in element (q // 16, q % 16).
    In one step the sum is exact. In two steps the accumulator has to be rounded after the 2, and is 1 off. backward: the
    two change places, which shows steps in descending order.
    """
    first = start(np.full(ROWS, 2**digits - 1), 0, DEPTH)
    a, b = np.zeros((ROWS, DEPTH)), np.zeros((DEPTH, COLUMNS))
    low = (digits - 1) // 2
    places = np.arange(1, DEPTH)
    two, great = (2.0, 1.0), (-(2.0 ** (digits - 1 - low)), 2.0**low)
    (a[:, 0], b[0]), (x, y) = (great, two) if backward else (two, great)
    a[places // COLUMNS, places], b[places, places % COLUMNS] = x, y
    name = f"steps_{fmt}_{'backward' if backward else 'forward'}"
    name += f"_{digits}_bits" if digits != FP32_DIGITS else ""
    return chain(name, fmt, np.stack([first[0], a])[None], np.stack([first[1], b])[None])


# What the accumulator holds, and products of two factors; in units of its last place.
Row = tuple[int, list[tuple[float, float]]]
NEAR = range(7, 22)  # bits below a tie at which a product may still have one


def _near_tie(m: int, most: int) -> tuple[int, int] | None:
    """Factors of the least odd number of times 2^m, plus 1, that two whole numbers of at most `most` make."""
    for odd in range(1, most * most >> m, 2):
        product = (odd << m) + 1
        low = next((x for x in range(-(-product // most), most + 1) if product % x == 0), None)
        if low is not None:
            return low, product // low
    return None


def _power(exponent: int) -> tuple[float, float]:
    """2^exponent as two factors of like size."""
    low = exponent // 2
    return 2.0**low, 2.0 ** (exponent - low)


def _ties(digits: int) -> Iterable[Row]:
    top, middle = 2**digits - 1, 2 ** (digits - 1)
    nearly = 255.0 * 2.0 ** (digits - 16), 255.0  # just below 2^digits
    for sign in (1, -1):
        for halves in (4, 5, 7, 8, 12):
            yield sign * top, [(sign * halves, 0.5)]
        for number in (middle + 1, middle + 2):
            yield sign * number, [(sign, 0.5)]
            yield sign * number, [(sign, 0.75)]
        for more in (0, 1, 2, 3):  # quarters of the last place, without bits below the first one
            yield sign * (top - more), [(sign * nearly[0], nearly[1])] * 2
            yield (
                sign * (top - more),
                [(0, 0), (sign * nearly[0], nearly[1]), (0, 0), (sign * nearly[0], nearly[1])],
            )


def _beyond_ties(digits: int, most: int) -> Iterable[Row]:
    """A product that is an odd number of halves and a little, added and taken away."""
    middle = 2 ** (digits - 1)
    found = ((m, _near_tie(m, most)) for m in NEAR)
    for m, (x, y) in ((m, factors) for m, factors in found if factors):
        low = m // 2
        for number, sign in ((middle + 4, 1), (middle + 5, 1), (-middle - 6, -1), (middle + 6, -1)):
            yield number, [(sign * x * 2.0 ** -(low + 1), y * 2.0 ** (low - m))]


def _little(digits: int) -> Iterable[Row]:
    """2^-d: alone, beside what cancels large terms, and beside a tie."""
    middle, below = 2 ** (digits - 1), FP32_DIGITS - digits
    (great, other), half = _power(digits - 1), (0.5, 1.0)
    for d in range(1 + below, 19 + below):
        y = 2.0 ** -min(d // 2, 14)  # both normal in FP16
        x = 2.0**-d / y
        yield middle, [(-great, other), (x, y)]
        yield 2 * middle - 2, [(-x, y)]
        yield -middle - 2, [(-x, y)]
        yield middle + 2, [half, (x, y)]
        yield middle + 3, [half, (-x, y)]


def _pairs(digits: int) -> Iterable[Row]:
    """Terms that are lost in a pair and not in an exact sum."""
    great, other = _power(digits)
    for sign in (1, -1):
        yield -sign * 2 ** (digits - 1), [(sign * great, other), (sign, 1.0)]
        yield -sign * 2 ** (digits - 1), [(sign * great, other), (sign, 3.0)]
        yield 5, [(sign * great, other), (0, 0), (sign, 1.0), (-sign * great, other)]
        yield 5, [(sign * great, other), (sign, 1.0), (sign, 1.0), (-sign * great, other)]


def _drawn(digits: int) -> Iterable[Row]:
    random = np.random.default_rng(digits)
    for _ in range(16):
        x, y = random.integers(-127, 128, TERMS), random.integers(1, 128, TERMS)
        shift = random.integers(-14, digits - 14, TERMS)
        yield (
            int(random.integers(-(2**digits) + 1, 2**digits)),
            [
                (float(p) * 2.0 ** int(s // 2), float(q) * 2.0 ** int(s - s // 2))
                for p, q, s in zip(x, y, shift, strict=True)
            ],
        )


def sums_of(fmt: str, digits: int = FP32_DIGITS) -> Experiment:
    """How the products of a step and the accumulator are added and rounded.

    Each row above is a row and a column of a program, and their element answers it; the other elements mix the factors of
    two questions. digits: of the accumulator; the narrow one is scaled up by 2^4, so that small products stay normal FP16.
    """
    rows = [
        *_ties(digits),
        *_beyond_ties(digits, 255 if fmt == "bf16" else 2047),
        *_little(digits),
        *_pairs(digits),
        *_drawn(digits),
    ]
    rows += rows[: -len(rows) % COLUMNS]
    programs = len(rows) // COLUMNS
    scale = 0 if digits == FP32_DIGITS else 4
    first = start(np.array([number for number, _ in rows]), scale, TERMS)
    a, b = np.zeros((len(rows), TERMS)), np.zeros((programs, TERMS, COLUMNS))
    for r, (_, products) in enumerate(rows):
        for k, (x, y) in enumerate(products):
            a[r, k], b[r // COLUMNS, k, r % COLUMNS] = x * 2.0**scale, y
    start_of = first[0].reshape(programs, COLUMNS, TERMS), np.broadcast_to(first[1], b.shape)
    name = f"sums_{fmt}" + (f"_{digits}_bits" if scale else "")
    asked = a.reshape(programs, COLUMNS, TERMS)
    return chain(name, fmt, np.stack([start_of[0], asked], 1), np.stack([start_of[1], b], 1))
