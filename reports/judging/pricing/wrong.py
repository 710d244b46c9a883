"""Where an output is wrong, in words: a pattern of the wrong elements points to what makes them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

MOST = 1 << 22  # elements that are looked at
MOSTLY = 0.99  # of the elements
NEAR = 1e-2  # relative, of what is the same but for precision
Array = np.ndarray


def pattern(got: Array, want: Array, bad: Array) -> str:
    """A clause about the wrong elements ("elements from 4,032 on along axis 1 are wrong ..."); "" where nothing stands out.

    got, want: of one shape, real numbers; bad: which elements are beyond the tolerance. Large arrays are not looked at.
    """
    if not bad.any() or bad.size > MOST or bad.shape != got.shape:
        return ""
    g, w = np.asarray(got, np.float64), np.asarray(want, np.float64)
    return next((found for rule in RULES if (found := rule(g, w, bad))), "")


def _not_finite(got: Array, want: Array, bad: Array) -> str:
    odd = bad & ~np.isfinite(got) & np.isfinite(want)
    if odd.sum() < MOSTLY * bad.sum():
        return ""
    return "wrong elements are NaN or infinite: a masked load without other=, an overflow, or memory that nobody wrote"


def _zeros(got: Array, want: Array, bad: Array) -> str:
    return "wrong elements are 0: no program writes them" if not got[bad].any() else _constant(got, bad)


def _constant(got: Array, bad: Array) -> str:
    values = got[bad]
    same = bad.sum() > 1 and bool((values == values[0]).all())
    return f"wrong elements are all {values[0]:.6g}" if same else ""


def _along(bad: Array, axis: int) -> Array:
    """Whether any element is wrong at each index of an axis."""
    return np.asarray(bad.any(axis=tuple(a for a in range(bad.ndim) if a != axis)))


def _tail(got: Array, want: Array, bad: Array) -> str:
    """Wrong from some index on along one axis, right before."""
    for axis, n in enumerate(bad.shape):
        line = _along(bad, axis)
        first = int(np.argmax(line))
        if first and line[first:].all() and not line[:first].any():
            return (
                f"elements from {first:,} on along axis {axis} (of {n:,}) are wrong, those before are right: the last "
                "tile lacks its mask, or no program comes to it"
            )
    return ""


def _head(got: Array, want: Array, bad: Array) -> str:
    """Wrong before some index along one axis."""
    for axis, n in enumerate(bad.shape):
        line = _along(bad, axis)
        last = n - int(np.argmax(line[::-1]))
        if last < n and line[:last].all():
            return f"elements before {last:,} along axis {axis} (of {n:,}) are wrong, those from there on are right"
    return ""


def _periodic(got: Array, want: Array, bad: Array) -> str:
    """Every k-th along the flat order, from one on."""
    at = np.flatnonzero(bad)
    steps = np.diff(at)
    if len(at) < 3 or steps[0] < 2 or (steps != steps[0]).any():
        return ""
    return f"every {int(steps[0]):,}th element from {int(at[0]):,} on is wrong, in the order of memory"


def _transposed(got: Array, want: Array, bad: Array) -> str:
    if got.ndim < 2 or got.shape[-1] != got.shape[-2]:
        return ""
    same = _near(got, np.swapaxes(want, -1, -2))
    return "the last two axes are swapped: it is the transposed result" if same else ""


def _scaled(got: Array, want: Array, bad: Array) -> str:
    there = np.abs(want) > NEAR * np.abs(want).max(initial=0.0)
    ratio = float(np.median(got[there] / want[there])) if there.any() else math.nan
    if not math.isfinite(ratio) or abs(ratio - 1) < NEAR or not _near(got, ratio * want):
        return ""
    if not ratio:
        return "all of it is 0: something is rounded down, masked out or never added"
    return f"all elements are {ratio:.6g} times what they should be: a factor or a divisor is missing"


def _shifted(got: Array, want: Array, bad: Array) -> str:
    with np.errstate(invalid="ignore"):
        errors = got - want
        shift = float(np.median(errors))
        if (
            not shift
            or not math.isfinite(shift)
            or np.mean(np.abs(errors - shift) <= NEAR * abs(shift)) < MOSTLY
        ):
            return ""
    return f"all elements are off by {shift:.6g}: a term is missing"


def _imprecise(got: Array, want: Array, bad: Array) -> str:
    """Near by the largest element, and most wrong ones by their own size: not so what should be 0."""
    if not _near(got, want) or np.mean(np.abs(got - want)[bad] <= NEAR * np.abs(want)[bad]) < 0.5:
        return ""
    return "elements are near, but not near enough: add up in float32, and cast only what is stored"


def _near(a: Array, b: Array) -> bool:
    scale = np.abs(b).max(initial=0.0)
    with np.errstate(invalid="ignore"):
        return bool((np.abs(a - b) <= NEAR * scale).mean() >= MOSTLY)


RULES: tuple[Callable[[Array, Array, Array], str], ...] = (
    _not_finite, _shifted, _imprecise, _transposed, _scaled, _tail, _head, _periodic, _zeros,
)  # fmt: skip
