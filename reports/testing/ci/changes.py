"""Two baselines side by side, entry by entry."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from ....simulator.errors import UsageError
from ...facts.advice.causes import largest_cause
from ...facts.differences import RunDifference
from ..baseline.entry import BaselineEntry, difference
from ..baseline.file import Baseline

SLOWER, FASTER, SAME, NEW, GONE, OTHER = "slower", "faster", "same", "new", "gone", "other device"
ORDER = (SLOWER, OTHER, FASTER, NEW, GONE, SAME)


@dataclass(frozen=True)
class KernelChange:
    """One entry of both baselines; None where one of them does not have it."""

    test: str
    key: str
    before: BaselineEntry | None
    after: BaselineEntry | None

    @property
    def kind(self) -> str:
        """One of ORDER. Times of another product or compiler are not comparable."""
        if self.before is None or self.after is None:
            return NEW if self.before is None else GONE
        if _made_for(self.before) != _made_for(self.after):
            return OTHER
        change = self.after.cycles - self.before.cycles
        return SLOWER if change > 0 else FASTER if change < 0 else SAME

    @property
    def part(self) -> float | None:
        """Cycles that came, as a part of those before: 0.05 is 5 % more. None where there is nothing to compare."""
        if self.before is None or self.after is None or self.kind == OTHER:
            return None
        if not self.before.cycles:
            return float("inf") if self.after.cycles else 0.0
        return self.after.cycles / self.before.cycles - 1

    @property
    def new_faults(self) -> tuple[str, ...]:
        """Faults that were not there before; all of a new kernel. One whose line or programs moved is none."""
        had = Counter(map(_without_numbers, self.before.faults if self.before else ()))
        found = []
        for text in self.after.faults if self.after else ():
            had[_without_numbers(text)] -= 1
            found += [text] if had[_without_numbers(text)] < 0 else []
        return tuple(found)

    @property
    def difference(self) -> RunDifference | None:
        """The difference by line, pipe and wait of times that are comparable."""
        return difference(self.before, self.after) if self.part is not None else None  # type: ignore[arg-type]

    @property
    def cause(self) -> str:
        """Why, in a few words: "rows.py:7  x = tl.load(...): 3.38 us more", or "other product"."""
        if self.kind == OTHER and self.before and self.after:
            return f"{' '.join(_made_for(self.before))} before, {' '.join(_made_for(self.after))} now"
        found = self.difference if self.kind in (SLOWER, FASTER) else None
        return largest_cause(found) if found is not None else ""

    def is_regression(self, above: float) -> bool:
        """Whether it takes more than the part `above` longer, or has faults that it had not."""
        return bool(self.new_faults) or (self.part is not None and self.part > above)


@dataclass(frozen=True)
class BaselineChanges:
    """What changed from the baseline `before` to `after`, those names of commits; `above`: a regression is more than that
    part slower. changes: regressions first, then by kind and by how much. `print` shows the summary."""

    before: str
    after: str
    above: float
    changes: tuple[KernelChange, ...] = field(repr=False)

    def __str__(self) -> str:
        return self.summary

    def of_kind(self, kind: str) -> list[KernelChange]:
        return [c for c in self.changes if c.kind == kind]

    @property
    def regressions(self) -> list[KernelChange]:
        return [c for c in self.changes if c.is_regression(self.above)]

    @property
    def summary(self) -> str:
        """3 kernels: 1 slower, 2 as fast as before; 1 regression (more than 5 % slower, or new faults)"""
        words = {SAME: "as fast as before", OTHER: "for another product or compiler"}
        counts = [(len(self.of_kind(kind)), words.get(kind, kind)) for kind in ORDER]
        told = ", ".join(f"{n} {kind}" for n, kind in counts if n) or "none"
        failed = len(self.regressions)
        rule = f"(more than {100 * self.above:g} % slower, or new faults)"
        return f"{_plural(len(self.changes), 'kernel')}: {told}; {_plural(failed, 'regression')} {rule}"


def compare_baselines(
    before: Baseline, after: Baseline, above: float = 0.05, names: tuple[str, str] = ("before", "after")
) -> BaselineChanges:
    """Set two baselines side by side.

    Args:
        before, after: as `read_baseline` gives them.
        above: the part by which a kernel may become slower, 0.05 for 5 %. names: of the two, for the views.

    Raises `UsageError` for an `above` that is negative or no number.
    """
    if not 0 <= above < float("inf"):
        raise UsageError(f"compare_baselines: above is a part of 0 or more, got {above}")
    keys = {(t, k) for side in (before, after) for t, entries in side.items() for k in entries}
    found = [KernelChange(t, k, _entry(before, t, k), _entry(after, t, k)) for t, k in sorted(keys)]
    found.sort(key=lambda c: (not c.is_regression(above), ORDER.index(c.kind), -abs(c.part or 0.0)))
    return BaselineChanges(*names, above, tuple(found))


def _entry(side: Baseline, test: str, key: str) -> BaselineEntry | None:
    return side.get(test, {}).get(key)


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+", "0", text)


def _made_for(entry: BaselineEntry) -> tuple[str, str]:
    return entry.product, entry.compiler


def _plural(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"
