"""Tables of measurements: CSV files, one row for each figure that somebody published.

Columns: id, product (a name of `ascendtile products`), op (what `predicts` knows), group (rows that are judged together),
shapes, dtypes, tiling, measured (empty where only an order is known), unit, fitted (yes: a figure of ours was fitted on this
row), trust (A vendor or tool table, B other measurement, C third party), excluded (the reason why the row is not judged;
empty: it is), source, note.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.products import product_names
from ascendtile.simulator.record.files import read_whole

COLUMNS = (
    "id", "product", "op", "group", "shapes", "dtypes", "tiling", "measured", "unit", "fitted", "trust", "excluded",
    "source", "note",
)  # fmt: skip
NEEDED = ("id", "product", "op", "group", "unit", "fitted", "trust", "source")
UNITS = ("us", "cycles", "cycles/1024", "ticks", "GiB/s", "GB/s", "FLOP/cycle", "TFLOP/s")
TRUST = ("A", "B", "C")
TABLES = ("micro", "kernels", "others")
LONGEST_CELL = 2000
LARGEST_FILE = 16 << 20


@dataclass(frozen=True)
class Row:
    """One measurement.

    measured: None where no figure is published, only an order. table: "micro", "kernels", "others" or the stem of a file's
    name.
    """

    id: str
    product: str
    op: str
    group: str
    shapes: str
    dtypes: str
    tiling: str
    measured: float | None
    unit: str
    fitted: bool
    trust: str
    excluded: str
    source: str
    note: str
    table: str


def read_tables() -> tuple[Row, ...]:
    """The rows of the tables that come with the project."""
    rows = [row for name in TABLES for row in read_table(Path(__file__).with_name(f"{name}.csv"))]
    _unique(rows, "the tables")
    return tuple(rows)


def read_table(path: str | Path) -> tuple[Row, ...]:
    """The rows of a CSV file. Raises UsageError with file, line and rule if it is broken."""
    path = Path(path)
    try:
        text = read_whole(path, LARGEST_FILE, "a table of measurements").decode("utf-8")
        rows = tuple(_rows(csv.reader(text.splitlines(keepends=True), strict=True), path))
    except UnicodeDecodeError as e:
        raise UsageError(f"{path}: byte {e.start} is not UTF-8 text") from None
    except csv.Error as e:
        raise UsageError(f"{path}: not a CSV table: {e}") from None
    _unique(rows, str(path))
    return rows


def _rows(reader: Iterator[list[str]], path: Path) -> Iterator[Row]:
    head = next(reader, None)
    if head is None:
        raise UsageError(f"{path}: empty; the first line must name the columns {', '.join(COLUMNS)}")
    lacking = [c for c in COLUMNS if c not in head]
    if lacking or len(head) != len(COLUMNS):
        what = f"{', '.join(lacking)} missing" if lacking else f"{len(head)} columns"
        raise UsageError(f"{path}: line 1: {what}; the {len(COLUMNS)} columns are {', '.join(COLUMNS)}")
    for cells in reader:
        where = f"{path}: line {reader.line_num}"  # type: ignore[attr-defined]
        if len(cells) != len(head):
            raise UsageError(f"{where}: {len(cells)} cells, the first line names {len(head)} columns")
        yield _row(dict(zip(head, cells, strict=True)), where, path.stem)


def _row(cells: dict[str, str], where: str, table: str) -> Row:
    cells = {name: cell.strip() for name, cell in cells.items()}
    for name, cell in cells.items():
        if len(cell) > LONGEST_CELL:
            raise UsageError(
                f"{where}: {name} has {len(cell)} characters, at most {LONGEST_CELL} are allowed"
            )
    for name in NEEDED:
        if not cells[name]:
            raise UsageError(f"{where}: {name} is empty")
    _one_of(cells["product"], product_names(), where, "product")
    _one_of(cells["unit"], UNITS, where, "unit")
    _one_of(cells["fitted"], ("yes", "no"), where, "fitted")
    _one_of(cells["trust"], TRUST, where, "trust")
    measured = _measured(cells.pop("measured"), where)
    return Row(**cells | {"fitted": cells["fitted"] == "yes"}, measured=measured, table=table)  # type: ignore[arg-type]


def _one_of(text: str, allowed: Iterable[str], where: str, name: str) -> None:
    allowed = tuple(allowed)
    if text not in allowed:
        raise UsageError(f"{where}: {name} {text[:60]!r} is not one of {', '.join(allowed)}")


def _measured(text: str, where: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"{where}: measured {text[:60]!r} is not a number") from None
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{where}: measured must be finite and above 0, got {text[:60]}")
    return value


def _unique(rows: Iterable[Row], where: str) -> None:
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            raise UsageError(f"{where}: the id {row.id!r} is there twice; every row needs its own")
        seen.add(row.id)
