"""A run as a folder of the vendor's tables."""

from __future__ import annotations

import csv
import io
import math
import re
from pathlib import Path
from typing import Any

from ...simulator.errors import UsageError
from ...simulator.record.files import naming, write_whole
from ...simulator.record.run import Run
from ..facts.texts import clean
from .tables import TABLES, op_summary

SUMMARY = "op_summary.csv"


def write_tables(run: Run, folder: str | Path) -> list[Path]:
    """Write the tables of `run` into `folder`, which is made if it is missing; gives the files written.

    One launch: its tables and op_summary.csv in the folder. Several: op_summary.csv, and a folder of its own for the
    tables of each (0_zero_fill, 1_full_row). Each file is written whole or not at all.

    Raises:
        UsageError: the run has no launches or does not tell cores apart, or something cannot be written.
    """
    if not run.launches:
        raise UsageError(
            f"{clean(run.name, 60)} was run for values only, it has no times; run it again with time"
        )
    folder = Path(folder)
    content = {SUMMARY: op_summary(run)}
    for number, launch in enumerate(run.launches):
        below = f"{number}_{_plain(launch.kernel)}/" if len(run.launches) > 1 else ""
        content |= {below + name: table(launch) for name, table in TABLES.items()}
    return [_write(folder / name, rows) for name, rows in content.items()]


def _write(path: Path, rows: list[dict[str, Any]]) -> Path:
    with naming(path.parent, "make"):
        if path.parent.exists() and not path.parent.is_dir():
            raise UsageError("is a file; the tables need a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, table_text(rows).encode())
    return path


def table_text(rows: list[dict[str, Any]]) -> str:
    """Rows of the same columns as CSV."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows({n: _cell(x) for n, x in row.items()} for row in rows)
    return out.getvalue()


def _cell(x: Any) -> Any:
    if isinstance(x, float):
        return f"{x:.6f}" if math.isfinite(x) else "NA"
    if not isinstance(x, str):
        return x
    x = clean(x)
    return f"'{x}" if x[:1] in ("=", "+", "-", "@") else x  # a spreadsheet must not take a name for a formula


def _plain(name: str) -> str:
    """A kernel's name as part of a file name: records may hold anything."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:60] or "kernel"
