"""How far the order of atomics moves the outputs, as a table and as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ...simulator.precision.metrics import json_value
from ...simulator.spread import Spread
from ..facts.texts import count, figure
from .sections import add_row, make_table


def spread_json(spread: Mapping[str, Spread]) -> dict[str, Any]:
    """`atomic_spread`, if it was asked for: output -> figures."""
    return {"atomic_spread": json_value({n: asdict(s) for n, s in spread.items()})} if spread else {}


def spread_table(spread: Mapping[str, Spread]) -> RenderableType:
    """One line for each output."""
    seeds = next(iter(spread.values())).seeds
    title = (f"order of atomics, {seeds} seeds", 26)
    table = make_table(title, *((f">{n} ulp", 9) for n in ("min", "max", "std")), (">differ", 18))
    for name, s in spread.items():
        differ = f"{count(s.differing)} of {count(s.elements)}"
        add_row(table, name, *(figure(x) for x in (s.min_ulp, s.max_ulp, s.std_ulp)), differ)
    note = "Deviations from the result in ascending order of the programs; the device defines none."
    return Group(Text(), table, Text(note, style="dim"))
