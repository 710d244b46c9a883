"""The field's acceptance rules for one output: thresholds as data, verdicts in numbers and words.

    for verdict in verdicts(y, golden, "fp16", reference=y_of_another_device):
        print(verdict.words)

`golden` is a float64 result. Computed from the operands as the Cube sees them it tests the kernel; computed
from the unrounded inputs it tells what a precision mode costs, and rules with a relative error then mostly
judge the cancellation in the data: compare modes by effective bits, RMSE and the dual-benchmark ratios
instead.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _metrics
from .formats import Format, get_format
from .metrics import SMALL_VALUES, ErrorReport, compare, json_value, pair

# (a) MERE < T and MARE < 10 T. cannbot-skills, ops/ops-precision-standard, operator precision standards;
# the same numbers in cann/cann-bench, docs/design/precision_comparison_design.md.
SINGLE: dict[str, float] = {"fp16": 2.0**-10, "bf16": 2.0**-7, "fp32": 2.0**-13, "hf32": 2.0**-11}

# (b) rtol, atol, constant part of the limit on the largest absolute error (or 32 ulp, whichever is more:
# assumed, the text says "or"); 99 % of the elements must pass. hicann/opbase,
# docs/zh/ops_precision_standard/experimental_standard.md.
MIXED: dict[str, tuple[float, float, float]] = {
    "fp16": (2.0**-9, 2.0**-9, 1e-1),
    "bf16": (2.0**-6, 2.0**-6, 1.0),
    "fp32": (2.0**-10, 2.0**-16, 1e-2),
    "hf32": (2.0**-9, 2.0**-10, 1e-1),
}
MIXED_SHARE = 0.99
MIXED_ULPS = 32

# (c) largest ratios of MARE, MERE, RMSE to those of a reference device on the same golden, and the number
# of test cases that a campaign needs. Operator precision standard 2.1, section 4.5, as carried in
# cannbot-skills.
DUAL: dict[str, tuple[float, float, float, int]] = {
    "L0": (10, 2, 2, 5_000),
    "L1": (5, 1.5, 1.5, 10_000),
    "L2": (2, 1.2, 1.2, 30_000),
}
DUAL_SMALL_ERRORS = 2  # largest ratio of small-value error counts, same source

# (d) rtol, atol of torch.testing.assert_close: pytorch/pytorch, torch/testing/_comparison.py.
TORCH: dict[str, tuple[float, float]] = {"fp16": (1e-3, 1e-5), "bf16": (1.6e-2, 1e-5), "fp32": (1.3e-6, 1e-5)}


_Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """What one rule says of one output."""

    rule: str
    fmt: str  # whose thresholds
    passed: bool | None  # None: no element is finite on both sides and none disagrees, so nothing was judged
    measured: dict[str, float]
    thresholds: dict[str, float]
    words: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is not finite becomes the string "NaN", "Infinity" or "-Infinity"."""
        return {key: json_value(value) for key, value in asdict(self).items()}


def verdicts(
    actual: ArrayLike,
    golden: ArrayLike,
    fmt: str | Format,
    reference: ArrayLike | None = None,
    *,
    compute: str | Format | None = None,
    infinities: bool = True,
) -> tuple[RuleVerdict, ...]:
    """Every rule that has thresholds for this output; the dual-benchmark rule needs `reference`.

    `fmt` is the format of the output, `compute` that of the calculation if it sets the thresholds (hf32).
    NaN and infinities of the golden must be met by the same; `infinities=False` leaves infinities out of
    that, as the standard does on Atlas training products and wherever the inf/NaN mode is off.
    """
    target = get_format(fmt)
    report = compare(actual, golden, target, compute=compute)
    a, g = pair(actual, golden)
    case = _Case(report, a, g, infinities)
    found = [_single(case), _mixed(case), _torch(case, target)]
    if reference is not None and report.compute in SMALL_VALUES:
        other = compare(reference, golden, target, compute=compute)
        found += [_dual(case, other, level) for level in DUAL]
    return tuple(v for v in found if v is not None)


@dataclass(frozen=True, slots=True)
class _Case:
    report: ErrorReport
    actual: NDArray[Any]
    golden: NDArray[Any]
    infinities: bool

    def failing_share(self, rtol: float, atol: float) -> float:
        if not self.report.compared:
            return math.nan
        return int(_metrics.count_outside(self.actual, self.golden, rtol, atol)) / self.report.compared

    def ulp_at_worst(self) -> float:
        """The ulp of the golden value whose error is largest (assumed: the standard names no place)."""
        where = self.report.max_abs_index
        if where is None:
            return 0.0
        golden = self.golden[np.ravel_multi_index(where, self.report.shape)]
        return float(get_format(self.report.compute).ulp(golden))

    def mismatches(self) -> int:
        return self.report.nan_mismatch + (self.report.inf_mismatch if self.infinities else 0)

    def verdict(
        self,
        rule: str,
        fmt: str,
        measured: _Figures,
        limits: _Figures,
        below: bool = False,
        **constants: float,
    ) -> RuleVerdict:
        """Passed if NaN and infinities agree and every figure keeps its limit; nothing to judge is no pass."""
        signs = ("<", ">=") if below else ("<=", ">")
        broken = {k: value >= limits[k] if below else value > limits[k] for k, value in measured.items()}
        facts = [f"{k} {value:.3g} {signs[broken[k]]} {limits[k]:.3g}" for k, value in measured.items()]
        facts += self._special_facts()
        passed: bool | None = not any(broken.values()) and not self.mismatches()
        if passed and not self.report.compared:
            passed = None
        outcome = {True: "passed", False: "failed", None: "judged nothing"}[passed]
        words = f"{rule} ({fmt}) {outcome}: {'; '.join(facts)}"
        return RuleVerdict(rule, fmt, passed, measured, {**limits, **constants}, words)

    def _special_facts(self) -> list[str]:
        facts = []
        if self.report.compared == 0:
            facts.append("no element is finite on both sides")
        if self.mismatches():
            where = f", first at {self.report.mismatch_index}" if self.infinities else ""
            facts.append(f"NaN or infinity differs in {self.mismatches()} elements{where}")
        return facts


def _single(case: _Case) -> RuleVerdict | None:
    fmt = case.report.compute
    if fmt not in SINGLE:
        return None
    measured = {"mere": case.report.mean_rel, "mare": case.report.max_rel}
    limits = {"mere": SINGLE[fmt], "mare": 10 * SINGLE[fmt]}
    return case.verdict("single-benchmark", fmt, measured, limits, below=True)


def _mixed(case: _Case) -> RuleVerdict | None:
    fmt = case.report.compute
    if fmt not in MIXED:
        return None
    rtol, atol, constant = MIXED[fmt]
    measured = {"failing_share": case.failing_share(rtol, atol), "max_abs": case.report.max_abs}
    limits = {
        "failing_share": 1 - MIXED_SHARE,
        "max_abs": max(constant, MIXED_ULPS * case.ulp_at_worst()),
    }
    return case.verdict("mixed-tolerance", fmt, measured, limits, rtol=rtol, atol=atol)


def _torch(case: _Case, fmt: Format) -> RuleVerdict:
    stored = get_format(fmt.dtype).name  # torch knows no HF32 or TF32 tensors
    rtol, atol = TORCH[stored]
    measured = {"failing_share": case.failing_share(rtol, atol)}
    return case.verdict("torch", stored, measured, {"failing_share": 0.0}, rtol=rtol, atol=atol)


def _dual(case: _Case, other: ErrorReport, level: str) -> RuleVerdict:
    mine = case.report
    mare, mere, rmse, cases = DUAL[level]
    floor = SMALL_VALUES[mine.compute][1]
    measured = {
        "mare_ratio": _ratio(mine.max_rel_large, other.max_rel_large, floor),
        "mere_ratio": _ratio(mine.mean_rel_large, other.mean_rel_large, floor),
        "rmse_ratio": _ratio(mine.rmse, other.rmse, floor),
        "small_errors_ratio": mine.small_errors / max(other.small_errors, 1),
    }
    limits = dict(zip(measured, (mare, mere, rmse, DUAL_SMALL_ERRORS), strict=True))
    return case.verdict(f"dual-benchmark {level}", mine.compute, measured, limits, cases=cases)


def _ratio(mine: float, other: float, floor: float) -> float:
    """Metric over metric; the small-value error threshold is the least denominator."""
    return mine / (floor if math.isnan(other) else max(other, floor))


Verdict = RuleVerdict  # its first name, for those who import it; the judge's `Verdict` is of a whole answer
