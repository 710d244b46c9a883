"""Tables of figures fitted anew: rows of one source as somebody's own profile, and each source left out once."""

from __future__ import annotations

import csv
import tempfile
from functools import cache
from pathlib import Path

from ascendtile.kernels import validation
from ascendtile.kernels.validation import Summary, read_tables
from ascendtile.kernels.validation.calibration import Calibration, Errors, calibrate, cross_validate

Rows = list[list[str]]
TABLE = Path(validation.__file__).with_name("kernels.csv")
# Beginnings of the ids of rows that one board took, and its product.
BOARDS = {
    "a training step of Qwen3 on 910B4": ("msi-qwen-", "ascend910b4"),
    "a training step of AlexNet on 910B2": ("msi-alexnet-", "ascend910b2"),
}


def calibration(rows: Rows) -> Rows:
    """Kernels that are fitted and left out; errors of those that are left out, before and after, in per cent."""
    return [[row[0], *_calibration(calibrated(*BOARDS[row[0]]))] for row in rows]


@cache
def calibrated(begin: str, product: str) -> Calibration:
    """What `ascendtile calibrate` makes of these rows."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mine.csv")
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(r for r in rows if r["id"].startswith(begin))
        return calibrate(path, product)


def _calibration(found: Calibration) -> list[str]:
    return [str(found.fitted_before.rows), str(found.before.rows), *_of(found.before), *_of(found.after)]


def _of(errors: Errors) -> tuple[str, ...]:
    return tuple(f"{100 * (x or 0):.1f}" for x in (errors.median, errors.p90))


def crossing(rows: Rows, groups: dict[str, str]) -> Rows:
    """Rows of a group; errors with the product's figures, and with those fitted on other sources, in per cent, and the order
    with these."""
    return [[row[0], *_crossing(*_crossed()[groups[row[0]]])] for row in rows]


@cache
def _crossed() -> dict[str, tuple[Summary, Summary]]:
    return cross_validate([r for r in read_tables() if r.table == "kernels"]).groups


def _crossing(fitted: Summary, left_out: Summary) -> list[str]:
    errors = ((s.median_abs_error, s.p90_abs_error) for s in (fitted, left_out))
    order = "" if left_out.spearman is None else f"{left_out.spearman:.3f}"
    return [str(fitted.rows), *(f"{100 * (x or 0):.1f}" for pair in errors for x in pair), order]
