"""Sizes near one that does not fit, which are tried one after another.

What a kernel needs does not rise with a size at every step: first fit leaves holes, and rows, scratch and copies change
with the size in jumps. So a size fits only if it was tried, and none says anything about another one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

MOST_TRIED = 12  # powers of two
QUARTERS = (7, 6, 5)  # of the power that fits, up to the next one


def sizes_that_fit(now: int, fits: Callable[[int], bool], low: int = 1) -> list[int]:
    """The largest power of two below `now` that fits, and the largest of the sizes tried between it and the next.

    Where none below does, the next power above `now`. Empty if that has no room either.
    """
    below = next((n for n in _powers_below(now, low) if fits(n)), None)
    if below is None:
        above = 1 << now.bit_length()
        return [above] if fits(above) else []
    between = (below * q // 4 for q in QUARTERS)
    more = next((n for n in between if below < n < now and fits(n)), None)
    return [below] if more is None else [below, more]


def divisors_that_fit(now: int, whole: int, fits: Callable[[int], bool]) -> list[int]:
    """The largest divisor of `whole` below `now` that fits, of the largest that are tried, after the power of two below it
    where that divides and fits, too."""
    found = next((n for n in _divisors_below(now, whole)[:MOST_TRIED] if fits(n)), 0)
    power = 1 << max(0, found.bit_length() - 1)
    if found and power != found and whole % power == 0 and fits(power):
        return [power, found]
    return [found] if found else []


def _divisors_below(now: int, whole: int) -> list[int]:
    """The largest first."""
    small = [n for n in range(1, math.isqrt(whole) + 1) if whole % n == 0]
    return sorted({d for n in small for d in (n, whole // n) if d < now}, reverse=True)


def _powers_below(now: int, low: int) -> Iterator[int]:
    size = 1 << max(0, (now - 1).bit_length() - 1)
    for _ in range(MOST_TRIED):
        if size < max(1, low):
            return
        yield size
        size //= 2
