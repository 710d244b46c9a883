"""VariantOrder of one kernel: whether the one that a board runs fastest is the one that we predict to be.

A list is found by rule: rows with a time of a kernel, of one source, that compute the same (product, op, shapes,
types, passes) with different tilings or options, each published. Rows with one tiling are one variant, of their median time;
but those of `BY_ID` differ in what no tiling says, so that we cannot tell them apart, and count as a wrong pick.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from ..registry import TIME
from .statistics import spearman
from .summaries import Result

UNKNOWN_TILING = "no tiling published"  # `settings.note_of`
# Keys of a tiling that are no choice: how much is done, what the time holds, whether another kernel ran before.
WORK = ("times", "time", "code")
# Tiling computed by the scalar unit or known to the compiler.
BY_ID = ("asc-guide-const-",)
ENOUGH = 1.005  # a variant within half a per cent of the best is as good as the best: boards repeat no better


@dataclass(frozen=True)
class VariantOrder:
    """One list. best: the tiling that the board runs fastest; picked: the one that we predict to be, of equal ones the
    slowest.

    loss: the board's time of what is picked over that of the best, 1 if the best is picked. spearman: of times,
    predicted and measured; None where all predictions are equal.
    """

    name: str
    variants: int
    best: str
    picked: str
    loss: float
    spearman: float | None

    @property
    def right(self) -> bool:
        """Whether the best is picked, or one that the board runs as fast."""
        return self.loss <= ENOUGH


def orders(results: Iterable[Result]) -> tuple[VariantOrder, ...]:
    """The lists among results, in the order of the tables."""
    lists: defaultdict[tuple[str, ...], list[Result]] = defaultdict(list)
    for r in results:
        if r.judged and r.row.unit == TIME and not _unknown(r):
            lists[_what(r)].append(r)
    return tuple(_variants(found) for found in lists.values() if len({_variant(r) for r in found}) > 1)


def order_in_words(found: Sequence[VariantOrder]) -> str:
    """ "best picked in 7 of 9, worst loss 1.12x"; empty without lists."""
    if not found:
        return ""
    right = sum(v.right for v in found)
    return f"best picked in {right} of {len(found)}, worst loss {max(v.loss for v in found):.2f}x"


def _unknown(result: Result) -> bool:
    return result.prediction is not None and result.prediction.note.startswith(UNKNOWN_TILING)


def _what(result: Result) -> tuple[str, ...]:
    row = result.row
    done = (entry for entry in row.tiling.split() if entry.partition("=")[0] in WORK)
    return (row.source.partition(" (")[0], row.product, row.op, row.shapes, row.dtypes, *done)


def _variant(result: Result) -> str:
    row = result.row
    return row.id if row.id.startswith(BY_ID) else row.tiling


def _variants(found: list[Result]) -> VariantOrder:
    of = dict(_merged(found))
    least = min(ours for _, ours in of.values())
    best = min(of, key=lambda tiling: of[tiling][0])
    picked = max((t for t in of if of[t][1] == least), key=lambda tiling: of[tiling][0])
    measured, predicted = zip(*of.values(), strict=True)
    row = found[0].row
    name = f"{row.op} {row.shapes} on {row.product}, {row.id} and {len(found) - 1} more"
    return VariantOrder(
        name, len(of), best, picked, of[picked][0] / of[best][0], spearman(measured, predicted)
    )


def _merged(found: list[Result]) -> Iterator[tuple[str, tuple[float, float]]]:
    """Of each variant the measured and the predicted time."""
    for variant in dict.fromkeys(map(_variant, found)):
        rows = [r for r in found if _variant(r) == variant]
        yield variant, (median(r.row.measured or 0.0 for r in rows), median(r.predicted or 0.0 for r in rows))
