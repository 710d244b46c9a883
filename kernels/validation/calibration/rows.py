"""A file of measurements, a profile or one of our own tables, as rows that predictors know, and what is left out and why."""

from __future__ import annotations

import csv
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.products import Product
from ascendtile.simulator.record.files import read_whole

from ..registry import predictors
from ..table import COLUMNS, Row, read_table
from .history import states
from .mapping import Unmapped, call_of
from .product_file import nearest
from .profile import LARGEST_FILE, ProfiledTask, read_profile

WARM_UP_FROM = 3  # launches of one kernel, from which on the first one does not count
LONGEST_TYPE = 60
LEAST_KERNELS = 4  # that stay to be fitted


@dataclass(frozen=True)
class MeasuredRow:
    """A row, and how many launches its time (us) is the median of; total_us: of all of them."""

    row: Row
    launches: int
    total_us: float

    @property
    def us(self) -> float:
        return float(self.row.measured or 0.0)

    @property
    def kernel(self) -> tuple[str, str]:
        """Rows of one op and shape are of one kernel: they are fitted or left out together."""
        return self.row.op, self.row.shapes


@dataclass(frozen=True)
class NotUsed:
    """What of a file is not used: why, of which type of operator, how many launches, and their time in all (us)."""

    type: str
    reason: str
    launches: int
    total_us: float


def read_rows(path: str | Path, product: Product) -> tuple[list[MeasuredRow], list[NotUsed]]:
    """The rows of a file, and what is left out of it, dearest first.

    Raises UsageError with file, line and rule if it is neither a profile nor a table, or broken.
    """
    rows, left_out = _of_table(path, product) if is_table(path) else _of_profile(path, product)
    return sorted(rows, key=lambda r: -r.total_us), sorted(left_out, key=lambda x: -x.total_us)


def is_table(path: str | Path) -> bool:
    """Whether the first line names the columns of our own tables."""
    first = read_whole(path, LARGEST_FILE, "a profile").split(b"\n", 1)[0].decode("utf-8-sig", "replace")
    try:
        names = next(csv.reader([first[:10_000]]), [])
    except csv.Error:  # neither; the reader of profiles says what is wrong
        return False
    return {"id", "op", "tiling", "measured"} <= {n.strip() for n in names} and len(names) == len(COLUMNS)


# ---- our own tables ----


def _of_table(path: str | Path, product: Product) -> tuple[list[MeasuredRow], list[NotUsed]]:
    """Every row in us of this product; of a product file of the user those of the shipped one that it is nearest to."""
    rows, out, name = [], Counter[tuple[str, str]](), nearest(product).name
    for row in read_table(path):
        why = _not_used(row, name)
        if why:
            out[row.op, why] += 1
        else:
            rows.append(MeasuredRow(row, 1, float(row.measured or 0.0)))
    return rows, [NotUsed(op, why, n, 0.0) for (op, why), n in out.items()]


def _not_used(row: Row, product: str) -> str:
    if row.product != product:
        return f"measured on {row.product}"
    if row.excluded:
        return row.excluded
    if row.unit != "us" or row.measured is None:
        return f"no time in us ({row.unit})"
    return "" if row.op in predictors() else "nothing predicts it"


# ---- profiles ----


def _of_profile(path: str | Path, product: Product) -> tuple[list[MeasuredRow], list[NotUsed]]:
    kernels: dict[tuple[str, *tuple[object, ...]], list[ProfiledTask]] = {}
    every = read_profile(path)
    for task, state in zip(every, states(every, product.integer("l2.size")), strict=True):
        known = (state, task.type, task.core, task.blocks, task.inputs, task.outputs)
        kernels.setdefault(known, []).append(task)
    rows, out = [], dict[tuple[str, str], list[ProfiledTask]]()
    for (state, *_), tasks in kernels.items():
        try:
            rows.append(_measured(tasks, state, Path(path), product))
        except Unmapped as e:
            out.setdefault((tasks[0].type or tasks[0].name, str(e)), []).extend(tasks)
    left_out = [
        NotUsed(t[:LONGEST_TYPE], why, len(x), sum(task.us for task in x)) for (t, why), x in out.items()
    ]
    return rows, left_out


def _measured(tasks: Sequence[ProfiledTask], state: str, path: Path, product: Product) -> MeasuredRow:
    """The median of equal launches; where there are several the first one, which warms up, does not count."""
    first = tasks[0]
    call = call_of(first)
    if call.op not in predictors():
        raise Unmapped("nothing predicts it")
    times = [t.us for t in (tasks[1:] if len(tasks) >= WARM_UP_FROM else tasks) if t.us > 0]
    row = Row(
        id=f"line {first.line} {first.type[:LONGEST_TYPE]}",
        product=product.name,
        op=call.op,
        group=first.type[:LONGEST_TYPE],
        shapes=call.shapes,
        dtypes=call.dtypes,
        tiling=" ".join(x for x in (f"cores={first.blocks}", state, call.tiling) if x),
        measured=statistics.median(times or [first.us]),
        unit="us",
        fitted=False,
        trust="B",
        excluded="",
        source=path.name,
        note="",
        table=path.stem,
    )
    return MeasuredRow(row, len(tasks), sum(t.us for t in tasks))


# ---- which are fitted ----


def dearest(rows: Sequence[MeasuredRow], most: int) -> tuple[list[MeasuredRow], int]:
    """The rows with the largest time in all, and how many are left."""
    return list(rows[:most]), max(0, len(rows) - most)


def split(
    rows: Sequence[MeasuredRow], part: float, seed: int, capped: int = 0
) -> tuple[list[MeasuredRow], list[MeasuredRow]]:
    """Rows that are fitted, and those that are left out: about that part of the kernels, drawn with the seed.

    capped: how many rows `dearest` has left, for the message.

    Raises UsageError where either would be too few to say anything.
    """
    kernels = sorted({r.kernel for r in rows})
    count = max(1, round(part * len(kernels))) if part and kernels else 0
    if len(kernels) - count < LEAST_KERNELS:
        way = "larger --most-rows" if capped else "longer profile"
        used = f"of the rows that --most-rows keeps ({capped} are left)" if capped else "of this file"
        raise UsageError(
            f"{len(kernels)} different kernels (op and shape) {used} can be predicted; {LEAST_KERNELS} or more have "
            f"to stay when {part:.0%} are left out for the check: give a {way}, or a smaller --leave-out"
        )
    order = np.random.default_rng(seed).permutation(len(kernels))
    out = {kernels[k] for k in order[:count]}
    return [r for r in rows if r.kernel not in out], [r for r in rows if r.kernel in out]
