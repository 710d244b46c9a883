"""`assert_ulp`: results against what they should be, in units in the last place of their own format."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...simulator.errors import UsageError
from ...simulator.interpreter.tensors import as_array
from ...simulator.precision.formats import Format, get_format
from ...simulator.precision.metrics import ErrorReport, compare, is_comparable
from ...simulator.products.quantity import show

__tracebackhide__ = True  # pytest shows the line of the test
NAME = "assert_ulp"


def assert_ulp(got: Any, want: Any, max: float) -> None:
    """Fail unless every element of `got` is within `max` ulp of `want`.

    The ulp is that of the format of `got` at the value of `want`: 2^-10 at 1.0 in FP16. NaN has to stand where `want` has
    NaN, and an infinity where it has the same one, or a number so large that the format rounds it to that.

    Args:
        got: floating-point numbers of up to 32 bits: an array of numpy, also of ml_dtypes, or a torch CPU tensor.
        want: numbers of the same shape, at best in float64. max: 0 or more; 0.5 is what correct rounding gives.

    Raises:
        AssertionError: the text has the worst element, its index and both values, and how many are beyond `max`.
        UsageError: shapes differ, there is nothing to compare, or `got` is of no such format.
    """
    if isinstance(max, bool) or not isinstance(max, int | float) or not 0 <= max < math.inf:
        raise UsageError(f"{NAME}: max is a number of ulp, 0 or more, got {show(max)}")
    found, right = _array("got", got), _array("want", want)
    fmt = _format(found)
    if found.shape != right.shape:
        raise UsageError(f"{NAME}: got has shape {found.shape}, want has {right.shape}; they must be equal")
    report = compare(plain := _plain(found), _as_rounded(_plain(right), plain, fmt), fmt)
    if not report.agrees or report.max_ulp > max:
        raise AssertionError(_text(report, found, right, max))


def _array(role: str, given: Any) -> NDArray[Any]:
    array = as_array(role, given)
    if array is None:
        array = np.asarray(given)
    if array.dtype == object:
        raise UsageError(f"{NAME}: {role} is {type(given).__name__}; give an array or a CPU tensor")
    return array


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Types of ml_dtypes as float64, which holds all their values."""
    return array.astype(np.float64) if array.dtype.kind == "V" else array


def _as_rounded(want: NDArray[Any], got: NDArray[Any], fmt: Format) -> NDArray[Any]:
    """`want` with the infinity of `got` where its number is half an ulp or more above the largest of the format."""
    if want.dtype.kind not in "fiu" or not np.isinf(got).any():
        return want
    beyond = np.abs(want) >= float(fmt.max) + 0.5 * float(fmt.ulp(fmt.max))
    rounded = beyond & np.isinf(got) & (np.signbit(got) == np.signbit(want))
    return np.where(rounded, got, want)


def _format(array: NDArray[Any]) -> Format:
    try:
        fmt = get_format(array.dtype.name)
    except UsageError:
        fmt = None
    if fmt is None or not is_comparable(fmt):
        raise UsageError(
            f"{NAME}: got is {array.dtype}, which has no ulp of up to 32 bits; take numpy.testing for integers and float64"
        )
    return fmt


def _text(report: ErrorReport, got: NDArray[Any], want: NDArray[Any], most: float) -> str:
    lines = []
    if report.worst_index is not None and report.max_ulp > most:
        lines.append(
            f"{report.max_ulp:.4g} ulp at {_at(got, want, report.worst_index)}; at most {most:g} ulp are allowed"
        )
    if report.mismatch_index is not None:
        count = f"{report.nan_mismatch} NaN and {report.inf_mismatch} infinities on one side only"
        lines.append(f"{count}, first at {_at(got, want, report.mismatch_index)}")
    where = f"{report.fmt} of shape {list(report.shape)}"
    sizes = (
        f"max abs {report.max_abs:.3g}, max rel {report.max_rel:.3g}, 99.9 % within {report.p999_ulp:.3g} ulp"
    )
    return "\n".join([f"{where}: {'; '.join(lines)}", f"{report.exact} of {got.size} are exact, {sizes}"])


def _at(got: NDArray[Any], want: NDArray[Any], index: tuple[int, ...]) -> str:
    return f"{list(index)}: got {_value(got[index])}, want {_value(want[index])}"


def _value(x: Any) -> str:
    return repr(float(x))
