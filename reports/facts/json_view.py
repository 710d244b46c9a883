"""One run as one JSON object, for scripts: every unit is in the name, what is absent is null or empty.

    {"op": "RmsNormGrad", "product": "ascend910b3", "dtype": "float16", "time_us": 38.9, "cycles": 65538,
     "bound": {"name": "HBM", "time_us": 28.8, "fraction": 0.74}, ...}

JSON has no NaN and no infinity: such figures are the texts "NaN", "Infinity", "-Infinity".
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from ...simulator.precision.metrics import json_value
from ...simulator.record.files import picked
from ...simulator.record.run import INTERVAL_PERCENT, SHARED, Buffer, Launch, Run
from . import facts
from .advice.slowing import slowing_json
from .authors import compiler
from .launch_figures import holes_bytes
from .warned import message_json


def run_json(run: Run, record: str | None = None) -> dict[str, Any]:
    """The run as plain data. record: the file that holds it, if it is saved."""
    timed, bound = facts.timed(run), facts.binding(run)
    data = {
        "op": run.op or run.name,
        "product": facts.product_name(run),
        "overrides": facts.overrides(run),
        "compiler": compiler(run) or None,
        **picked(run, "case dtype cube_math_type tiling inputs options"),
        "time_us": run.time_us if timed else None,
        "cycles": run.cycles if timed else None,
        "interval_us": run.interval_us,
        "interval_percent": None if run.interval_us is None else INTERVAL_PERCENT,
        "measured_rows": run.measured_rows,
        "l2": run.options.get("l2"),
        "l2_left_bytes": run.l2_left_bytes,
        "grades_us": run.grades,
        "lifted_us": run.lifted,
        "changes_us": run.changes,
        "untried": run.untried,
        "slowing": slowing_json(run),
        "launches": [_launch(x) for x in run.launches],
        "bound": None if bound is None else asdict(bound),
        "bounds": run.bounds,
        "pipes": {
            n: {**picked(p, "busy_cycles share stalls waits"), "of_busy": {SHARED: p.shared_cycles}}
            for n, p in run.pipes.items()
        },
        "buffers": {n: _buffer(b) for n, b in run.buffers.items()},
        "lines": [
            {**picked(x, "file line source cycles"), "busy_cycles": x.busy} for x in facts.dear_lines(run)
        ],
        "errors": {name: e.to_dict() for name, e in run.errors.items()},
        "error_lines": run.error_lines,
        "warnings": [message_json(m) for m in run.warnings],
        "notes": list(run.notes),
        "record": record,
    }
    plain: dict[str, Any] = json_value(_plain(data))
    return plain


def _launch(x: Launch) -> dict[str, Any]:
    first = "kernel compiler grid time_us cycles overhead_us cores_used cores programs instructions bounds l2_left_bytes"
    moved = {"resources_bytes": x.resources, **picked(x, "constants low_us high_us measured_rows")}
    return {**picked(x, first), **moved, "grades_us": x.grades, "lifted_us": x.lifted}


def _buffer(b: Buffer) -> dict[str, Any]:
    peak = [picked(v, "name file line shape dtype bytes copies why") for v in b.peak]
    sizes = {"peak_bytes": b.peak_bytes, "placed_bytes": b.used_bytes}
    bits = {
        "peak_bits": 8 * b.peak_bytes,
        "placed_bits": 8 * b.used_bytes,
        "capacity_bits": 8 * b.capacity_bytes,
    }
    more = {"holes_bytes": holes_bytes(b), "peak": peak, "freed_bytes": b.freed}
    return sizes | {"capacity_bytes": b.capacity_bytes} | bits | more


def _plain(x: Any) -> Any:
    """Records of a run that was just made may hold numpy numbers, tuples and types: JSON has a form for each."""
    if isinstance(x, np.generic):
        x = x.item()
    if isinstance(x, dict):
        return {str(k): _plain(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return [_plain(v) for v in x]
    return x if x is None or isinstance(x, bool | int | float | str) else str(x)
