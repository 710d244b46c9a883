"""One requirement for results of every format: bits, a tolerance, or an acceptance rule with the thresholds of one format.

    need = Need(bits=12)                           # or Need(rtol=1e-3, atol=1e-5), or Need(rule="torch", fmt="fp32")
    need.judge(y, golden, compare(y, golden, "fp16")).passed

The acceptance rules of `acceptance.py` take the thresholds of each result's own format: FP16 may be wrong where FP32 may
not. That tells whether a kernel is right, and not which format is enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UsageError
from .acceptance import MIXED, MIXED_SHARE, MIXED_ULPS, SINGLE, TORCH, verdicts
from .formats import get_format
from .metrics import ErrorReport, pair

RULES: dict[str, Any] = {"torch": TORCH, "single-benchmark": SINGLE, "mixed-tolerance": MIXED}
MOST_BITS = 64
CHUNK = 1 << 20  # elements whose tolerance is computed at once


@dataclass(frozen=True)
class Kept:
    """What a need says of one result. factor: how many times too large the error is; up to 1 it passes, infinite where NaN
    or infinities differ."""

    passed: bool
    factor: float
    words: str


class KeptByOutput:
    """What has outputs that were asked to keep a need. kept: output -> what the need says of it, empty without one."""

    kept: Mapping[str, Kept]

    @property
    def passed(self) -> bool:
        """Whether every output keeps the need; False without one."""
        return bool(self.kept) and all(k.passed for k in self.kept.values())

    @property
    def factor(self) -> float:
        """How many times too large the error of the worst output is; up to 1 it passes."""
        return max((k.factor for k in self.kept.values()), default=math.inf)


@dataclass(frozen=True)
class Need:
    """bits: effective bits at least. rtol, atol: every element within atol + rtol |result|, 0 where one is left out.
    rule: torch, single-benchmark or mixed-tolerance, with the thresholds of `fmt` (fp16, bf16, fp32). One of the three.

    Raises `UsageError` for anything else.
    """

    bits: float | None = None
    rtol: float | None = None
    atol: float | None = None
    rule: str | None = None
    fmt: str | None = None

    def __post_init__(self) -> None:
        tolerance = self.rtol is not None or self.atol is not None
        if (self.bits is not None) + tolerance + (self.rule is not None) != 1:
            raise UsageError("a need is bits, or rtol and atol, or a rule; give one of them")
        if self.bits is not None and not 0 < _number("bits", self.bits) <= MOST_BITS:
            raise UsageError(f"bits is a number above 0 up to {MOST_BITS}, got {self.bits!r}")
        for name, x in (("rtol", self.rtol), ("atol", self.atol)):
            if x is not None and not 0 <= _number(name, x) < math.inf:
                raise UsageError(f"{name} is a number from 0, got {x!r}")
        if self.rule is not None and self.rule not in RULES:
            raise UsageError(f"unknown rule {self.rule!r}; known are {', '.join(RULES)}")
        if self.fmt is not None and (self.rule is None or self.fmt not in RULES[self.rule]):
            known = ", ".join(RULES[self.rule]) if self.rule else "those of a rule"
            raise UsageError(f"no thresholds for {self.fmt!r}; known are {known}")

    @property
    def tolerance(self) -> tuple[float, float] | None:
        """rtol and atol of every element; None for a need that is none."""
        if self.rule == "torch":
            return TORCH[self.fmt or "fp32"]
        return None if self.bits or self.rule else (self.rtol or 0.0, self.atol or 0.0)

    @property
    def words(self) -> str:
        """The need with its thresholds."""
        if self.bits is not None:
            return f"{self.bits:g} bits"
        fmt, within = self.fmt or "fp32", self.tolerance
        if within is not None:
            limit = f"|error| at most {within[1]:g} + {within[0]:g} |result| in every element"
            return f"torch ({fmt}): {limit}" if self.rule else limit
        if self.rule == "single-benchmark":
            below = f"MERE below {SINGLE[fmt]:.3g}, MARE below {10 * SINGLE[fmt]:.3g}"
            return f"{self.rule} ({fmt}): {below}, of |error| / (|result| + 1e-7)"
        rtol, atol, most = MIXED[fmt]
        return (
            f"{self.rule} ({fmt}): |error| at most {atol:.3g} + {rtol:.3g} |result| in {100 * MIXED_SHARE:g} % of the "
            f"elements, and nowhere above {most:g} or {MIXED_ULPS} ulp"
        )

    def judge(self, actual: NDArray[Any], golden: NDArray[Any], report: ErrorReport) -> Kept:
        """What it says of a result against one in float64; report: their comparison."""
        if not report.compared or not report.agrees:
            count = report.nan_mismatch + report.inf_mismatch
            why = f"NaN or infinity in {count:,} elements" if count else "no finite element"
            return Kept(False, math.inf, why)
        if self.bits is not None:
            bits = report.effective_bits
            factor = 2.0 ** min(1000.0, self.bits - bits) if bits > -math.inf else math.inf
            return Kept(bits >= self.bits, factor, f"{_apart(bits, self.bits)} bits")
        if self.tolerance is not None:
            factor = times_tolerance(actual, golden, *self.tolerance)
            return Kept(
                factor <= 1, factor, f"the largest error is {_apart(factor, 1)} times what is allowed"
            )
        found = next(v for v in verdicts(actual, golden, self.fmt or "fp32") if v.rule == self.rule)
        ratios = [x / found.thresholds[n] for n, x in found.measured.items()]
        words = ", ".join(f"{n.replace('_', ' ')} {x:.3g}" for n, x in found.measured.items())
        return Kept(found.passed is True, max(ratios), words)


def _apart(x: float, limit: float) -> str:
    """Three digits, or as many as tell it from the limit that it does not keep, or keeps."""
    texts = (f"{x:.{digits}g}" for digits in range(3, 18))
    return next((t for t in texts if x == limit or float(t) != limit), repr(x))


def _number(name: str, x: Any) -> float:
    if isinstance(x, bool) or not isinstance(x, int | float | np.number):
        raise UsageError(f"{name} is a number, got {x!r}")
    return float(x)


def times_tolerance(actual: NDArray[Any], golden: NDArray[Any], rtol: float, atol: float) -> float:
    """The largest |error| over atol + rtol |golden|, of the elements that are finite in both; 0 without an error."""
    a, g = pair(actual, golden)
    worst = 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for at in range(0, g.size, CHUNK):
            y, z = a[at : at + CHUNK].astype(np.float64), g[at : at + CHUNK].astype(np.float64)
            error = np.abs(y - z)
            error = np.where(error > 0, error / (atol + rtol * np.abs(z)), 0.0)  # NaN > 0 is False
            worst = max(worst, float(np.max(error, initial=0.0, where=np.isfinite(y) & np.isfinite(z))))
    return worst


def finest(dtypes: list[str]) -> str:
    """The format with the finest thresholds among data types, whose thresholds a rule takes for all."""
    found = [n for n in (get_format(d).name for d in dtypes) if n in TORCH]
    if not found:
        raise UsageError(
            f"no rule has thresholds for {', '.join(dtypes)}; say those of which type: {', '.join(TORCH)}"
        )
    return min(found, key=lambda n: TORCH[n][0])
