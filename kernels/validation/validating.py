"""All rows of the tables beside their predictions, in groups; and orders of rows that must come out right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise

from ascendtile.simulator.errors import RunError, UsageError
from ascendtile.simulator.observers import quietly

from .accuracy.orders import VariantOrder, orders
from .accuracy.statistics import Summary, spearman
from .accuracy.summaries import Group, Result, summaries, summary_of
from .registry import predict
from .table import Row, read_tables

RATES = ("GiB/s", "GB/s", "FLOP/cycle", "TFLOP/s")  # more is better


@dataclass(frozen=True)
class RankingCase:
    """rows: ids, the best (least time, highest rate) first. only_first: the first must win, no more is published.

    ties: rows that may come out within 0.1 % of the one before them, because what tells them apart is not modelled.
    """

    name: str
    rows: tuple[str, ...]
    source: str
    only_first: bool = False
    ties: tuple[str, ...] = ()


EX = "mirror-cann/asc-devkit examples/01_simd_cpp_api/05_best_practices"
CASES: tuple[RankingCase, ...] = (
    RankingCase(
        "add of 98 432, block 1024 before 512 and 256",
        ("ta633-add-1024", "ta633-add-512", "ta633-add-256"),
        "triton-lang/triton-ascend issue 633",
        only_first=True,
    ),
    RankingCase(  # steps 6 and 7: order of tiles for L2, which does not limit us there; tiling known to the compiler
        "matmul 8192 cubed, steps 8 (unit flag), 7, 6, 5, 4, 3, 2",
        tuple(f"asc-matmul8192-c{k}" for k in (8, 7, 6, 5, 4, 3, 2)),
        f"{EX}/01_matrix_compute/matmul_high_performance",
        ties=("asc-matmul8192-c6", "asc-matmul8192-c5"),
    ),
    RankingCase(
        "add 8192 x 8192, steps 6 (no bank conflicts), 5 (past L2), 4 (double buffer), 3, 2, 1",
        tuple(f"asc-add8192-c{k}" for k in (6, 5, 4, 3, 2, 1)),
        f"{EX}/00_vector_compute/add_high_performance",
        ties=(
            "asc-add8192-c5",
        ),  # memory bounds both: conflicts cost what follows the last load, 0.1 us of 182
    ),
)
TIE = 0.001


@dataclass(frozen=True)
class Validation:
    """groups: those of `summaries`, then ranking cases. orders: lists of variants of one kernel."""

    results: tuple[Result, ...]
    groups: tuple[Group, ...]
    failed: tuple[Result, ...] = field(default=())
    orders: tuple[VariantOrder, ...] = field(default=())

    @property
    def excluded(self) -> tuple[Result, ...]:
        return tuple(r for r in self.results if r.row.excluded)

    @property
    def not_simulated(self) -> tuple[Result, ...]:
        """Rows without a prediction, by their table's word or because their kernel would fail."""
        return tuple(r for r in self.results if r.failure is not None)


def validate(
    rows: Sequence[Row] | None = None,
    groups: Iterable[str] = (),
    cases: Sequence[RankingCase] = CASES,
    progress: Callable[[int, int], None] | None = None,
) -> Validation:
    """Predict rows (without: those of the project's tables) and summarise them.

    groups: only rows of these groups or tables. A row whose kernel would fail on the device is a result with a failure.
    Raises UsageError for a group that no row has, and for a row that makes no sense to what predicts its op.
    """
    chosen = rows_of(read_tables() if rows is None else rows, tuple(groups))
    results = []
    with quietly():
        for k, row in enumerate(chosen):
            results.append(_result(row))
            if progress is not None:
                progress(k + 1, len(chosen))
    failed = tuple(r for r in results if r.failure is not None and not r.row.excluded)
    return Validation(
        tuple(results), (*summaries(results), *_rankings(results, cases)), failed, orders(results)
    )


def rows_of(rows: Sequence[Row], groups: tuple[str, ...]) -> list[Row]:
    """Rows of these groups or tables, without any all. Raises UsageError for a group that no row has."""
    known = dict.fromkeys([*(r.table for r in rows), *(r.group for r in rows)])
    for name in groups:
        if name not in known:
            near = get_close_matches(name, known, n=2, cutoff=0.5)
            hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise UsageError(
                f"no group {name[:60]!r}; there are {', '.join(map(repr, known)) or 'none'}{hint}"
            )
    return [r for r in rows if not groups or r.group in groups or r.table in groups]


def _result(row: Row) -> Result:
    try:
        return Result(row, predict(row))
    except UsageError:
        if not row.excluded:  # an excluded row may be of something that nobody can predict
            raise
        return Result(row, None, row.excluded)
    except RunError as e:
        return Result(row, None, row.excluded or str(e))


def _rankings(results: Sequence[Result], cases: Sequence[RankingCase]) -> list[Group]:
    by_id = {r.row.id: r for r in results}
    return [
        _ranked(case, [by_id[i] for i in case.rows])
        for case in cases
        if all(i in by_id and by_id[i].predicted is not None for i in case.rows)
    ]


def _ranked(case: RankingCase, results: list[Result]) -> Group:
    """Spearman is that of the predicted and the published order."""
    rate = results[0].row.unit in RATES
    cost = [(-1.0 if rate else 1.0) * (r.predicted or 0.0) for r in results]
    wins = all(cost[0] < c for c in cost[1:])
    ties = (r.row.id in case.ties for r in results[1:])
    steps = (a < b or (tied and a < b * (1 + TIE)) for (a, b), tied in zip(pairwise(cost), ties, strict=True))
    right = wins if case.only_first else all(steps)
    with_figure = [r for r in results if r.row.measured is not None]
    errors = summary_of(with_figure)
    places = [min(k, 1) if case.only_first else k for k in range(len(cost))]
    order = Summary(
        len(results),
        errors.median_abs_error,
        errors.p90_abs_error,
        spearman(places, cost),
        errors.roofline_median_abs_error,
    )
    return Group(f"ranking: {case.name}", order, right)
