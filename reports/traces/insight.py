"""The events that MindStudio Insight reads from its own simulator's trace.json.

Tracks are named as there: the process is the core ("core0.cubecore0", "core0.veccore1"), the thread the pipe ("VECTOR").
Instructions are complete events with `code` (file:line), `detail` and `pc_addr`; waits are a pair of WAIT_FLAG events ("B",
"E"); flows ("s", "t") are of the category "MTE2ToVECTOR". Source: msopprof's user guide (files of the simulator) and the
parser tests of the viewer, both public; see `tests/reports/test_traces.py` for each rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .instructions import Told, instructions
from .selection import Selection

Event = dict[str, Any]
PIPES = {"S": "SCALAR", "V": "VECTOR", "M": "CUBE", "FIXP": "FIXP"}  # the others have one name everywhere
CORES = {"AIC": "cubecore", "AIV": "veccore"}
UNIT = re.compile(r"(AIC|AIV)(\d*)\Z")


def events(selection: Selection) -> Iterator[Event]:
    """All events; launches follow each other on the same tracks."""
    number = 0
    for part in selection.parts:
        shown: dict[int, Told] = {}
        for told in instructions(part):
            shown[told.place] = told
            cause = shown.get(told.waited) if told.waited is not None else None
            yield from _waits(told, cause, number)
            yield _slice(told)
            if cause is not None and track(cause)[1] != track(told)[1]:
                number += 1
                yield from _flow(cause, told, number)


def track(told: Told) -> tuple[str, str]:
    """Process and thread: ("core3.veccore0", "MTE2"); where Cube and Vector are one core, ("core3", ...)."""
    unit, _, pipe = told.pipe.partition(".")
    found = UNIT.match(unit)
    core = f"core{told.core}.{CORES[found[1]]}{found[2] or 0}" if found else f"core{told.core}"
    return core, PIPES.get(pipe, pipe)


def _slice(told: Told) -> Event:
    detail = [f"PROGRAM:{told.details['program']}"]
    detail += [f"BYTES:{told.details['bytes']}"] if "bytes" in told.details else []
    code, text = told.details.get("line", ""), ",".join([*detail, ""])
    args = {"code": code, "detail": text, "pc_addr": hex(told.place)}
    duration = round(max(0.0, told.end - told.start), 6)
    return {**_where(told, told.start), "args": args, "dur": duration, "name": told.name, "ph": "X"}


def _waits(told: Told, cause: Told | None, number: int) -> Iterator[Event]:
    if told.gap_us <= 0 or told.reason is None:
        return
    pipe = track(told)[1]
    by = track(cause)[1] if cause is not None else pipe
    detail = f"PIPE:{by},TRIGGERPIPE:{pipe},REASON:{told.reason},"
    both = {"name": "WAIT_FLAG", "id": told.place, "cname": "rail_response"}
    begins = max(0.0, told.start - told.gap_us)
    args = {"code": told.details.get("line", ""), "detail": detail, "pc_addr": hex(told.place)}
    yield {**_where(told, begins), **both, "ph": "B", "args": args}
    yield {**_where(told, told.start), **both, "ph": "E", "args": {}}


def _flow(cause: Told, told: Told, number: int) -> Iterator[Event]:
    both = {"cat": f"{track(cause)[1]}To{track(told)[1]}", "id": number, "name": "flow"}
    yield {**_where(cause, cause.start), **both, "ph": "s"}
    yield {**_where(told, told.start), **both, "ph": "t"}


def _where(told: Told, us: float) -> Event:
    process, thread = track(told)
    return {"pid": process, "tid": thread, "ts": round(us, 6)}
