"""A measured PipeUtilization.csv, as the vendor's profiler writes it."""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ...simulator.errors import UsageError
from ...simulator.record.files import read_whole

MOST_BYTES = 64 << 20
MOST_ROWS = 100_000
RATIO = re.compile(r"(aic|aiv)_(cube|mac|vec|scalar|mte1|mte2|mte3|fixpipe)_ratio\Z")
ABSENT = {"", "na", "n/a", "nan"}


@dataclass(frozen=True)
class Measured:
    """What a profile says: means over the rows that have a figure.

    us: side ("aic", "aiv") -> mean and largest time of a core. ratios: (side, pipe) -> share of the core's cycles.
    """

    rows: int
    us: dict[str, tuple[float, float]]
    ratios: dict[tuple[str, str], float]


def read_utilization(path: str | Path) -> Measured:
    """The profile in `path`; `UsageError` if it is no such table."""
    raw = read_whole(path, MOST_BYTES, "a PipeUtilization.csv")
    try:
        return _measured(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is not text in UTF-8, so it is no PipeUtilization.csv") from None
    except csv.Error as error:
        raise UsageError(f"{path}: is no CSV: {error}") from None
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def _measured(text: str) -> Measured:
    reader = csv.DictReader(io.StringIO(text))
    columns = {(n or "").strip().lower(): n for n in reader.fieldnames or ()}
    ratios = {RATIO.match(n).groups(): c for n, c in columns.items() if RATIO.match(n)}  # type: ignore[union-attr]
    times = {side: columns[f"{side}_time(us)"] for side in ("aic", "aiv") if f"{side}_time(us)" in columns}
    if not ratios or not times:
        ragged = any(None in row or None in row.values() for row in islice(reader, MOST_ROWS))
        if columns and (ragged or len(columns) < 2):
            raise UsageError(
                "is no table and no record of a run; a PipeUtilization.csv of `msprof op` is wanted"
            )
        raise UsageError(
            "has no columns like aiv_time(us) and aiv_mte2_ratio; a PipeUtilization.csv of `msprof op` is wanted, of which "
            f"the columns here are {', '.join(list(columns)[:6]) or 'none'}"
        )
    rows = []
    for row in reader:
        rows.append(row)
        if len(rows) > MOST_ROWS:
            raise UsageError(f"has more than {MOST_ROWS} rows, one for each core is expected")
    found = {key: _numbers(rows, c) for key, c in ratios.items()}
    spent = {side: _numbers(rows, c) for side, c in times.items()}
    if not any(spent.values()):
        raise UsageError("has no row with a time")
    return Measured(
        len(rows),
        {side: (sum(x) / len(x), max(x)) for side, x in spent.items() if x},
        {(s, "cube" if p == "mac" else p): sum(x) / len(x) for (s, p), x in found.items() if x},
    )


def _numbers(rows: list[dict[str, str]], column: str) -> list[float]:
    out = []
    for number, row in enumerate(rows):
        text = (row.get(column) or "").strip()
        if text.lower() in ABSENT:
            continue
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value >= 0):
            raise UsageError(f"row {number + 2}, column {column}: {text[:40]!r} is no number of 0 or more")
        out.append(value)
    return out
