"""Outputs of an answer against those of the task, element by element, in blocks.

Errors are those against the reference in float64. What passes is said by the benchmark's rule, whose reference is the task
in its own dtypes: an element that is near to either passes, so that an answer which rounds less often than the task is not
wrong for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....simulator.errors import UsageError
from ....simulator.precision.formats import Format, get_format
from ....simulator.precision.metrics import compare, is_comparable
from ..pricing.wrong import MOST, pattern
from ..verdict import ComparedOutput, Tolerance

BLOCK = 1 << 20  # elements
Flat = np.ndarray  # one dimension


@dataclass
class _Totals:
    """What the blocks add up to. worst: place of max_abs, flat; with the two values there."""

    compared: int = 0
    sum_abs: float = 0.0
    max_abs: float = 0.0
    max_rel: float = 0.0
    max_ulp: float = 0.0
    worst: int | None = None
    got: float = math.nan
    want: float = math.nan
    outside: int = 0
    mismatched: int | None = None  # the first place where NaN or infinities differ


def compared_output(
    name: str, got: np.ndarray, want: np.ndarray, exact: np.ndarray, rule: Tolerance
) -> ComparedOutput:
    """One output. want: of the task in its own dtypes; exact: of the task in float64, or `want` again.

    What differs from `want` in shape or dtype does not pass, and has no errors, unless the rule is one of elements alone.
    """
    other = other_form((got.shape, got.dtype.name), (want.shape, want.dtype.name))
    found = ComparedOutput(
        name=name,
        shape=got.shape,
        dtype=got.dtype.name,
        elements=want.size,
        checked=0,
        tolerance=rule,
        passed=False,
    )
    if other and not (rule.any_form and got.size == want.size):
        return replace(found, message=f"{name} {other}")
    want, exact = want.reshape(got.shape), exact.reshape(got.shape)
    totals = _totals(as_flat(got), as_flat(want), as_flat(exact), rule)
    told = with_note(_told(found, totals, want), other)
    where = "" if told.passed else pattern(got, want, _beyond(got, want, exact, rule))
    return replace(told, message=f"{told.message}; {where}") if where else told


OutputForm = tuple[tuple[int, ...], str]  # shape, and dtype in numpy's words


def other_form(got: OutputForm, want: OutputForm) -> str:
    """What differs between the forms of two outputs, the name of the output left out; "" where nothing does."""
    (shape, dtype), (wanted_shape, wanted_dtype) = got, want
    if shape != wanted_shape:
        return f"has shape {list(shape)}, the task's has {list(wanted_shape)}"
    return "" if dtype == wanted_dtype else f"is {dtype}, the task's is {wanted_dtype}"


def with_note(found: ComparedOutput, other: str) -> ComparedOutput:
    """An output that passed although it has another form, with words about that."""
    if not (other and found.passed):
        return found
    whose = found.tolerance.source.partition(":")[0]
    return replace(found, message=f"{found.name} {other}: {whose} compares elements alone")


def _beyond(got: np.ndarray, want: np.ndarray, exact: np.ndarray, rule: Tolerance) -> np.ndarray:
    """Which elements do not pass, of real numbers; none of others, which have no patterns."""
    if want.dtype.kind in "cb" or want.size > MOST:
        return np.zeros(want.shape, bool)
    bad: np.ndarray = ~(_near(got, want, rule) | _near(got, exact, rule))
    return bad


def checked_positions(
    name: str,
    form: OutputForm,
    positions: Sequence[int],
    values: tuple[Flat, Flat, Flat],
    rule: Tolerance,
) -> ComparedOutput:
    """As `compared_output`, of some flat positions of an output of that shape and dtype: got, want, exact there."""
    shape, dtype = form
    totals = _totals(*values, rule)
    if totals.worst is not None:
        totals.worst = int(positions[totals.worst])
    if totals.mismatched is not None:
        totals.mismatched = int(positions[totals.mismatched])
    found = ComparedOutput(
        name=name,
        shape=shape,
        dtype=dtype,
        elements=math.prod(shape),
        checked=0,
        tolerance=rule,
        passed=False,
    )
    return _told(found, totals, values[1], len(positions))


def _told(
    found: ComparedOutput, totals: _Totals, want: np.ndarray, checked: int | None = None
) -> ComparedOutput:
    n = want.size if checked is None else checked
    passed = totals.mismatched is None and totals.outside <= int(n * found.tolerance.outside)
    worst = totals.worst if totals.worst is not None else totals.mismatched
    place = None if worst is None else tuple(int(k) for k in np.unravel_index(worst, found.shape))
    known = totals.compared > 0
    told = replace(
        found,
        checked=n,
        passed=passed,
        outside=totals.outside,
        worst=place,
        max_abs=totals.max_abs if known else None,
        max_rel=totals.max_rel if known else None,
        mean_abs=totals.sum_abs / totals.compared if known else None,
        max_ulp=totals.max_ulp if known and ulp_format(found.dtype) is not None else None,
        got=totals.got if known else None,
        want=totals.want if known else None,
    )
    return told if passed else replace(told, message=_why(told, totals))


def _why(told: ComparedOutput, totals: _Totals) -> str:
    if totals.mismatched is not None:
        place = [int(k) for k in np.unravel_index(totals.mismatched, told.shape)]
        return f"{told.name}: NaN or infinity at {place} where the task has another value, or the other way round"
    allowed = int(told.checked * told.tolerance.outside)
    limit = f", {allowed} may be" if allowed else ""
    at = "" if told.worst is None else f" at {list(told.worst)}: {told.got:.6g}, not {told.want:.6g}"
    return f"{told.name}: {told.outside} of {told.checked} elements are beyond the tolerance{limit}; the worst is{at}"


def _totals(got: Flat, want: Flat, exact: Flat, rule: Tolerance) -> _Totals:
    totals = _Totals()
    for begin in range(0, want.size, BLOCK):
        piece = slice(begin, begin + BLOCK)
        _judge(totals, got[piece], want[piece], exact[piece], rule, begin)
        _measure(totals, got[piece], exact[piece], begin)
    return totals


def _judge(totals: _Totals, got: Flat, want: Flat, exact: Flat, rule: Tolerance, begin: int) -> None:
    if want.dtype.kind in "biu":
        bad = ~_near_integers(got, want, rule)
    else:
        bad = ~_near(got, want, rule)
        if bad.any():
            bad[bad] = ~_near(got[bad], exact[bad], rule)
            odd = bad & ~(_finite(got) & _finite(want))
            if totals.mismatched is None and odd.any():
                totals.mismatched = begin + int(np.argmax(odd))
    totals.outside += int(bad.sum())


def _near_integers(got: Flat, want: Flat, rule: Tolerance) -> np.ndarray:
    """Equal, without a rule; differences of integers are made in float64, where each is exact up to 2^53."""
    same: np.ndarray = got == want
    return same if not rule.rtol else same | _near(got, want, rule)


def _near(got: Flat, want: Flat, rule: Tolerance) -> np.ndarray:
    a, w = _wide(got), _wide(want)
    with np.errstate(invalid="ignore", over="ignore"):
        size, error = np.abs(w), np.abs(a - w)
        allowed = rule.atol + rule.rtol * size
        if rule.absolute_below:
            allowed = np.where(size <= rule.absolute_below, rule.rtol, allowed)
        close: np.ndarray = (error <= allowed) & np.isfinite(a) & np.isfinite(w)
    near: np.ndarray = close | (a == w) | (np.isnan(a) & np.isnan(w))
    return near


def _wide(x: Flat) -> Flat:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _finite(x: Flat) -> np.ndarray:
    found: np.ndarray = np.isfinite(_wide(x))
    return found


def _measure(totals: _Totals, got: Flat, exact: Flat, begin: int) -> None:
    """Errors against float64, of what is finite on both sides."""
    fmt = ulp_format(got.dtype.name)
    if fmt is not None:
        report = compare(got, exact, fmt)
        if not report.compared:
            return
        totals.max_rel, totals.max_ulp = (
            max(totals.max_rel, report.max_rel),
            max(totals.max_ulp, report.max_ulp),
        )
        at = report.max_abs_index[0] if report.max_abs_index else 0
        _add(totals, report.compared, report.mean_abs * report.compared, report.max_abs)
    else:
        a, g = _wide(got), _wide(exact)
        both = np.isfinite(a) & np.isfinite(g)
        if not both.any():
            return
        errors = np.where(both, np.abs(np.where(both, a - g, 0)), 0)
        at = int(np.argmax(errors))
        totals.max_rel = max(totals.max_rel, float(np.max(errors / (np.where(both, np.abs(g), 0) + 1e-7))))
        _add(totals, int(both.sum()), float(errors.sum()), float(errors[at]))
    _keep_worst(totals, got, exact, at, begin)


def _add(totals: _Totals, compared: int, sum_abs: float, max_abs: float) -> None:
    totals.compared += compared
    totals.sum_abs += sum_abs
    totals.max_abs = max(totals.max_abs, max_abs)


def _keep_worst(totals: _Totals, got: Flat, exact: Flat, at: int, begin: int) -> None:
    a, g = complex(got[at]), complex(exact[at])
    before = -1.0 if totals.worst is None else abs(totals.got - totals.want)
    if abs(a - g) > before or totals.worst is None:
        totals.worst, totals.got, totals.want = begin + at, a.real, g.real


def ulp_format(dtype: str) -> Format | None:
    """The format in whose units errors of that dtype are counted; None for integers, float64 and complex numbers."""
    try:
        fmt = get_format(dtype)
    except UsageError:
        return None
    return fmt if is_comparable(fmt) else None


def one_report(outputs: Sequence[ComparedOutput]) -> ComparedOutput:
    """Of the same output in several calls: the first one that does not pass, else the one with the largest error."""

    def weight(found: ComparedOutput) -> tuple[bool, float]:
        return not found.passed, found.max_abs or 0.0

    return max(outputs, key=weight)


def as_flat(x: np.ndarray) -> Flat:
    """An array as one dimension."""
    return np.ascontiguousarray(x).reshape(-1)
