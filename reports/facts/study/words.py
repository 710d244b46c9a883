"""Words of a precision study that every view of it has: what its figures mean, and the tilings of its rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ....kernels.study.results import ModeRow, Study
from ....simulator.precision.acceptance import MIXED, MIXED_SHARE, SINGLE
from ..texts import clean

BITS = (
    "bits: -log2(mean |error| / mean |result|): so many leading bits of a result of mean size are right; 10 bits are 3 "
    "decimal digits."
)
ULP = (
    "ulp: the distance of neighbouring numbers of the output's type where the result is. Near 0 they are dense: a sum that "
    "cancels may be wrong by thousands of ulp beside others that have all their bits."
)
REFERENCES = (
    "exact: against float64 of the inputs before any rounding, what the mode loses; rounded: against float64 of the inputs "
    "as they are multiplied, what the kernel adds."
)
RULES = (
    "Acceptance rules have thresholds for each type, and each row is judged by those of its own: they tell whether a kernel "
    "is right, for which the rounded inputs are meant, and not which mode is enough (--need, --rtol, --atol, --rule judge "
    "all rows alike). MERE, MARE: mean and largest |error| / (|result| + 1e-7). "
    "(a) single-benchmark: MERE < T, MARE < 10 T, T = {}. "
    "(b) mixed-tolerance: {:g} % of the elements within atol + rtol |result|, rtol/atol = {}."
)
MOST_TIMES = 1000  # from which on an error is only told to be larger
NEED = (
    "need: against the exact inputs, with the same thresholds for every row; no 3x is an error three times too large. "
    "With several seeds it is that of the worst one, the bits are of the first. "
    "MERE, MARE: mean and largest |error| / (|result| + 1e-7)."
)
UNDER = "under: became zero, or subnormal in the output's type, though the exact result is not zero."


def rules_text() -> str:
    """The acceptance rules with the thresholds of each type."""
    single = ", ".join(f"{n} {_power(x)}" for n, x in SINGLE.items())
    mixed = ", ".join(f"{n} {_power(rtol)}/{_power(atol)}" for n, (rtol, atol, _) in MIXED.items())
    return RULES.format(single, 100 * MIXED_SHARE, mixed)


def _power(x: float) -> str:
    return f"2^{math.log2(x):g}"


def kept_text(row: ModeRow, name: str) -> str:
    """ "yes", "no 1.5x", "no" where a NaN is wrong; "-" for an output that nothing was asked of."""
    kept = row.kept.get(name)
    if kept is None or kept.passed or math.isinf(kept.factor):
        return "-" if kept is None else "yes" if kept.passed else "no"
    if kept.factor >= MOST_TIMES:
        return f"no >{MOST_TIMES - 1}x"
    if kept.factor < 1.05:
        return f"no {max(1.01, kept.factor):.2f}x"
    return f"no {kept.factor:.2g}x" if kept.factor < 100 else f"no {kept.factor:.0f}x"


def tiling_text(tiling: Mapping[str, Any], names: Iterable[str] | None = None) -> str:
    """block_m=64 block_n=128; of the knobs that are named, all without names."""
    chosen = tiling if names is None else [n for n in names if n in tiling]
    return clean(" ".join(f"{n}={tiling[n]}" for n in chosen), 400)


def knobs_apart(rows: Sequence[ModeRow]) -> tuple[dict[str, Any], list[str]]:
    """The knobs that all rows have in common, and the names of those that differ."""
    tilings = [r.tiling for r in rows if r.tiling]
    names = dict.fromkeys(n for t in tilings for n in t)
    common = {n: tilings[0].get(n) for n in names if all(t.get(n) == tilings[0].get(n) for t in tilings)}
    return common, [n for n in names if n not in common]


def tiling_line(study: Study) -> str:
    """The tiling of all rows, or what those of each have in common; "" where none is known, as of older records."""
    if study.tiling is not None:
        return f"the same in all rows: {tiling_text(study.tiling)}"
    common, different = knobs_apart(study.rows)
    if not common and not different:
        return ""
    alike = f"; alike are {tiling_text(common)}" if common else ""
    return f"each row its own best{alike}"
