"""The difference of two runs as one CSV table.

group,name,unit,a,b,change
time,whole run,us,40.100000,38.000000,-2.100000
line,tile.py:13  tl.store(out_ptr + cols, x * 2),us,22.000000,20.500000,-1.500000
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...simulator.record.files import write_whole
from ..facts.differences import FigurePair, RunDifference
from ..vendor.writing import table_text

LONGEST = 160  # of a name
NOT_THERE = ""  # a figure that one of the runs does not have


def difference_table(d: RunDifference) -> str:
    """Every figure of the difference on a row of its own; choices that differ have texts in `a` and `b`."""
    groups: tuple[tuple[str, str, tuple[FigurePair, ...]], ...] = (
        ("time", "us", (FigurePair("whole run", d.time.first, d.time.second),)),
        ("line", "us", d.every_line),
        ("pipe busy", "us", d.busy),
        ("wait", "us", d.waits),
        ("lower bound", "us", d.bounds),
        ("buffer peak", "bytes", d.buffers),
        ("moved", "bytes", d.traffic),
        ("error", "", d.errors),
    )
    each = ((g, p, u, None if p.first is p.second is None else p.change) for g, u, ps in groups for p in ps)
    rows = [_row(group, p.name, unit, p.first, p.second, change) for group, p, unit, change in each]
    rows += [_row("choice", n, "", _choice(a), _choice(b), None) for n, a, b in d.settings]
    return table_text(rows)


def _row(group: str, name: str, unit: str, a: Any, b: Any, change: Any) -> dict[str, Any]:
    """What is not there counts as 0 in `change`, as on the pages."""
    shown = {n: NOT_THERE if x is None else x for n, x in {"a": a, "b": b, "change": change}.items()}
    return {"group": group, "name": name[:LONGEST], "unit": unit, **shown}


def _choice(text: str) -> str:
    return NOT_THERE if text == "-" else text[:LONGEST]


def write_table(d: RunDifference, path: str | Path) -> None:
    """Write it to `path`, whole or not at all. `UsageError` if it cannot be written."""
    write_whole(path, difference_table(d).encode("utf-8", "backslashreplace"))
