"""A run's trace as a file."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ...simulator.errors import UsageError
from ...simulator.record.files import check_target, write_whole
from ...simulator.record.run import Run
from ..facts.texts import RECORDS
from . import insight, perfetto
from .selection import LIMIT, Selection, beside, select

STYLES: dict[str, Callable[[Selection], Iterator[dict[str, Any]]]] = {
    "perfetto": perfetto.events,
    "insight": insight.events,
}

TWO_RUNS = ("perfetto",)


def write_trace(
    run: Run,
    path: str | Path,
    style: str = "perfetto",
    window_us: tuple[float, float] | None = None,
    limit: int = LIMIT,
    other: Run | None = None,
) -> Selection:
    """Write the instructions of `run` to `path` as JSON, whole or not at all; the selection says how many they are.

    Args:
        style: "perfetto" (chrome://tracing, ui.perfetto.dev) or "insight" (MindStudio Insight).
        window_us: only instructions that run between these times, in us since the run began.
        limit: at most so many instructions (of each run), the first ones.
        other: a second run, B, on the same axis of time as `run`, A; for perfetto only.

    Raises:
        UsageError: an unknown style, nothing to show, or a target that cannot be written.
    """
    if style not in STYLES:
        raise UsageError(f"no trace style {style!r}; there are {', '.join(STYLES)}")
    check_target(path)
    if other is not None and style not in TWO_RUNS:
        raise UsageError(
            f"two runs in one trace are for {' and '.join(TWO_RUNS)}; for {style} export each on its own"
        )
    selection = select(run, window_us, limit)
    if other is not None:
        selection = beside(selection, select(other, window_us, limit))
    write_whole(path, trace_bytes(run, selection, style, other))
    return selection


def trace_bytes(run: Run, selection: Selection, style: str, other: Run | None = None) -> bytes:
    """The file's content: one event a line."""
    lines = ",\n".join(json.dumps(e, allow_nan=False) for e in STYLES[style](selection))
    about = {
        "run": run.name,
        "product": str(run.product.get("name", "")),
        **({"other_run": other.name, "other_product": str(other.product.get("name", ""))} if other else {}),
        "instructions": selection.instructions,
        "instructions_recorded": selection.recorded,
        "instructions_of_the_run": sum(x.instructions for r in (run, other) if r for x in r.launches),
        "counts": RECORDS,
        "complete": selection.complete,
        **_window(selection),
    }
    head = f'{{"displayTimeUnit": "ns", "otherData": {json.dumps(about)}, "traceEvents": [\n'
    return (head + lines + "\n]}\n").encode()


def _window(selection: Selection) -> dict[str, Any]:
    """From and to in us, None for the end; nothing where all the time was asked for."""
    if selection.window_us is None:
        return {}
    return {"window_us": [x if math.isfinite(x) else None for x in selection.window_us]}
