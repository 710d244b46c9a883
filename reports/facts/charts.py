"""What charts of pages and pictures share: scales from figures to places, bars of errors, what a front is drawn against."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...simulator.precision.metrics import ErrorReport, histogram_labels
from .texts import count

if TYPE_CHECKING:
    from ...tiling.results.exploration import Exploration, Found


@dataclass(frozen=True)
class Scale:
    """From figures low to high to pixels first to last, evenly or by logarithm."""

    low: float
    high: float
    first: float
    last: float
    log: bool = False

    def __call__(self, x: float) -> float:
        low, high, at = (math.log10(max(v, 1e-300)) if self.log else v for v in (self.low, self.high, x))
        return self.first + (self.last - self.first) * ((at - low) / (high - low) if high != low else 0.5)

    def ticks(self, most: int = 7) -> list[float]:
        """Round figures between both ends."""
        return _decades(self.low, self.high, most) if self.log else _steps(self.low, self.high, most)


def _steps(low: float, high: float, most: int) -> list[float]:
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low] if math.isfinite(low) else []
    raw = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(m * unit for m in (1, 2, 5, 10) if m * unit >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _decades(low: float, high: float, most: int) -> list[float]:
    a, b = math.log10(low), math.log10(high)
    every = max(1, math.ceil((b - a) / most))
    whole = [k for k in range(math.ceil(a - 1e-9), math.floor(b + 1e-9) + 1) if k % every == 0]
    if len(whole) >= 3 or every > 1:
        return [10.0**k for k in whole]
    between = (m * 10.0**k for k in range(math.floor(a), math.ceil(b) + 1) for m in (1, 2, 5))
    found = [x for x in between if low <= x <= high]
    return found if len(found) >= 3 else _steps(low, high, most)


def spread(values: Iterable[float], log: bool = False, room: float = 0.06) -> tuple[float, float]:
    """Ends for a scale that holds the finite of these figures (of a logarithmic one, those above 0), with some room."""
    found = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
    if not found:
        return (1.0, 10.0) if log else (0.0, 1.0)
    low, high = min(found), max(found)
    if log:
        factor = max((high / low) ** room, 1.3) if high / low < 1e300 else 10.0
        return low / factor, high * factor
    gap = (high - low) * room or abs(high) * 0.1 or 1.0
    return low - gap, high + gap


def short(x: float) -> str:
    """A figure at an axis: 0.01, 250, 2k, 3M, 1e-06."""
    if not 1e3 <= abs(x) < 1e18:
        return f"{x:.3g}"
    factor, letter = next(
        (f, n) for f, n in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")) if abs(x) >= f
    )
    return f"{x / factor:.3g}{letter}"


def power(exponent: int) -> str:
    """2 to the exponent, as it is written."""
    return "2" + str(exponent).translate(
        str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
    )


def named(label: str) -> str:
    """2^-3..2^-2 as its lower end, with a real exponent."""
    head, caret, exponent = label.partition("..")[0].partition("^")
    return f"{head.removesuffix('2')}{power(int(exponent))}" if caret else head


def populated(e: ErrorReport) -> list[tuple[str, int]]:
    """Bins from the exact one to the last that has elements, without empty ones at both ends."""
    labels = histogram_labels()
    if len(e.ulp_histogram) != len(labels):
        return []
    used = [k for k, n in enumerate(e.ulp_histogram) if n > 0]
    if not used:
        return []
    first = min((k for k in used if k), default=1)
    inner = range(first, max(used) + 1) if max(used) else range(0)
    return [(labels[k], e.ulp_histogram[k]) for k in (0, *inner) if k or e.ulp_histogram[0]]


ONLY_TIME = "Here only time differs, so the front is the fastest tiling"


def only_time(e: Exploration) -> bool:
    """Whether all tilings have one UB peak and one error, or none."""
    return len({(x.evaluation.ub_peak_bytes, x.evaluation.error) for x in e.ranked}) < 2


def other_axis(e: Exploration) -> tuple[str, Callable[[Found], float]] | None:
    """What stands beside time: kernels of the Cube alone use no UB. None where nothing else is known."""
    if len({x.evaluation.ub_peak_bytes for x in e.found}) > 1:
        return "KiB of UB at the peak", lambda x: (x.evaluation.ub_peak_bytes or 0) / 1024
    if not any(x.evaluation.bound_us for x in e.found):
        return None
    return "lower bound, us", lambda x: x.evaluation.bound_us or 0.0


def empty_cells(e: Exploration) -> str:
    """Why a tiling of the axes may have no result; empty where each has one."""
    refused, failed = sum(e.refused.values()), sum(e.failed.values())
    why = ["a rule refuses them"] if refused else []
    if e.evaluated + failed < e.legal:
        bound = "as their bound was above the best" if e.optimal else "the sweep did without them"
        why.append(f"they were not evaluated, {bound}")
    why += [f"they are among the {count(failed)} that were tried and failed"] if failed else []
    return f"Tilings of empty cells have no result: {'; or '.join(why)}." if why else ""
