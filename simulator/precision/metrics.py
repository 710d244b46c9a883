"""How wrong a result is: one comparison with a golden result, as one record.

    report = compare(y, golden, "fp16")
    report.max_ulp, report.effective_bits, report.mean_rel

Formulas are those of the vendor's operator precision standards (hicann/opbase,
docs/zh/ops_precision_standard; cannbot-skills, ops/ops-precision-standard), where `max_rel` is called MARE,
`mean_rel` MERE, `error_balance` EB.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import UsageError
from . import _metrics
from .formats import BF16, FP16, Format, get_format
from .places import ErrorPlaces, places
from .rounding import decode

# Golden values below the first figure are of the small-value domain, where relative errors mean nothing;
# there an absolute error above the second counts as one error. Operator precision standard 2.1, as carried
# in cannbot-skills, ops/ops-precision-standard.
SMALL_VALUES: dict[str, tuple[float, float]] = {
    "fp16": (2.0**-11, 2.0**-16),
    "bf16": (2.0**-8, 2.0**-16),
    "fp32": (2.0**-14, 2.0**-30),
    "hf32": (2.0**-12, 2.0**-28),
}

COMPARABLE = ("fp16", "bf16", "fp32", "hf32", "tf32")

# Bins of the histogram: exact; below 2^-8 ulp; then an octave each, the first from 2^-8; last: 2^24 ulp and
# above.
HISTOGRAM_EXPONENTS = range(-8, 24)

_WORDS = {math.inf: "Infinity", -math.inf: "-Infinity"}
_NUMBERS = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """Errors of one array against its golden. Figures of size cover the elements that are finite in both.

    An element that is NaN or infinite on one side only, or infinite with another sign, is counted as a
    mismatch and has no size. With nothing to compare every figure of size is NaN.
    """

    fmt: str  # format whose ulp is the unit
    compute: str  # format whose thresholds apply: hf32 for HF32 products stored as FP32
    shape: tuple[int, ...]
    compared: int  # elements that are finite in both
    exact: int  # elements without any error
    max_abs: float
    mean_abs: float
    max_rel: float  # MARE: max of abs(a - g) / (abs(g) + 1e-7)
    mean_rel: float  # MERE: mean of the same
    rmse: float
    max_ulp: float  # abs(a - g) / ulp(g)
    p999_ulp: float  # the smallest error that at least 99.9 % of the elements do not exceed
    effective_bits: float  # -log2(mean abs(a - g) / mean abs(g)); Infinity if all are exact
    cosine: float  # NaN if one side is all zeros; hides relative errors below about 1e-4
    error_balance: float  # mean of (a - g) / max(abs(g), 1): not zero where rounding is biased
    worst_index: tuple[int, ...] | None  # where max_ulp is
    max_abs_index: tuple[int, ...] | None
    mismatch_index: tuple[int, ...] | None  # first nan or inf mismatch
    overflow: int  # finite golden too large for fmt, or met by an infinity
    nan: int  # actual NaN
    underflow: int  # golden not zero, actual zero
    subnormal: int  # actual subnormal in fmt
    nan_mismatch: int
    inf_mismatch: int
    small_share: float  # share of the elements in the small-value domain
    small_errors: int  # errors counted there
    max_rel_large: float  # MARE and MERE without that domain; NaN if nothing is left
    mean_rel_large: float
    ulp_histogram: tuple[int, ...]  # see histogram_labels()
    places: ErrorPlaces | None = None  # None where they were not asked for

    @property
    def agrees(self) -> bool:
        """NaN and infinities are where the golden has them."""
        return self.nan_mismatch == 0 and self.inf_mismatch == 0

    def __repr__(self) -> str:
        """One line; `to_dict` has all."""
        sizes = f"max abs {self.max_abs:.3g}, max rel {self.max_rel:.3g}, rmse {self.rmse:.3g}, max ulp {self.max_ulp:.3g}"
        odd = (
            ""
            if self.agrees
            else f", {self.nan_mismatch} NaN and {self.inf_mismatch} infinities on one side only"
        )
        return f"<ErrorReport {self.fmt} {self.shape}: {sizes}, {self.effective_bits:.3g} bits{odd}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is not finite becomes the string "NaN", "Infinity" or "-Infinity"."""
        return {key: json_value(value) for key, value in asdict(self).items() if key != "places" or value}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ErrorReport:
        """The report that `to_dict` wrote."""
        names = [f.name for f in fields(cls) if f.name != "places"]
        if set(values) - {"places"} != set(names):
            wrong = sorted((set(values) - {"places"}) ^ set(names))
            raise UsageError(f"ErrorReport.from_dict: keys missing or unknown: {', '.join(wrong)}")
        found = ErrorPlaces.from_dict(values["places"]) if values.get("places") else None
        return cls(**{name: _from_json(values[name]) for name in names}, places=found)


def json_value(value: Any) -> Any:
    """A float, or what holds floats, without the NaN and Infinity literals that JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return _WORDS.get(value, "NaN")
    if isinstance(value, (tuple, list)):
        return [json_value(v) for v in value]
    if isinstance(value, dict):
        return {k: json_value(v) for k, v in value.items()}
    return value


def _from_json(value: Any) -> Any:
    if isinstance(value, str):
        return _NUMBERS.get(value, value)
    return tuple(value) if isinstance(value, list) else value


def histogram_labels() -> tuple[str, ...]:
    """What each bin of `ulp_histogram` holds, in ulp."""
    octaves = (f"2^{e}..2^{e + 1}" for e in HISTOGRAM_EXPONENTS)
    return ("0", f"<2^{HISTOGRAM_EXPONENTS.start}", *octaves, f">=2^{HISTOGRAM_EXPONENTS.stop}")


def compare(
    actual: ArrayLike,
    golden: ArrayLike,
    fmt: str | Format,
    *,
    compute: str | Format | None = None,
    where: bool = False,
) -> ErrorReport:
    """Errors of `actual` against `golden`, in ulp of `fmt`.

    Both of one shape, any strides; float16, bfloat16, float32 or float64 (other numbers become float64).
    `compute`: the format of the calculation if it is not `fmt`, for the thresholds of the small-value
    domain. `where`: whether to look where the errors are, too (`ErrorReport.places`).
    """
    target = _comparable(fmt)
    basis = target if compute is None else _comparable(compute)
    shape = np.shape(actual)
    a, g = pair(actual, golden)
    bins = np.zeros(_metrics.FINE_BIN_COUNT, np.int64)
    limits = _limits(target, basis)
    totals = _metrics.measure(a, g, bins, limits)
    return ErrorReport(
        fmt=target.name,
        compute=basis.name,
        shape=shape,
        p999_ulp=_ulp_at_rank(a, g, bins, limits, totals),
        ulp_histogram=_histogram(bins, int(totals["exact"])),
        places=places(a, g, shape, limits) if where else None,
        **_sizes(totals),
        **_counts(totals, shape),
    )


def pair(actual: ArrayLike, golden: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Two arrays of one shape as flat float32 or float64."""
    a, g = np.asarray(actual), np.asarray(golden)
    if a.shape != g.shape:
        raise UsageError(f"compare: actual has shape {a.shape}, golden has {g.shape}; they must be equal")
    if a.size == 0:
        raise UsageError(f"compare: nothing to compare in arrays of shape {a.shape}")
    return _flat("actual", a), _flat("golden", g)


def _flat(role: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype in (FP16.dtype, BF16.dtype):
        array = decode(array)
    elif array.dtype not in (np.float32, np.float64):
        if array.dtype.kind not in "fbiu":
            raise UsageError(f"compare: {role} is {array.dtype}; give floating-point numbers or integers")
        array = array.astype(np.float64)
    return np.require(array, array.dtype.newbyteorder("="), ["C", "A"]).reshape(-1)


def _comparable(fmt: str | Format) -> Format:
    found = get_format(fmt)
    if not is_comparable(found):
        known = ", ".join(COMPARABLE)
        raise UsageError(
            f"compare: no error metrics for {found}: known are {known} and other floats up to 32 bits"
        )
    return found


def is_comparable(fmt: Format) -> bool:
    """Whether errors can be counted in its ulp; in a tapered format that is the finest one of each exponent."""
    return fmt.is_float and fmt.bits <= 32


def _limits(fmt: Format, compute: Format) -> dict[str, float]:
    small_below, small_error = SMALL_VALUES.get(compute.name, (0.0, 0.0))
    return {
        "mantissa": fmt.mantissa,
        "min_normal": fmt.min_normal,
        "overflow_from": float(fmt.max) + 0.5 * float(fmt.ulp(fmt.max)),
        "small_below": small_below,
        "small_error": small_error,
    }


def _ulp_at_rank(
    a: NDArray[Any],
    g: NDArray[Any],
    bins: NDArray[np.int64],
    limits: dict[str, float],
    totals: dict[str, float],
) -> float:
    """The 99.9th percentile, exactly: the fine histogram tells the bin, and only that bin is sorted."""
    n = int(totals["compared"])
    if n == 0:
        return math.nan
    rank = -(-999 * n // 1000) - 1
    if rank < totals["exact"]:
        return 0.0
    upto = np.cumsum(bins)
    which = int(np.searchsorted(upto, rank, side="right"))
    errors = np.empty(bins[which])
    _metrics.collect_bin(a, g, errors, which, limits)
    place = rank - int(upto[which] - bins[which])
    return float(np.partition(errors, place)[place])


def _histogram(bins: NDArray[np.int64], exact: int) -> tuple[int, ...]:
    octaves = bins.reshape(-1, _metrics.FINE_BINS_PER_OCTAVE).sum(axis=1)
    low = HISTOGRAM_EXPONENTS.start - _metrics.FINE_LOWEST_EXPONENT
    high = HISTOGRAM_EXPONENTS.stop - _metrics.FINE_LOWEST_EXPONENT
    middle = (int(count) for count in octaves[low:high])
    return (exact, int(octaves[:low].sum()) - exact, *middle, int(octaves[high:].sum()))


def _sizes(t: dict[str, float]) -> dict[str, Any]:
    n = t["compared"]
    if n == 0:
        sizes = (f.name for f in fields(ErrorReport) if f.type == "float")
        return {name: math.nan for name in sizes if name != "p999_ulp"}  # which is found from the bins
    large = n - t["small"]
    norms = math.sqrt(t["sum_actual_squares"]) * math.sqrt(t["sum_golden_squares"])
    return {
        "max_abs": t["max_abs"],
        "mean_abs": t["sum_abs"] / n,
        "max_rel": t["max_rel"],
        "mean_rel": t["sum_rel"] / n,
        "rmse": math.sqrt(t["sum_squares"] / n),
        "max_ulp": t["max_ulp"],
        "effective_bits": _bits(t["sum_abs"], t["sum_golden"]),
        "cosine": t["sum_product"] / norms if norms else math.nan,
        "error_balance": t["sum_balance"] / n,
        "small_share": t["small"] / n,
        "max_rel_large": t["max_rel_large"] if large else math.nan,
        "mean_rel_large": t["sum_rel_large"] / large if large else math.nan,
    }


def _bits(error: float, size: float) -> float:
    if error == 0:
        return math.inf
    return math.log2(size) - math.log2(error) if size else -math.inf


def _counts(t: dict[str, float], shape: tuple[int, ...]) -> dict[str, Any]:
    names = ("compared", "exact", "overflow", "underflow", "subnormal", "nan", "nan_mismatch", "inf_mismatch")
    counts: dict[str, Any] = {name: int(t[name]) for name in (*names, "small_errors")}
    places = {"worst_index": "max_ulp_at", "max_abs_index": "max_abs_at", "mismatch_index": "mismatch_at"}
    for name, key in places.items():
        at = int(t[key])
        counts[name] = None if at < 0 else tuple(int(i) for i in np.unravel_index(at, shape))
    return counts
